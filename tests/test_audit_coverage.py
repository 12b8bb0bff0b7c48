"""What numbers that no claim covers cost: silence is not paid."""

import asyncio

import pytest

from reward.auditor import audit
from reward.config import AuditConfig, UncoveredPolicy
from reward.roles.prompts import load_prompts
from reward.types import AuditResult, Outcome

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic in Kabul raised 466 euros."
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
RIGHT = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"


def run(query, response, sampler, **settings) -> AuditResult:
    config = AuditConfig(**{"kinds": ["number"], **settings})
    return asyncio.run(audit(query, response, sampler=sampler, prompts=PROMPTS, config=config))


def test_row_03_a_number_hidden_from_the_claims_is_not_paid(scripted, picnic) -> None:
    script = [CLAIM, CLAIM, RIGHT, RIGHT, RIGHT]
    response = RESPONSE + " It drew 50 people."
    verdict = run(picnic, response, scripted(script)).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.REFUTED, -1.0, "uncovered")
    assert [response[span.start : span.end] for span in verdict.uncovered] == ["50"]
    ignored = run(picnic, response, scripted(script), uncovered=UncoveredPolicy.IGNORE, min_claims=1).verdict
    assert ignored.outcome is Outcome.SUPPORTED
    unscored = run(picnic, response, scripted(script), uncovered=UncoveredPolicy.UNSCORED).verdict
    assert (unscored.outcome, unscored.reward) == (Outcome.UNSCORED, None)


@pytest.mark.parametrize(
    "hidden",
    [
        "It drew ⁴⁶⁷ people.",
        "It drew ④⑥⑦ people.",
        "It drew 九百 people.",
        "It drew n\u200dine h\u200cundred people.",
        "By passage 1 million people came.",
        "It cost $[1] million.",
        "It cost ① million.",
    ],
)
def test_a_number_hidden_by_its_looks_is_not_paid(hidden: str, scripted, picnic) -> None:
    script = [CLAIM, CLAIM, RIGHT, RIGHT, RIGHT]
    verdict = run(picnic, f"{RESPONSE} {hidden}", scripted(script)).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.REFUTED, -1.0, "uncovered")


@pytest.mark.parametrize("zero", ["0e300", "0 trillion", "zero million", "0"])
def test_a_zero_is_not_supported_by_all_that_is_less_than_its_scale(zero: str, scripted, picnic) -> None:
    claim = "- Question: How many euros did it raise? [Answer: 0]"
    verdict = run(picnic, f"It raised {zero} euros.", scripted([claim, RIGHT, RIGHT, RIGHT])).verdict
    assert (verdict.outcome, verdict.reward) == (Outcome.REFUTED, -1.0)


def test_one_question_covers_one_number_though_it_is_asked_twice(scripted, picnic) -> None:
    script = [f"{CLAIM}\n{CLAIM.upper()}"] * 2 + [f"{RIGHT}\n2. {RIGHT[3:]}"] * 3
    verdict = run(picnic, RESPONSE + " It drew 466 people.", scripted(script)).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.REFUTED, "uncovered")
    assert len(verdict.claims) == 1


def test_the_best_covered_attempt_of_the_proposer_is_kept(scripted, picnic) -> None:
    both = CLAIM + "\n- Question: How many came? [Answer: 50]"
    right = RIGHT + "\n2. Evidence: It drew 50 people. [Answer: 50]"
    response = RESPONSE + " It drew 50 people."
    for attempts in ([both], [CLAIM, both], [CLAIM, "nothing", both]):
        sampler = scripted([*attempts, right, right, right])
        assert run(picnic, response, sampler, proposer_retries=2).verdict.outcome is Outcome.SUPPORTED
    sampler = scripted([CLAIM, "nothing", RIGHT, RIGHT, RIGHT])
    assert run(picnic, response, sampler).verdict.reason == "uncovered"


def test_too_many_claims_are_unscored(scripted, picnic) -> None:
    many = f"{CLAIM}\n{CLAIM}\n{CLAIM}"
    verdict = run(picnic, RESPONSE, scripted([many, many]), max_claims=2).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "too_many_claims")


def test_claims_about_numbers_that_do_not_stand_there_are_dropped_and_counted(scripted, picnic) -> None:
    text = "- Question: How many guards? [Answer: 7]\n" + CLAIM
    verdict = run(picnic, RESPONSE, scripted([text, RIGHT, RIGHT, RIGHT])).verdict
    assert (verdict.outcome, verdict.num_dropped_claims) == (Outcome.SUPPORTED, 1)
    assert [c.claim.index for c in verdict.claims] == [1]


def test_with_fewer_claims_than_k_silence_is_not_paid_where_uncovered_numbers_are_ignored(
    scripted, picnic
) -> None:
    response = RESPONSE + " It drew 50 people."
    script = [CLAIM, CLAIM, RIGHT, RIGHT, RIGHT]
    verdict = run(picnic, response, scripted(script), uncovered="ignore", min_claims=2).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "too_few_claims")


@pytest.mark.parametrize(("penalty", "reward"), [(0.0, 0.0), (0.5, -0.25), (1.0, -0.5), (9.0, -1.0)])
def test_a_penalty_for_lost_coverage_never_falls_below_a_refutation(
    penalty, reward, scripted, picnic
) -> None:
    response = RESPONSE + " It drew 50 people."
    settings = {"uncovered": "ignore", "min_claims": 1, "coverage_penalty": penalty, "proposer_retries": 0}
    verdict = run(picnic, response, scripted([CLAIM, RIGHT, RIGHT, RIGHT]), **settings).verdict
    assert (verdict.outcome, verdict.reward) == (Outcome.SUPPORTED, reward)
