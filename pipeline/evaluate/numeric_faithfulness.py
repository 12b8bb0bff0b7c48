"""The MARCH audit as a metric: do the numbers of an answer come from its documents?

A pure function from the verdicts on an item's generations (of `reward.lexical` or of `reward.auditor`, the
same path as in training) to scores. An answer without numbers is neither faithful nor unfaithful: it takes
no part, and how often that happens is a figure of its own, since saying nothing is the easiest way not to
be refuted. An UNSCORED audit is no verdict and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pipeline.evaluate.majority import Majority
from reward.offline.bootstrap import share
from reward.types import ClaimState, Outcome, Verdict

Auditor = Literal["lexical", "model"]  # as in `Provenance.auditor`


def numeric_scores(auditor: Auditor, verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Scores of one item, each in [0, 1] or None, from the audits of its generations.

    Args:
        auditor: Which audit it was; its name begins the scores' names.
        verdicts: One a generation.

    Returns:
        `numeric_lexical` (or `numeric_model`): whether more than half of the audited generations with
        numbers are SUPPORTED; `..._mean`: their share; `..._claims`: the share of supported claims among all
        that have a state; `..._no_numbers`: the share of generations without a number to check, among the
        audited; `..._unscored`: the share whose audit failed.
    """
    counts = Counter(verdict.outcome for verdict in verdicts)
    audited = [verdict for verdict in verdicts if verdict.outcome is not Outcome.UNSCORED]
    claims = Counter(claim.state for verdict in audited for claim in verdict.claims)
    num_audited, num_decided = len(audited), claims.total() - claims[ClaimState.FAILED]
    with_numbers = Majority(
        num_passed=counts[Outcome.SUPPORTED],
        num_judged=counts[Outcome.SUPPORTED] + counts[Outcome.REFUTED],
        num_generations=len(verdicts) - counts[Outcome.NO_CLAIMS],
    )
    name = f"numeric_{auditor}"
    return {
        name: with_numbers.passed,
        f"{name}_mean": with_numbers.mean,
        f"{name}_claims": share(claims[ClaimState.SUPPORTED], num_decided),
        f"{name}_no_numbers": share(counts[Outcome.NO_CLAIMS], num_audited),
        f"{name}_unscored": share(counts[Outcome.UNSCORED], len(verdicts)),
    }
