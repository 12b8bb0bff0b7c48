"""Verdicts of the audit become scores of an item; what the audit could not score is never one."""

from collections.abc import Sequence

import pytest

from pipeline.evaluate.majority import numeric_scores
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict

S, R, N, U = Outcome.SUPPORTED, Outcome.REFUTED, Outcome.NO_CLAIMS, Outcome.UNSCORED


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    rewards = {S: 0.0, R: -1.0, N: -1.0, U: None}
    return [Verdict(id=str(i), outcome=one, reward=rewards[one]) for i, one in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("outcomes", "faithful", "mean", "no_numbers", "unscored"),
    [
        ([S, S, S, R], 1, 0.75, 0, 0),
        ([S, R], 0, 0.5, 0, 0),
        ([S, N, N, N], 1, 1, 0.75, 0),  # silence is neither faithful nor unfaithful
        ([R, N, U, U], None, 0, 0.5, 0.5),  # fewer than half of those with numbers were audited
        ([N, N], None, None, 1, 0),
        ([U], None, None, None, 1),
        ([], None, None, None, None),
    ],
)
def test_outcomes(
    outcomes: list[Outcome], faithful: float, mean: float, no_numbers: float, unscored: float
) -> None:
    found = numeric_scores("model", verdicts(outcomes))
    assert found == {
        "numeric_model": faithful,
        "numeric_model_mean": mean,
        "numeric_model_claims": None,
        "numeric_model_no_numbers": no_numbers,
        "numeric_model_unscored": unscored,
    }


def test_claims_without_a_state_count_for_nothing() -> None:
    states = [
        ClaimState.SUPPORTED,
        ClaimState.CONTRADICTED,
        ClaimState.NOT_IN_DOCUMENTS,
        ClaimState.SUPPORTED,
    ]
    claims = tuple(
        ClaimVerdict(claim=Claim(index=i, question="q", answer="1"), state=state)
        for i, state in enumerate([*states, ClaimState.FAILED], start=1)
    )
    scored = Verdict(id="a", outcome=R, reward=-1.0, claims=claims)
    failed = Verdict(id="b", outcome=U, reward=None, claims=claims)
    assert numeric_scores("lexical", [scored, failed])["numeric_lexical_claims"] == 0.5


def test_the_lexical_audit_as_a_metric(picnic: RagQuery) -> None:
    answers = [
        "It raised 466 euros.",
        "It raised 466 euros and drew 50 people.",
        "It raised 999 euros.",
        "Much.",
    ]
    found = numeric_scores("lexical", [lexical_audit(picnic, answer, AuditConfig()) for answer in answers])
    assert found["numeric_lexical"] == 1
    assert found["numeric_lexical_mean"] == pytest.approx(2 / 3)
    assert found["numeric_lexical_claims"] == pytest.approx(3 / 4)
    assert found["numeric_lexical_no_numbers"] == 0.25
