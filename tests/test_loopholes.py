"""What a policy could once be paid for, and must not be: each case was accepted before."""

from itertools import permutations

import pytest

from reward.claims.numbers.response import response_numbers
from reward.config import AuditConfig
from reward.judging.coverage import cover
from reward.judging.vote import vote
from reward.lexical import lexical_audit
from reward.roles.formats import parse_claims
from reward.types import Answer, Claim, ClaimState, Document, Outcome, RagQuery
from tests.kinds import ANY, kinds, targets


def outcome(document: str, answer: str) -> Outcome:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    return lexical_audit(query, answer, AuditConfig()).outcome


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        # another reading
        ("The road is 1,500 km long.", "The road is 1.5 km long."),
        ("The club has 1,234 members.", "The club has 1.234 members."),
        ("It opened on 3/5/2021.", "It opened on 5/3/2021."),
        ("It opened on 02.01.2021.", "It opened on 01.02.2021."),
        # rounding into a coarser unit
        ("Take 500 mg a day.", "Take 1 g a day."),
        ("It cost $600 million.", "It cost $1 billion."),
        ("The film lasts 31 minutes.", "The film lasts 1 hour."),
        ("The tour takes 10 days.", "The tour takes 1 week."),
        ("The trial ran for 17 months.", "The trial ran for 1 year."),
        # bounds
        ("They sold 270 cars.", "They sold over 270 cars."),
        # names
        ("The tower was built by Ida Moen.", "The tower was built by Jonas Lie."),
        ("The fair is in Oslo.", "The fair is in Bergen."),
        # numbers that hide in words
        ("A third of the members voted.", "Half of the members voted."),
        ("The price doubled.", "The price tripled."),
        ("He lives in the eighteenth century wing.", "He lives in the nineteenth century wing."),
        ("Louis XIV ruled.", "Louis XVI ruled."),
        ("It took twenty-two days.", "It took thirty-two days."),
    ],
)
def test_a_wrong_answer_is_refuted(document: str, answer: str) -> None:
    assert outcome(document, answer) is Outcome.REFUTED
    assert outcome(answer, answer) is Outcome.SUPPORTED


@pytest.mark.parametrize(
    ("claimed", "values"),
    [
        ("1.5 km", ["1,500", "1500", "1500"]),
        ("5 June 2021", ["5/6/2021", "6 May 2021", "6 May 2021"]),
        ("9:30 pm", ["9:30", "9:30 am", "9:30 am"]),
    ],
)
def test_the_order_of_votes_does_not_matter_and_a_minority_does_not_decide(
    claimed: str, values: list[str]
) -> None:
    claim = Claim(index=1, question="?", answer=claimed)
    for order in permutations(values):
        verdict = vote(claim, [Answer(value=value) for value in order], num_valid_needed=2)
        assert verdict.state is ClaimState.CONTRADICTED


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many people came in '84?", "1984"),
        ("Which percentage is 0.12?", "12%"),
        ("What share are three in four members?", "75%"),
        ("Which part are 75%?", "three-quarters"),
        ("What did the price that rose by 200% do?", "tripled"),
        ("How many are LX?", "60"),
        ("How many are sixty?", "60"),
    ],
)
def test_a_question_that_shows_its_answer_in_another_writing_is_refused(question: str, answer: str) -> None:
    parsed = parse_claims(f"- Question: {question} [Answer: {answer}]", max_claims=9, kinds=kinds())
    assert (parsed.claims, parsed.num_malformed) == ((), 1)


def test_a_question_that_shows_its_answer_in_another_unit_covers_nothing() -> None:
    response = "The road is 5 km long."
    (target,) = targets(response)
    assert target.kind.gives_away("How many km is the 5000 m road?", target.mention)


@pytest.mark.parametrize(
    ("response", "numbers"),
    [
        ("Ann Berg has [7] children.", ["7"]),
        ("Ann Berg has **[7]** children.", ["7"]),
        ("There were [6] young women.", ["6"]),
        ("She won [3] prizes [1].", ["3"]),
        ("According to [2] members came. In [2] sales rose. Many came [3]. [3] Rivers run.", []),
    ],
)
def test_a_count_in_brackets_is_no_citation(response: str, numbers: list[str]) -> None:
    nine = tuple(Document(id=str(place), text="x") for place in range(9))
    found = response_numbers(response, RagQuery(id="1", query="?", documents=nine))
    assert [response[one.start : one.end] for one in found] == numbers


@pytest.mark.parametrize(
    ("response", "hidden"),
    [
        ("Half the people left.", "Half"),
        ("Two-thirds of them left.", "Two-thirds"),
        ("It is twice the amount.", "twice"),
        ("The price tripled.", "tripled"),
        ("LX people came.", "LX"),
        ("sechzig Leute kamen", "sechzig"),
        ("A couple of thousand euros were raised.", "couple of thousand"),
        ("Twenty-five-year-old Ida won.", "Twenty-five"),
        ("Several hundred euros were raised.", "Several hundred"),
        ("It happened in the nineteenth century.", "nineteenth century"),
        ("④⑥⑥ people came.", "④⑥⑥"),
    ],
)
def test_a_number_in_words_is_found_and_listed_where_nobody_asks_about_it(response: str, hidden: str) -> None:
    found = response_numbers(response, ANY)
    assert any(
        hidden in response[one.start : one.end] or response[one.start : one.end] in hidden for one in found
    )
    assert cover(response, targets(response), ()).uncovered
