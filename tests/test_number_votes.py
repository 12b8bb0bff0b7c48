"""The same votes in any order give the same verdict, and fewer votes never outweigh more."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims.numbers import equal, parse_number
from reward.claims.numbers.kind import Numbers
from reward.judging.vote import is_decided, vote
from reward.types import Answer, Claim, ClaimState, ClaimVerdict
from tests.kinds import ANY
from tests.test_number_equality import CLOSE

INVALID = "no number"
NUMBERS = Numbers(ANY)
CLAIMS = [text for text in CLOSE if parse_number(text)]
VOTES = st.one_of(st.sampled_from([None, INVALID]), st.sampled_from(CLAIMS))


def cast(claimed: str, values: list[str | None]) -> ClaimVerdict:
    answers = [Answer(value=value) for value in values]
    return vote(Claim(index=1, question="?", answer=claimed), answers, num_valid_needed=2)


def told(verdict: ClaimVerdict) -> tuple[object, ...]:
    """All of a verdict but for the votes themselves."""
    return verdict.state, verdict.consensus, verdict.tally, verdict.entropy


@given(st.sampled_from(CLAIMS), st.lists(VOTES, max_size=7), st.data())
def test_the_order_of_the_votes_does_not_matter(
    claimed: str, values: list[str | None], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(values))
    assert told(cast(claimed, values)) == told(cast(claimed, other))


@given(st.sampled_from(CLAIMS), st.lists(VOTES, max_size=7))
def test_what_is_decided_early_stays(claimed: str, values: list[str | None]) -> None:
    claim = Claim(index=1, question="?", answer=claimed)
    last = cast(claimed, values).state
    for count in range(len(values) + 1):
        answers = [Answer(value=value) for value in values[:count]]
        if is_decided(claim, answers, num_outstanding=len(values) - count, num_valid_needed=2):
            assert cast(claimed, values[:count]).state is last


@given(st.sampled_from(CLAIMS), st.lists(VOTES, max_size=7))
def test_fewer_votes_never_outweigh_more(claimed: str, values: list[str | None]) -> None:
    asked = parse_number(claimed)
    assert asked is not None
    numbers = [NUMBERS.taken_as(number, asked) for value in values if (number := parse_number(value or ""))]
    sizes = Counter({id(a): sum(equal(a, b) for b in numbers) for a in numbers})
    refused = values.count(None)
    agreeing = max((sizes[id(n)] for n in numbers if NUMBERS.bears_out(n, asked)), default=0)
    differing = max((sizes[id(n)] for n in numbers if not NUMBERS.bears_out(n, asked)), default=0)
    state = cast(claimed, values).state
    if state is ClaimState.SUPPORTED:
        assert agreeing > max(differing, refused)
    if state is ClaimState.CONTRADICTED:
        assert differing > max(agreeing, refused)
    if state is ClaimState.NOT_IN_DOCUMENTS:
        assert refused > max(agreeing, differing)


@pytest.mark.parametrize(
    ("claimed", "values", "state"),
    [
        ("1.5 km", ["1,500", "1500", "1500"], ClaimState.CONTRADICTED),
        ("1.5 km", ["1,500 m", "1500 m", "1.5"], ClaimState.SUPPORTED),
        ("5 June 2021", ["5/6/2021", "6 May 2021", "6 May 2021"], ClaimState.CONTRADICTED),
        ("5 June 2021", ["5/6/2021", "5/6/2021", "6 May 2021"], ClaimState.SUPPORTED),
        ("9:30 pm", ["9:30", "9:30 am", "9:30 am"], ClaimState.CONTRADICTED),
        ("9:30 pm", ["9:30", "9:30 pm", "9:30 am"], ClaimState.SUPPORTED),
        ("9:30", ["9:30", "9:30 pm", "9:30 pm"], ClaimState.SUPPORTED),
        ("9:30", ["9:30", "9:30 pm", "9:30 am"], ClaimState.SUPPORTED),
        ("1.2 million", ["1,234,000", "1.234 million", "1.3 million"], ClaimState.SUPPORTED),
        ("over 270", ["270+", "over 270", "270"], ClaimState.SUPPORTED),
        ("over 270", ["270+", "270", "270"], ClaimState.CONTRADICTED),  # a bare 270 states no bound
        ("5 °C", ["5 degrees", "5", "5 °C"], ClaimState.SUPPORTED),
        ("12%", ["5 km", "5,000 m", "500,000 cm"], ClaimState.CONTRADICTED),  # written in one way
    ],
)
def test_votes_that_once_depended_on_their_order(
    claimed: str, values: list[str | None], state: ClaimState
) -> None:
    first = cast(claimed, values)
    assert first.state is state
    for turn in range(len(values)):
        turned = values[turn:] + values[:turn]
        assert told(cast(claimed, turned)) == told(cast(claimed, turned[::-1])) == told(first)
