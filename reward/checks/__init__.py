"""Optional checks of the audit without a model; `AuditConfig.checks` names those that are asked, in order.

A check knows one layout of documents, such as a table of weekdays and hours, and what answers say of it. It
is asked before the lookup. A new check is one file here, one line in `CHECKS` and its name in
`reward.config.CheckName`.
"""

from collections.abc import Mapping

from reward.checks.check import Check
from reward.checks.opening_hours import OpeningHoursCheck
from reward.checks.ratings import RatingsCheck
from reward.checks.yes_no_fields import YesNoFieldsCheck
from reward.config import CheckName

CHECKS: Mapping[CheckName, type[Check]] = {
    CheckName.OPENING_HOURS: OpeningHoursCheck,
    CheckName.RATINGS: RatingsCheck,
    CheckName.YES_NO_FIELDS: YesNoFieldsCheck,
}
