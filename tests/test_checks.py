"""Which optional checks an audit without a model asks: none by default, and those that the settings name."""

import json

import pytest
from pydantic import ValidationError

from reward.checks import CHECKS
from reward.config import AuditConfig, CheckName
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, RagQuery

INFO = {
    "hours": {"Monday": "9:0-17:0", "Friday": "9:0-22:0"},
    "business_stars": 3.5,
    "review_info": [{"review_stars": 4.0}, {"review_stars": 2.0}],
}
QUERY = RagQuery(id="1", query="Describe it.", documents=(Document(id="a", text=json.dumps(INFO)),))
WRONG_DAY, WRONG_THING = "On Monday it closes at 22:00.", "Its overall rating is 4.0 stars."


def is_refuted(response: str, *checks: CheckName) -> bool:
    claims = lexical_audit(QUERY, response, AuditConfig(checks=checks)).claims
    return any(claim.state is not ClaimState.SUPPORTED for claim in claims)


@pytest.mark.parametrize(
    ("response", "check"), [(WRONG_DAY, CheckName.OPENING_HOURS), (WRONG_THING, CheckName.RATINGS)]
)
def test_a_check_is_asked_only_where_it_is_named(response: str, check: CheckName) -> None:
    assert not is_refuted(response)
    assert not is_refuted(response, *(other for other in CheckName if other is not check))
    assert is_refuted(response, check)
    assert is_refuted(response, *CheckName)


def test_every_name_has_its_check() -> None:
    assert list(CHECKS) == list(CheckName)


def test_an_unknown_check_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValidationError, match=r"checks\.0\n.*'opening_hours', 'ratings' or 'yes_no_fields'.*'menus'"
    ):
        AuditConfig.model_validate({"checks": ["menus"]})
