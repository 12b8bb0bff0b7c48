"""Numbers that claims must cover, and evidence that must stand in a document."""

import pytest

from reward.grounding import blind_rounds, cover, find_evidence, flatten, response_numbers
from reward.numbers import parse_number
from reward.types import Claim, Document, RagQuery


def claims(*answers: str) -> list[Claim]:
    return [Claim(index=i, question=f"Question {'x' * i}?", answer=a) for i, a in enumerate(answers, start=1)]


def written(response: str, query: RagQuery) -> list[str]:
    return [response[n.start : n.end] for n in response_numbers(response, query)]


QUERY = RagQuery(
    id="q",
    query="Summarise in 50 words what COVID-19 did.",
    documents=(Document(id="a", text="T2-weighted scans of COVID-19."), Document(id="b", text="See v1.2.3.")),
)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("COVID-19, covid-19 and a T2 scan with v1.2.3", []),
        ("COVID-20 and T3 and v1.2.4 and x466", ["20", "3", "1.2.4", "466"]),
        ("Passage 2 and documents 1 and 2 say so [1][2] [1, 2].", []),
        ("Passage 3 says so [4], and document 466 too.", ["3", "4", "466"]),
        ("Passage 2.5 million", ["2.5 million"]),
        ("In 50 words: it was 50 people.", ["50"]),
        ("In 60 words, it hurt.", ["60"]),
        ("Here is a summary in 60 words:\nIt hurt 70 people.", ["70"]),
        ("It hurt 60 people:\nmany.", ["60"]),
    ],
)
def test_what_must_be_checked(response: str, expected: list[str]) -> None:
    assert written(response, QUERY) == expected


def test_claims_are_given_numbers_one_to_one_from_left_to_right(picnic: RagQuery) -> None:
    response = "It raised 466, then 50, then 466 again."
    coverage = cover(response_numbers(response, picnic), claims("466", "50", "466"))
    assert [c.claim.span and c.claim.span.start for c in coverage.claims] == [10, 20, 29]
    assert coverage.uncovered == ()
    assert coverage.num_dropped == 0


def test_row_03_numbers_without_a_claim_are_listed(picnic: RagQuery) -> None:
    response = "It raised 466, then 50, then 466 again."
    coverage = cover(response_numbers(response, picnic), claims("466"))
    assert [response[s.start : s.end] for s in coverage.uncovered] == ["50", "466"]


def test_claims_about_numbers_that_do_not_stand_there_are_dropped(picnic: RagQuery) -> None:
    coverage = cover(response_numbers("It raised 466.", picnic), claims("7", "466", "466"))
    assert [(c.claim.index, c.claim.answer) for c in coverage.claims] == [(1, "466")]
    assert coverage.num_dropped == 2


@pytest.mark.parametrize(
    ("response", "answer", "covered"),
    [
        ("It rose 12%.", "12", True),
        ("It rose 12%.", "12%", True),
        ("It rose 12%.", "$12", False),
        ("It rose 12.", "12%", False),
        ("It drew 5k.", "5", False),
        ("It drew 5k.", "5000", True),
        ("It drew 1,200.", "1200", True),
        ("It drew 0.05.", "0.1", False),
    ],
)
def test_row_04_coverage_is_exact_and_typed(
    response: str, answer: str, covered: bool, picnic: RagQuery
) -> None:
    assert bool(cover(response_numbers(response, picnic), claims(answer)).claims) is covered


def test_a_claim_takes_a_number_of_its_own_kind_first(picnic: RagQuery) -> None:
    response = "12% of 12 people"
    coverage = cover(response_numbers(response, picnic), claims("12", "12"))
    assert [response[c.number.start : c.number.end] for c in coverage.claims] == ["12", "12%"]


def test_questions_that_give_other_answers_away_are_asked_apart(picnic: RagQuery) -> None:
    proposed = [
        Claim(index=1, question="In which year was the exam?", answer="2025"),
        Claim(index=2, question="How many took the exam in 2025?", answer="50"),
        Claim(index=3, question="How many of the 50 passed?", answer="7"),
        Claim(index=4, question="How many came by bus?", answer="9"),
    ]
    coverage = cover(response_numbers("In 2025, 50 sat it, 7 passed, 9 by bus.", picnic), proposed)
    rounds = [[c.claim.index for c in members] for members in blind_rounds(coverage.claims)]
    assert rounds == [[1, 3, 4], [2]]


DOCUMENTS = flatten(
    [
        Document(id="a", text="The May picnic raised\n120 euros, or -5 in all."),
        Document(id="b", text="The July picnic raised 466 euros. It drew 1,200 people (three by bus)."),
    ]
)


@pytest.mark.parametrize(
    ("evidence", "number", "document"),
    [
        ("The July picnic raised 466 euros.", None, "b"),
        ("The May  picnic raised 120\teuros", "120", "a"),
        ('Document 2 states that "The July picnic raised 466 euros."', "466", "b"),
        ("It says \u201craised 466 euros\u201d there.", "466", "b"),
        ('"The July picnic" and "466 euros"', "466", "b"),
        ("The July picnic raised 466 euros.", "120", None),
        ('"The July picnic" raised 466', "466", None),
        ("The July picnic raised 500 euros.", "500", None),
        ("the july picnic raised 466 euros", "466", None),
        ("raised 46", "46", None),
        ("66 euros", "66", None),
        ("200 people", "200", None),
        ("It drew 1", "1", None),
        ("5 in all", "5", None),
        ("three by bus", "3", "b"),
        ("", None, None),
        (' "" ', None, None),
    ],
)
def test_evidence_stands_verbatim_in_a_document(
    evidence: str, number: str | None, document: str | None
) -> None:
    assert find_evidence(evidence, DOCUMENTS, parse_number(number) if number else None) == document
