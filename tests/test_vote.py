"""Consensus and what follows from it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.config import AuditConfig, UncoveredPolicy
from reward.numbers import parse_number
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Outcome
from reward.vote import CANNOT_ANSWER, Reason, judge, vote

INVALID = "invalid"


def cast(claimed: str, *values: str | None, needed: int = 2, number: str | None = None) -> ClaimVerdict:
    answers = [None if value == INVALID else Answer(value=value) for value in values]
    claim = Claim(index=1, question="How much?", answer=claimed)
    return vote(claim, answers, num_valid_needed=needed, number=parse_number(number) if number else None)


@pytest.mark.parametrize(
    ("votes", "state", "consensus"),
    [
        (["466", "466", "466"], ClaimState.SUPPORTED, "466"),
        (["466", "120", "466"], ClaimState.SUPPORTED, "466"),
        (["120", "120", "466"], ClaimState.CONTRADICTED, "120"),
        ([None, None, "466"], ClaimState.NOT_IN_DOCUMENTS, None),
        ([None, "466", "466"], ClaimState.SUPPORTED, "466"),
        (["466", "120", "50"], ClaimState.NO_CONSENSUS, None),
        (["466", None, INVALID], ClaimState.NO_CONSENSUS, None),
        (["466", "466.0", INVALID], ClaimState.SUPPORTED, "466"),
        (["466", INVALID, INVALID], ClaimState.FAILED, None),
        ([INVALID] * 3, ClaimState.FAILED, None),
        ([], ClaimState.FAILED, None),
    ],
)
def test_states(votes: list[str | None], state: ClaimState, consensus: str | None) -> None:
    verdict = cast("466", *votes)
    assert (verdict.state, verdict.consensus) == (state, consensus)
    assert len(verdict.votes) == len(votes)


def test_row_05_the_consensus_comes_first_and_the_states_are_kept_apart() -> None:
    # Agreement with the claim summed up (+1 +1 -1 -1 -1) would refute; the plurality is the claim.
    verdict = cast("5", "5", "5", "7", "8", "9", needed=3)
    assert verdict.state is ClaimState.SUPPORTED
    assert verdict.tally == {"5": 2, "7": 1, "8": 1, "9": 1}
    assert cast("5", "7", "7", "8", "5", None, needed=3).state is ClaimState.CONTRADICTED
    assert cast("5", "5", "5", "7", "7", "9", needed=3).state is ClaimState.NO_CONSENSUS


@pytest.mark.parametrize(
    ("claimed", "voted", "state"),
    [
        ("0.05", "0.1", ClaimState.CONTRADICTED),
        ("10", "10%", ClaimState.CONTRADICTED),
        ("5", "5k", ClaimState.CONTRADICTED),
        ("1,200", "1200", ClaimState.SUPPORTED),
        ("5 million", "5000000", ClaimState.SUPPORTED),
    ],
)
def test_row_04_votes_are_held_against_the_claim_exactly(claimed: str, voted: str, state: ClaimState) -> None:
    assert cast(claimed, voted, voted, voted).state is state


def test_row_04_empty_votes_are_no_agreement() -> None:
    assert cast("466", "", "", "").state is ClaimState.FAILED
    assert cast("466", None, None, None).state is ClaimState.NOT_IN_DOCUMENTS


def test_votes_are_counted_in_the_unit_of_the_response() -> None:
    assert cast("12", "12", "12%", INVALID, number="12%").tally == {"12": 2}
    assert cast("12", "12", "12%", INVALID, number="12%").state is ClaimState.SUPPORTED
    assert cast("12", "$12", "$12", "12", number="12%").state is ClaimState.CONTRADICTED
    assert cast("466", "466", "466 euros", "466", number="466 euros").consensus == "466"


@pytest.mark.parametrize(
    ("votes", "entropy"),
    [(["1", "1", "1"], 0.0), (["1", "2"], math.log(2)), (["1", "2", None], math.log(3)), ([INVALID], 0.0)],
)
def test_entropy_is_in_nats(votes: list[str | None], entropy: float) -> None:
    assert cast("1", *votes).entropy == pytest.approx(entropy)


@given(
    st.lists(st.sampled_from(["466", "120", "466.0", None, INVALID, "??"]), max_size=15), st.integers(1, 8)
)
def test_any_votes(votes: list[str | None], needed: int) -> None:
    verdict = cast("466", *votes, needed=needed)
    valid = sum(verdict.tally.values())
    assert valid == sum(v not in (INVALID, "??") for v in votes)
    assert (verdict.state is ClaimState.FAILED) == (valid < needed)
    if verdict.state is ClaimState.SUPPORTED:
        assert verdict.tally["466"] > max((n for v, n in verdict.tally.items() if v != "466"), default=0)
    if verdict.state is ClaimState.NOT_IN_DOCUMENTS:
        assert verdict.tally[CANNOT_ANSWER] == max(verdict.tally.values())


SUPPORTED, CONTRADICTED, ABSENT, TIED, FAILED = ClaimState


@pytest.mark.parametrize(
    ("states", "num_uncovered", "policy", "outcome", "reward", "reason"),
    [
        ([SUPPORTED], 0, "refute", Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
        ([SUPPORTED, CONTRADICTED], 0, "refute", Outcome.REFUTED, -1.0, Reason.CONTRADICTED),
        ([SUPPORTED, ABSENT, CONTRADICTED], 0, "refute", Outcome.REFUTED, -1.0, Reason.NOT_IN_DOCUMENTS),
        ([TIED], 0, "refute", Outcome.REFUTED, -1.0, Reason.NO_CONSENSUS),
        ([FAILED, CONTRADICTED], 0, "refute", Outcome.REFUTED, -1.0, Reason.CONTRADICTED),
        ([SUPPORTED, FAILED], 0, "refute", Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES),
        ([SUPPORTED, FAILED], 1, "refute", Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES),
        ([SUPPORTED], 1, "refute", Outcome.REFUTED, -1.0, Reason.UNCOVERED_NUMBERS),
        ([SUPPORTED], 1, "unscored", Outcome.UNSCORED, None, Reason.UNCOVERED_NUMBERS),
        ([SUPPORTED], 1, "ignore", Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
    ],
)
def test_judgement(
    states: list[ClaimState],
    num_uncovered: int,
    policy: str,
    outcome: Outcome,
    reward: float | None,
    reason: Reason,
) -> None:
    claim = Claim(index=1, question="How much?", answer="466")
    verdicts = [ClaimVerdict(claim=claim, state=state) for state in states]
    config = AuditConfig(uncovered=UncoveredPolicy(policy))
    judgement = judge(verdicts, num_uncovered=num_uncovered, config=config)
    assert (judgement.outcome, judgement.reward, judgement.reason) == (outcome, reward, reason)
