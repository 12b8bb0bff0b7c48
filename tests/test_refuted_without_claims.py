"""A Proposer that fails is no shelter for what the documents refute, and no way to a reward."""

import asyncio
from typing import Any

import pytest

from pipeline.record.metrics import audit_metrics
from pipeline.record.rollout_record import RolloutRecord
from pipeline.training.oracle import judge_tiny
from reward.auditor import audit
from reward.config import AuditConfig
from reward.roles.prompts import load_prompts
from reward.samplers import SamplerError
from reward.types import AuditResult, ClaimSource, ClaimState, Outcome, RagQuery, Sample

PROMPTS = load_prompts("compact")
FALSE = "The July picnic in Kabul raised 467 euros."
TRUE = "The July picnic in Kabul raised 466 euros."
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
RIGHT = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"
MANY = "\n".join([CLAIM] * 3)
BY_LOOKUP = (Outcome.REFUTED, -1.0, "refuted_without_claims")


def run(query: RagQuery, response: str, sampler: Any, **settings: Any) -> AuditResult:
    config = AuditConfig(**{"kinds": ["number"], "refute_without_claims": True, **settings})
    return asyncio.run(audit(query, response, sampler=sampler, prompts=PROMPTS, config=config))


def said(result: AuditResult) -> tuple[Any, ...]:
    verdict = result.verdict
    return verdict.outcome, verdict.reward, verdict.reason


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("I cannot help with that.", {}),
        ("- Question: How many? [Answer: 7]", {}),
        (MANY, {"max_claims": 2}),
        (Sample(text=CLAIM, finish_reason="length"), {}),
    ],
)
def test_what_the_documents_refute_is_refuted_whatever_the_proposer_wrote(
    text: Any, settings: dict[str, Any], scripted: Any, picnic: RagQuery
) -> None:
    result = run(picnic, FALSE, scripted([text, text]), **settings)
    assert said(result) == BY_LOOKUP and result.trajectories == ()
    (claim,) = result.verdict.claims
    assert (claim.claim.answer, claim.state) == ("467 euros", ClaimState.NOT_IN_DOCUMENTS)
    assert claim.claim.source is ClaimSource.LEXICAL
    assert "the audit without a model decided, since the Proposer failed" in result.verdict.detail
    off = run(picnic, FALSE, scripted([text, text]), **settings, refute_without_claims=False)
    assert (off.verdict.outcome, off.verdict.reward) == (Outcome.UNSCORED, None)


@pytest.mark.parametrize("text", ["", "I cannot help with that.", Sample(text=CLAIM, finish_reason="length")])
def test_what_the_documents_hold_stays_unscored_and_is_not_paid(
    text: Any, scripted: Any, picnic: RagQuery
) -> None:
    assert said(run(picnic, TRUE, scripted([text, text]))) == (Outcome.UNSCORED, None, "proposer_malformed")


def test_a_failure_of_the_sampler_or_of_the_voters_is_not_looked_up(scripted: Any, picnic: RagQuery) -> None:
    failed = run(picnic, FALSE, scripted([SamplerError("timeout", "why")]))
    assert said(failed) == (Outcome.UNSCORED, None, "timeout")
    claim = CLAIM.replace("466", "467")
    unread = run(picnic, FALSE, scripted([claim, "no", "no", "no"]))
    assert said(unread) == (Outcome.UNSCORED, None, "too_few_valid_votes")


def test_questions_that_leave_a_checker_no_room_are_no_shelter(scripted: Any, picnic: RagQuery) -> None:
    claim = CLAIM.replace("466", "467")
    said_by = [claim, SamplerError("prompt_too_long", "no room")]
    assert said(run(picnic, FALSE, scripted(said_by))) == BY_LOOKUP
    true = run(picnic, TRUE, scripted([CLAIM, SamplerError("prompt_too_long", "no room")]))
    assert said(true) == (Outcome.UNSCORED, None, "prompt_too_long")


def test_a_rate_of_errors_needs_to_know_all_claims(scripted: Any, picnic: RagQuery) -> None:
    result = run(picnic, FALSE, scripted(["", ""]), reward_function="error_rate")
    assert said(result) == (Outcome.UNSCORED, None, "proposer_malformed")


@pytest.mark.parametrize(
    ("people", "expected"), [(51, BY_LOOKUP), (50, (Outcome.UNSCORED, None, "too_few_claims"))]
)
def test_with_too_few_claims_what_nobody_asked_about_is_looked_up(
    people: int, expected: Any, scripted: Any, picnic: RagQuery
) -> None:
    script, settings = [CLAIM, CLAIM, RIGHT, RIGHT, RIGHT], {"uncovered": "ignore", "min_claims": 2}
    result = run(picnic, f"{TRUE} It drew {people} people.", scripted(script), **settings)
    assert said(result) == expected
    if expected == BY_LOOKUP:
        assert [(c.claim.index, c.claim.answer) for c in result.verdict.claims] == [(1, "466"), (2, "51")]
        assert result.trajectories == ()  # the voters are not to blame


def test_a_claim_that_voters_support_is_not_looked_up_against_them(scripted: Any, picnic: RagQuery) -> None:
    """The lookup does not see that 586 is the sum of both picnics."""
    claim = "- Question: Both picnics in Kabul raised how many euros? [Answer: 586]"
    right, response = "1. Evidence: 466 and 120. [Answer: 586]", "Both picnics in Kabul raised 586 euros."
    script, settings = [claim, claim, right, right, right], {"uncovered": "ignore", "min_claims": 2}
    result = run(picnic, f"{response} July drew 50 people.", scripted(script), **settings)
    assert said(result) == (Outcome.UNSCORED, None, "too_few_claims")


def test_the_thought_is_not_looked_up_and_spans_are_of_the_response(scripted: Any, picnic: RagQuery) -> None:
    thought = "Was it 999?</think>"
    assert run(picnic, thought + TRUE, scripted(["", ""]), thinking=True).verdict.outcome is Outcome.UNSCORED
    (claim,) = run(picnic, thought + FALSE, scripted(["", ""]), thinking=True).verdict.claims
    span = claim.claim.span
    assert span is not None and (thought + FALSE)[span.start : span.end] == "467 euros"


def test_such_answers_are_counted_and_say_nothing_of_questions_and_voters(
    scripted: Any, picnic: RagQuery
) -> None:
    by_lookup = run(picnic, FALSE, scripted(["", ""])).verdict
    voted = run(picnic, TRUE, scripted([CLAIM, RIGHT, RIGHT, RIGHT])).verdict
    records = [RolloutRecord(query_id="q", response="r", verdict=one) for one in (by_lookup, voted)]
    metrics = audit_metrics(records)
    assert metrics["audit/refuted_without_claims_rate"] == metrics["audit/refuted_rate"] == 0.5
    assert (metrics["audit/claims_per_answer"], metrics["audit/errors_per_claim"]) == (0.5, 0.0)
    assert judge_tiny(picnic, FALSE, by_lookup).num_consensus == 0
