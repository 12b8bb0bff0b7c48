"""A bare majority is asked first, and the others only while a claim is undecided."""

import asyncio

import pytest

from reward.auditor import audit
from reward.config import AuditConfig
from reward.roles.prompts import load_prompts
from reward.types import Outcome, Verdict

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic in Kabul raised 466 euros. It drew 50 people."
CLAIMS = (
    "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]\n"
    "- Question: How many came? [Answer: 50]"
)


def said(first: str, second: str) -> str:
    return f"1. Evidence: a [Answer: {first}]\n2. Evidence: b [Answer: {second}]"


RIGHT, WRONG, HALF = said("466", "50"), said("120", "50"), said("466", "Cannot answer")
BROKEN = "I am not sure"


def run(picnic, sampler, **settings) -> Verdict:
    config = AuditConfig(kinds=("number",), early_stop=True, **settings)
    return asyncio.run(audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config)).verdict


@pytest.mark.parametrize(
    ("votes", "settings", "asked", "outcome"),
    [
        ([RIGHT, RIGHT], {}, [2], Outcome.SUPPORTED),
        ([WRONG, WRONG], {}, [2], Outcome.REFUTED),
        ([RIGHT, WRONG, RIGHT], {}, [2, 1], Outcome.SUPPORTED),
        ([RIGHT, HALF, HALF], {}, [2, 1], Outcome.REFUTED),  # only the second claim is undecided
        ([RIGHT, BROKEN, RIGHT], {}, [2, 1], Outcome.SUPPORTED),
        ([BROKEN, BROKEN, RIGHT], {"min_valid_voters": 1}, [2, 1], Outcome.SUPPORTED),
        ([RIGHT] * 3, {"voters": 5}, [3], Outcome.SUPPORTED),
        ([RIGHT, RIGHT, WRONG, WRONG, RIGHT], {"voters": 5}, [3, 2], Outcome.SUPPORTED),
        ([RIGHT], {"voters": 1}, [1], Outcome.SUPPORTED),
        ([RIGHT] * 3, {"min_valid_voters": 3}, [3], Outcome.SUPPORTED),  # fewer than three decide nothing
    ],
)
def test_the_rest_is_asked_only_while_a_claim_is_undecided(
    votes, settings, asked, outcome, scripted, picnic
) -> None:
    sampler = scripted([CLAIMS, *votes])
    verdict = run(picnic, sampler, **settings)
    assert [request.n for request in sampler.requests[1:]] == asked
    assert (verdict.outcome, verdict.num_voters) == (outcome, sum(asked))
    assert all(len(claim.votes) == sum(asked) for claim in verdict.claims)


def test_without_early_stop_all_are_asked_at_once(scripted, picnic) -> None:
    sampler = scripted([CLAIMS, RIGHT, RIGHT, RIGHT])
    asyncio.run(
        audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=AuditConfig(kinds=("number",)))
    )
    assert [request.n for request in sampler.requests] == [1, 3]
