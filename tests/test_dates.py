"""Dates as a kind of claim: centuries, parts of years, other languages, names of days, and what is no date.

The pairs in `data/date_pairs.tsv` go through the whole audit without a model.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from reward.claims import targets_of
from reward.claims.dates import Dates
from reward.claims.numbers import find_numbers, parse_number
from reward.claims.numbers.writing import canonical
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery
from tests.kinds import ANY, kinds

PAIRS = Path(__file__).with_name("data") / "date_pairs.tsv"
DATES = Dates(ANY)


def pairs() -> list[dict[str, str]]:
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def dates_in(text: str) -> list[str]:
    return [text[date.start : date.end] for date in DATES.find(text)]


def claims_of(text: str) -> list[tuple[str, str]]:
    found = targets_of(text, kinds("number", "name", "date"))
    return [(target.kind.name, text[target.start : target.end]) for target in found]


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: f"{pair['answer']} | {pair['document']}")
def test_the_audit_says_of_an_answer_what_its_row_says(pair: dict[str, str]) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=pair["document"]),))
    config = AuditConfig(kinds=("number", "name", "date"))
    outcome = lexical_audit(query, pair["answer"], config).outcome.value.lower()
    assert outcome == pair["expected"], pair["why"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("built in the late 19th century", ["late 19th century"]),
        ("built in the 17th and 18th centuries", ["17th", "18th centuries"]),
        ("a film of 20th Century Fox", []),
        ("half a century ago, in the last quarter of the match", []),
        ("in his late twenties, at 21 years, for a century", []),
        ("the second half of the match, the first half", []),
        ("sales of Q3 2018 and 3Q18", ["Q3 2018", "3Q18"]),
        ("the Summer 2016 Olympics", ["2016"]),
        ("3 Mars bars and 5 de luxe rooms", []),
        ("The Sun, a paper, sat on Sat. and wed on Fri, 3 May", ["Fri", "3 May"]),
        ("Guy Montag and Freitag", []),
        ("Mardi Gras by Domingo", []),
        ("am Montag, dem 3. Mai", ["Montag", "3. Mai"]),
        ("a weekend trip on weekdays", ["weekdays"]),
        ("on Christmas Eve, a Christmas tree", ["Christmas Eve"]),
        ("3 hours a day, 2100 hours of work, 14 h 30 min", []),
        ("take one in the morning and two in the evening", []),
    ],
)
def test_dates_are_found_and_nothing_else_is_one(text: str, expected: list[str]) -> None:
    assert dates_in(text) == expected


def test_the_words_of_a_date_are_no_names() -> None:
    assert claims_of("It rose in Q3 2018.") == [("date", "Q3 2018")]
    assert claims_of("It opened on Christmas Day.") == [("date", "Christmas Day")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Unplug it. 2. Wait. 3. Plug it in.", []),
        ("Do this: 1. Unplug it. 2. Wait.", []),
        ("1) Unplug it. 2) Wait.", []),
        ("It sold 2. Then it closed.", ["2"]),
        ("It sold one. 2. Then 3. Next.", ["2", "3"]),
        ("Dead: 1. Hurt: 2. Then it ended.", ["1", "2"]),
        ("Steps: 1. Unplug it. 3. Plug it in.", ["1", "3"]),
        ("1. Unplug it. 2. wait.", ["2"]),
    ],
)
def test_the_places_of_a_list_on_one_line_are_no_numbers(text: str, expected: list[str]) -> None:
    written = [text[number.start : number.end] for number in find_numbers(text)]
    assert written == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("3Q18", "Q3 2018"),
        ("third quarter of 2018", "Q3 2018"),
        ("H2 2020", "H2 2020"),
        ("fall of 2019", "autumn 2019"),
        ("Q3", "Q3"),
        ("lundi", "Monday"),
        ("weekdays", "Monday\u2013Friday"),
        ("19th century", "1800\u20131899"),
        ("3rd century BC", "300 BC\u2013201 BC"),
        ("Christmas Day", "--12-25"),
        ("21. Dezember 2019", "2019-12-21"),
    ],
)
def test_a_bracket_is_read_and_written_in_one_way(answer: str, expected: str) -> None:
    date = DATES.read(answer)
    assert date is not None and canonical(date) == expected


def test_a_century_equals_its_hundred_years_and_votes_for_it_agree() -> None:
    first, second = DATES.read("nineteenth century"), DATES.read("1800s")
    assert first is not None and second is not None
    assert DATES.equal(first, second) and DATES.bears_out(second, first)


def test_a_year_as_the_consensus_bears_a_century_out() -> None:
    asked, vote = DATES.find("built in the 18th century")[0], DATES.read("1743", of_documents=True)
    assert vote is not None
    assert DATES.bears_out(DATES.taken_as(vote, asked), asked)
    early = parse_number("1643")
    assert early is not None and not DATES.bears_out(DATES.taken_as(early, asked), asked)


def test_a_count_of_the_documents_never_supports_a_century() -> None:
    query = RagQuery(
        id="q", query="", documents=(Document(id="d", text="It has 17 rooms. 1743 books burnt."),)
    )
    lookup = DATES.lookup(query.documents)
    for century in ("the first century", "the 18th century"):
        assert lookup.find(DATES.find(century)[0]) is None


def test_a_question_that_names_the_quarter_gives_it_away() -> None:
    quarter = DATES.find("It fell in Q3 2018.")[0]
    assert DATES.gives_away("What fell in the third quarter?", quarter)
    assert not DATES.gives_away("When did it fall?", quarter)


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        (
            "Invoice of 17 October 2023. Payable within 14 days of the invoice date.",
            "It was due within two weeks of 17 October 2023, i.e. by 31 October 2023.",
            "It was due within two weeks of 17 October 2023, i.e. by 30 October 2023.",
        ),
        (
            "Die ersten sechs Monate sind Probezeit. Das Arbeitsverhältnis beginnt am 1. April 2024.",
            "Die Probezeit dauert sechs Monate ab dem 1. April 2024 und endet am 30. September 2024.",
            "Die Probezeit dauert sechs Monate ab dem 1. April 2024 und endet am 31. Oktober 2024.",
        ),
        (
            "The office is open Monday to Friday from 9 to 5.",
            "The office is open Monday to Friday.",
            "The office is open Monday to Thursday.",
        ),
        (
            "Ouverte le samedi de 10 h à 17 h sans interruption.",
            "Ouverte le samedi de 10 heures à 17 heures.",
            "Ouverte le samedi de 10 heures à 18 heures.",
        ),
    ],
)
def test_terms_and_hours_from_one_to_another(document: str, right: str, wrong: str) -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    outcomes = [lexical_audit(query, answer, AuditConfig()).outcome for answer in (right, wrong)]
    assert outcomes == [Outcome.SUPPORTED, Outcome.REFUTED]
