"""Consensus and what follows from it."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reward.claims import target_of
from reward.claims.kind import Target
from reward.claims.numbers import find_numbers
from reward.config import AuditConfig, RewardFunction, UncoveredPolicy
from reward.judging.vote import CANNOT_ANSWER, Reason, error_count, is_decided, judge, vote
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Outcome, Verdict
from tests.kinds import kinds

INVALID = "invalid"


def cast(claimed: str, *values: str | None, needed: int = 2, number: str | None = None) -> ClaimVerdict:
    answers = [None if value == INVALID else Answer(value=value) for value in values]
    claim = Claim(index=1, question="How much?", answer=claimed)
    return vote(
        claim,
        answers,
        num_valid_needed=needed,
        target=target_of(claim.model_copy(update={"answer": number})) if number else None,
    )


@pytest.mark.parametrize(
    ("votes", "state", "consensus"),
    [
        (["466", "466", "466"], ClaimState.SUPPORTED, "466"),
        (["466", "120", "466"], ClaimState.SUPPORTED, "466"),
        (["120", "120", "466"], ClaimState.CONTRADICTED, "120"),
        ([None, None, "466"], ClaimState.NOT_IN_DOCUMENTS, None),
        ([None, "466", "466"], ClaimState.SUPPORTED, "466"),
        (["466", "120", "50"], ClaimState.NO_CONSENSUS, None),
        (["466", None, INVALID], ClaimState.FAILED, None),  # the third could have decided
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
    # Agreement with the claim is no vote; what most voters say is compared with it.
    verdict = cast("5", "5", "5", "7", "8", "9", needed=3)
    assert verdict.state is ClaimState.NO_CONSENSUS  # two of five are a minority
    assert verdict.tally == {"5": 2, "7": 1, "8": 1, "9": 1}
    assert cast("5", "5", "5", "5", "8", "9", needed=3).state is ClaimState.SUPPORTED
    assert cast("5", "7", "7", "8", "5", "7", needed=3).state is ClaimState.CONTRADICTED
    assert cast("5", "5", "5", "7", "7", "9", needed=3).state is ClaimState.NO_CONSENSUS


def test_a_missing_vote_makes_no_tie() -> None:
    assert cast("5", "5", "5", "7", "7", INVALID, needed=3).state is ClaimState.FAILED
    assert cast("5", "5", "7", "8", "9", INVALID, needed=3).state is ClaimState.NO_CONSENSUS, "two of five"


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
    ("number", "votes", "says", "state", "tally"),
    [
        ("over 270", ["270", "270", "300"], "over 270", ClaimState.SUPPORTED, {"270": 2, "300": 1}),
        ("over 270", ["270", "270", "300"], "270", ClaimState.CONTRADICTED, {"270": 2, "300": 1}),
        ("over 270", ["270", "270", "270"], "", ClaimState.CONTRADICTED, {"270": 3}),
        ("over 270", ["over 270", "more than 270", "270"], "", ClaimState.SUPPORTED, None),
        ("over 270", ["300", "300", "270"], "over 270", ClaimState.CONTRADICTED, None),
        ("270", ["over 270", "over 270", "270"], "270", ClaimState.CONTRADICTED, None),
        ("at least 5", ["5", "5", "5"], "5", ClaimState.SUPPORTED, None),
    ],
)
def test_a_bare_vote_is_a_bound_only_where_the_document_states_it(
    number: str, votes: list[str], says: str, state: ClaimState, tally: dict[str, int] | None
) -> None:
    claim = Claim(index=1, question="More than how many?", answer=number)
    answers = [Answer(value=value, evidence_says=says) for value in votes]
    verdict = vote(claim, answers, num_valid_needed=2)
    assert verdict.state is state
    assert tally is None or verdict.tally == tally


@pytest.mark.parametrize(
    ("number", "voted", "tolerance", "state"),
    [
        ("1.5 million", "1480000", 0.0, ClaimState.SUPPORTED),  # it rounds to what the response wrote
        ("1.5 million", "1400000", 0.0, ClaimState.CONTRADICTED),
        (
            "1.48 million",
            "1500000",
            0.0,
            ClaimState.CONTRADICTED,
        ),  # it says more than they do
        ("466", "467", 0.0, ClaimState.CONTRADICTED),
        ("466", "467", 0.01, ClaimState.SUPPORTED),
    ],
)
def test_the_consensus_may_be_finer_than_the_claim_or_within_the_tolerance(
    number: str, voted: str, tolerance: float, state: ClaimState
) -> None:
    claim = Claim(index=1, question="How many?", answer=number)
    answers = [Answer(value=voted)] * 3
    assert vote(claim, answers, num_valid_needed=2, relative_tolerance=tolerance).state is state


@pytest.mark.parametrize(
    ("number", "voted", "state", "consensus"),
    [
        ("3 May 2021", "May 3, 2021", ClaimState.SUPPORTED, "2021-05-03"),
        ("3 May 2021", "4 May 2021", ClaimState.CONTRADICTED, "2021-05-04"),
        ("May 2021", "3 May 2021", ClaimState.SUPPORTED, "2021-05-03"),  # it says more
        ("5:30 pm", "17:30", ClaimState.SUPPORTED, "17:30"),
        (
            "5:30 pm",
            "5:30",
            ClaimState.SUPPORTED,
            "17:30",
        ),  # the question may have said which half of the day
        ("5:30 pm", "5:30 am", ClaimState.CONTRADICTED, "05:30"),
        ("52-59%", "52-59", ClaimState.SUPPORTED, None),
        ("52-59%", "52-58", ClaimState.CONTRADICTED, None),
        ("5 km", "5000 m", ClaimState.SUPPORTED, "5"),
        ("5 km", "5", ClaimState.SUPPORTED, "5"),
        ("3rd", "3", ClaimState.SUPPORTED, "3"),
        ("COVID-20", "20", ClaimState.SUPPORTED, "covid-20"),
        ("COVID-20", "19", ClaimState.CONTRADICTED, "19"),
        ("four hundred", "400", ClaimState.SUPPORTED, "400"),
        ("about 1,000", "1020", ClaimState.SUPPORTED, "1020"),
    ],
)
def test_votes_on_numbers_of_every_kind(
    number: str, voted: str, state: ClaimState, consensus: str | None
) -> None:
    (asked,) = find_numbers(number)
    claim = Claim(index=1, question="What is it?", answer=number)
    target = Target(kinds()["number"], asked)
    verdict = vote(claim, [Answer(value=voted)] * 3, num_valid_needed=2, target=target)
    assert verdict.state is state
    assert consensus is None or verdict.consensus == consensus


@given(
    st.lists(st.sampled_from(["466", "120", None, INVALID]), min_size=1, max_size=5),
    st.integers(0, 4),
    st.integers(1, 5),
)
def test_what_is_decided_cannot_be_changed_by_any_outstanding_vote(
    votes: list[str | None], num_outstanding: int, needed: int
) -> None:
    claim = Claim(index=1, question="How much?", answer="466")
    answers = [None if v == INVALID else Answer(value=v) for v in votes]
    decided = is_decided(claim, answers, num_outstanding=num_outstanding, num_valid_needed=needed)
    later = product(["466", "120", "7", None, INVALID], repeat=num_outstanding)
    states = {cast("466", *votes, *more, needed=needed).state for more in later}
    assert not decided or len(states) == 1


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
    most, missing = max(verdict.tally.values(), default=0), len(votes) - valid
    is_open = most * 2 <= valid and missing > 0 and (most + missing) * 2 > len(votes)
    assert (verdict.state is ClaimState.FAILED) == (valid < needed or is_open)
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
        ([SUPPORTED], 1, "refute", Outcome.REFUTED, -1.0, Reason.UNCOVERED),
        ([SUPPORTED], 1, "unscored", Outcome.UNSCORED, None, Reason.UNCOVERED),
        ([SUPPORTED], 1, "ignore", Outcome.UNSCORED, None, Reason.TOO_FEW_CLAIMS),
        ([SUPPORTED] * 3, 1, "ignore", Outcome.SUPPORTED, 0.0, Reason.SUPPORTED),
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


def verdicts_of(states: list[ClaimState]) -> list[ClaimVerdict]:
    claim = Claim(index=1, question="How much?", answer="466")
    return [ClaimVerdict(claim=claim, state=state) for state in states]


ERROR_RATE = AuditConfig(reward_function=RewardFunction.ERROR_RATE)


@pytest.mark.parametrize(
    ("states", "num_uncovered", "policy", "counts", "reward"),
    [
        ([SUPPORTED] * 3, 0, "refute", (0, 3), 0.0),
        ([SUPPORTED, CONTRADICTED, SUPPORTED], 0, "refute", (1, 3), -1 / 3),
        ([SUPPORTED, CONTRADICTED, ABSENT, TIED], 0, "refute", (3, 4), -3 / 4),
        ([CONTRADICTED], 0, "refute", (1, 1), -1.0),
        ([SUPPORTED] * 3, 1, "refute", (1, 4), -1 / 4),  # an unchecked number is an unsupported one
        ([SUPPORTED, CONTRADICTED], 2, "refute", (3, 4), -3 / 4),
        ([SUPPORTED, SUPPORTED, CONTRADICTED], 5, "ignore", (1, 3), -1 / 3),  # the paper's own
        ([SUPPORTED, FAILED], 0, "refute", (0, 2), None),  # the rate is not known
        ([CONTRADICTED, FAILED], 0, "refute", (1, 2), None),
        ([CONTRADICTED], 1, "unscored", (2, 2), None),
        ([CONTRADICTED], 5, "ignore", (1, 1), None),  # fewer claims than min_claims
    ],
)
def test_the_error_rate_is_minus_errors_over_all_claims(
    states: list[ClaimState], num_uncovered: int, policy: str, counts: tuple[int, int], reward: float | None
) -> None:
    config = ERROR_RATE.model_copy(update={"uncovered": UncoveredPolicy(policy)})
    errors = error_count(verdicts_of(states), num_uncovered=num_uncovered, config=config)
    assert (errors.num_errors, errors.num_total) == counts
    judgement = judge(verdicts_of(states), num_uncovered=num_uncovered, config=config)
    assert judgement.reward == pytest.approx(reward)
    assert (judgement.outcome is Outcome.UNSCORED) == (reward is None)
    assert (judgement.outcome is Outcome.SUPPORTED) == (reward == 0.0)


@given(
    st.lists(st.sampled_from(list(ClaimState)), min_size=1, max_size=6),
    st.integers(0, 4),
    st.sampled_from(list(UncoveredPolicy)),
    st.sampled_from(list(RewardFunction)),
    st.sampled_from([0.0, 0.5, 9.0]),
)
def test_any_judgement_is_a_reward_from_minus_one_to_zero_or_none(
    states: list[ClaimState],
    num_uncovered: int,
    policy: UncoveredPolicy,
    function: RewardFunction,
    penalty: float,
) -> None:
    config = AuditConfig(uncovered=policy, reward_function=function, coverage_penalty=penalty)
    judgement = judge(verdicts_of(states), num_uncovered=num_uncovered, config=config)
    verdict = Verdict(id="q", outcome=judgement.outcome, reward=judgement.reward)
    if FAILED in states and function is RewardFunction.ERROR_RATE:
        assert verdict.reward is None
    if judgement.outcome is Outcome.REFUTED:
        assert verdict.reward is not None and verdict.reward < 0


def test_the_penalty_for_silence_counts_beside_errors_too() -> None:
    config = ERROR_RATE.model_copy(update={"uncovered": UncoveredPolicy.IGNORE, "coverage_penalty": 0.5})
    one_wrong = [SUPPORTED, SUPPORTED, SUPPORTED, CONTRADICTED]
    assert judge(verdicts_of(one_wrong), num_uncovered=4, config=config).reward == -0.25 - 0.25


@pytest.mark.parametrize("reward", [1.0, 0.5, -1.5, float("nan"), float("-inf")])
def test_no_verdict_carries_a_reward_outside_its_scale(reward: float) -> None:
    with pytest.raises(ValidationError, match="reward"):
        Verdict(id="q", outcome=Outcome.REFUTED, reward=reward)


def test_a_refuted_response_never_has_the_best_reward() -> None:
    with pytest.raises(ValidationError, match="must be below"):
        Verdict(id="q", outcome=Outcome.REFUTED, reward=0.0)
