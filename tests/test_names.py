"""Names as a kind of claim: what is found in a text, when two are one, and where documents hold one."""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims.names import Name, Names, find_names
from reward.claims.names.index import index_names
from reward.claims.names.model import name_of
from reward.claims.names.uncapitalised import with_capitals
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery
from tests.kinds import ANY

DATA = Path(__file__).parent / "data"
NAMES = Names(ANY)


def rows(file: str) -> list[dict[str, str]]:
    with (DATA / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def query(document: str, title: str = "") -> RagQuery:
    return RagQuery(id="q", query="", documents=(Document(id="d", title=title, text=document),))


def read(answer: str) -> Name:
    name = NAMES.read(answer)
    assert name is not None, answer
    return name


def found(text: str) -> list[str]:
    names = find_names(text)
    assert all(text[name.start : name.end] == name.text for name in names)
    return [name.text for name in names]


@pytest.mark.parametrize("row", rows("name_pairs.tsv"), ids=lambda row: f"{row['claim']}|{row['other']}")
def test_a_pair_is_judged_as_a_careful_reader_judges_it(row: dict[str, str]) -> None:
    asked, answer = read(row["claim"]), NAMES.read(row["other"])
    same = answer is not None and NAMES.bears_out(NAMES.taken_as(answer, asked), asked)
    assert same is (row["relation"] == "same"), row["why"]


@pytest.mark.parametrize("row", rows("name_lookups.tsv"), ids=lambda row: row["answer"][:60])
def test_documents_hold_the_names_of_an_answer_or_do_not(row: dict[str, str]) -> None:
    asked = query(row["document"])
    names = find_names(with_capitals(row["answer"].replace("\\n", "\n"), asked))
    lookup = NAMES.lookup(asked.documents)
    verdict = "supported" if all(lookup.find(name) for name in names) else "refuted"
    assert (verdict if names else "none") == row["relation"], row["why"]


def test_the_tables_are_large_enough() -> None:
    assert len(rows("name_pairs.tsv")) >= 190
    assert len(rows("name_lookups.tsv")) >= 220


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The prize went to Marie Curie in Paris.", ["Marie Curie", "Paris"]),
        ("Dr. Jane Smith's book sells.", ["Jane Smith"]),
        ("J. K. Rowling met J.R.R. Tolkien.", ["J. K. Rowling", "J.R.R. Tolkien"]),
        (
            "He left the University of Oslo for the Bank of England.",
            ["University of Oslo", "Bank of England"],
        ),
        ("Ludwig van Beethoven and Leonardo da Vinci", ["Ludwig van Beethoven", "Leonardo da Vinci"]),
        ("However, Bergen won. Overall, nobody lost.", ["Bergen"]),
        ("1. **Bergen**: a city\n2. Rinse the rice", ["Bergen"]),
        ("South Korea won. The North lost.", ["South Korea", "North"]),
        ("She asked the White House.", ["White House"]),
        ("**White House Staff**", []),
        ("Theresa May spoke on May 5 and in June.", ["Theresa May"]),
        ("Passage 2 and Document 1 say so, see Table 3.", []),
        ("Heat it to 350° F. Combine the flour.", []),
        ("I think I'm OK, and it is NOT hot.", []),
        ("The WHO warned the US.", ["WHO", "US"]),
        ("WHO SAID IT?", []),
        ("AT&T sold the iPhone to Åse Ødegård.", ["AT&T", "iPhone", "Åse Ødegård"]),
        ("Barack Obama's friend. Obama left.", ["Barack Obama", "Obama"]),
        ("The CDC, e.g. in Atlanta, warned.", ["CDC", "Atlanta"]),
        ("Henry the Eighth met Peter Falk.", ["Henry the Eighth", "Peter Falk"]),
        ("In Celsius, or degrees Fahrenheit; 6 on the Richter scale. Gerhard Richter", ["Gerhard Richter"]),
        ("Gardeners must water. Evacuees were told. Meyers was told. Packers won.", ["Meyers", "Packers"]),
        (
            "Emily sold it. Riesling is sweet. Guinness grew. Denise ran.",
            ["Emily", "Riesling", "Guinness", "Denise"],
        ),
        ("Running helps. Rarely it fails. Kindness counts. Organising it is hard. Possibly so.", []),
        ("King said so. Brown died. Brown bears sleep. Lane closures follow.", ["King", "Brown"]),
        ("Reading won the cup. Reading is fun. Nice hosted it. Apple sold it.", ["Reading", "Nice", "Apple"]),
        (
            '*The Salt Road* is a film, "The Big Red Boat" too. **Key Facts** "Yes"',
            ["Salt Road", "Big Red Boat"],
        ),
        ("Germans are here. Republicans were, too.", ["Germans", "Republicans"]),
        ("'tis iPhone, eBay and d'Artagnan's McDonald", ["iPhone", "eBay", "McDonald"]),
        ("", []),
    ],
)
def test_names_are_found_by_their_capitals(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    "markup",
    [
        *("**{}**", "*{}*", "`{}`", "<b>{}</b>", "[{}](https://a.org)", "***{}***"),
        *("({})", "[{}]", '"{}"', "\u201c{}\u201d", "\u2014 {}", "$\\boxed{{{}}}$"),
    ],
)
def test_common_words_are_a_name_in_any_markup(markup: str) -> None:
    """A policy would learn to set what it makes up in bold."""
    marked = markup.format("United States")
    assert found(f"The answer is {marked}.") == ["United States"]
    assert found(f"The answer is {marked} according to it.") == ["United States"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- **Green Bay** won the game.", ["Green Bay"]),
        ("The answer: United States.", ["United States"]),
        ("They met in the town of **Reading**.", ["Reading"]),
        ("**Key Point:** Be patient.", []),
        ("Stir it. **Next Step:** Add salt.", []),
    ],
)
def test_markup_alone_makes_no_name(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "yes",
        "No",
        "42",
        "1990",
        "in 1990",
        "20 March 2020",
        "Monday",
        "cannot answer",
        "unknown",
        "?",
        "Paris and London",
        "Paris, London",
        "Paris or London",
        "It was Marie Curie",
        "the first film",
        "466 euros",
    ],
)
def test_an_answer_that_is_no_single_name_is_not_read(answer: str) -> None:
    assert NAMES.read(answer) is None


ANSWERS = ["Marie Curie", "Curie", "Pierre Curie", "M. Curie", "marie curie", "Marie Skłodowska Curie"]
ANSWERS += [
    "University of Oslo",
    "Oslo University",
    "Oslo",
    "US",
    "America",
    "South America",
    "Paris, Texas",
    "Paris",
]
ANSWERS += [
    "WHO",
    "World Health Organization",
    "Bill Clinton",
    "William Clinton",
    "New York",
    "York",
    "French",
]


@given(st.sampled_from(ANSWERS), st.lists(st.sampled_from(ANSWERS), min_size=3, max_size=3))
def test_equal_is_an_equivalence_on_answers_as_they_are_taken(asked: str, answers: list[str]) -> None:
    taken = [NAMES.taken_as(read(answer), read(asked)) for answer in answers]
    for a, b, c in itertools.permutations(taken):
        assert NAMES.equal(a, a)
        assert NAMES.equal(a, b) is NAMES.equal(b, a)
        assert not (NAMES.equal(a, b) and NAMES.equal(b, c)) or NAMES.equal(a, c)
        assert not NAMES.equal(a, b) or NAMES.written(a, read(asked)) == NAMES.written(b, read(asked))
        assert not NAMES.equal(a, b) or NAMES.bears_out(a, read(asked)) is NAMES.bears_out(b, read(asked))


@pytest.mark.parametrize(
    ("answer", "asked", "text"),
    [
        ("CURIE", "Marie Curie", "Marie Curie"),
        ("pierre curie", "Marie Curie", "Pierre Curie"),
        ("US", "America", "America"),
        ("Oslo University", "University of Oslo", "University of Oslo"),
    ],
)
def test_an_answer_is_written_in_the_terms_of_what_was_asked(answer: str, asked: str, text: str) -> None:
    assert NAMES.written(NAMES.taken_as(read(answer), read(asked)), read(asked)) == text


@pytest.mark.parametrize(
    ("question", "name", "given"),
    [
        ("What did Marie Curie discover?", "Marie Curie", True),
        ("What did Curie discover?", "Marie Curie", True),
        ("what did marie curie discover?", "Marie Curie", True),
        ("What did Marie discover?", "Marie Curie", True),
        ("Who married Pierre Curie?", "Marie Curie", False),
        ("What does the WHO say?", "World Health Organization", True),
        ("What does the World Health Organization say?", "WHO", True),
        ("Who said so?", "WHO", False),
        ("Where is the University of Oslo?", "Oslo", True),
        ("Which university is in Oslo?", "University of Oslo", False),
        ("Which French city is meant?", "France", True),
        ("Where is it?", "Paris", False),
        ("Who makes windows?", "Windows", True),
    ],
)
def test_a_question_gives_a_name_away_in_any_writing(question: str, name: str, given: bool) -> None:
    assert NAMES.gives_away(question, read(name)) is given


DOCUMENT = (
    "Pierre Curie met Marie Curie in New York. Curie won. The WHO thanked those who came to South Korea."
)


@pytest.mark.parametrize(
    ("quote", "name", "held"),
    [
        ("met Marie Curie in", "Marie Curie", True),
        ("Pierre Curie met", "Marie Curie", False),
        ("Curie won", "Marie Curie", True),
        ("Curie won", "Pierre Curie", False),
        ("York", "York", False),
        ("New York", "New York", True),
        ("Korea", "Korea", False),
        ("South Korea", "North Korea", False),
        ("those who came", "WHO", False),
        ("The WHO thanked", "World Health Organization", True),
        ("Curie met Marie", "Marie Curie", False),
    ],
)
def test_a_quotation_holds_the_name_that_its_document_has_there(quote: str, name: str, held: bool) -> None:
    start = DOCUMENT.index(quote)
    stated = NAMES.stated(DOCUMENT, start, start + len(quote), read(name))
    assert (stated is not None) is held


SENTENCE = "Marie Curie met Albert Einstein in Brussels."


@pytest.mark.parametrize(
    ("question", "name", "can"),
    [
        ("Whom did Marie Curie meet in Brussels?", "Albert Einstein", True),
        ("Where did Marie Curie meet Albert Einstein?", "Brussels", True),
        ("When did Marie Curie meet Albert Einstein?", "Brussels", False),
        ("How many people met in Brussels?", "Marie Curie", False),
        ("Whom did Albert Einstein meet in Brussels?", "Albert Einstein", False),
    ],
)
def test_a_question_can_be_about_a_name(question: str, name: str, can: bool) -> None:
    assert NAMES.asks_for(question, read(name), name) is can


def test_the_place_is_the_one_nearest_to_the_context_and_is_told_exactly() -> None:
    document = Document(
        id="d", text="Oslo is cold in winter. " + "Rain fell. " * 30 + "Oslo hosts a music festival."
    )
    place = NAMES.lookup([document]).find(read("Oslo"), context=lambda: "A music festival is held in Oslo.")
    assert place is not None
    assert place.document is document
    assert place.mention.start == document.text.rindex("Oslo")


def test_a_title_holds_a_name_too() -> None:
    asked = query("He was born in 1952.", title="Vladimir Putin")
    place = NAMES.lookup(asked.documents).find(read("Putin"))
    assert place is not None
    assert (place.mention.start, place.mention.end) == (0, 0)


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("They raised the value-added tax.", True),
        ("It has a very able team.", False),
        ("The value of added taxes is known.", False),
    ],
)
def test_small_words_are_an_acronym_only_as_one_term(text: str, is_there: bool) -> None:
    assert bool(index_names(text).find(name_of("VAT", 0, 3))) is is_there


def test_the_plural_of_an_acronym_is_the_same() -> None:
    index = index_names("People (full-time equivalents) at year end.")
    assert index.find(name_of("FTE", 0, 3)) and index.find(name_of("FTEs", 0, 4))
    assert not index_names("Your flexible spending account ends.").find(name_of("FSA", 0, 3))


@pytest.mark.parametrize(
    ("document", "response", "contradicted"),
    [
        ("It lives in the forests of southern Borneo.", "It lives in the north of Borneo.", ["north"]),
        ("A bomb damaged the north wing.", "The northern wing was hit.", []),
        ("A bomb damaged the north wing.", "The south-west wing was hit.", ["south-west"]),
        (
            "Areas east of Ramadi fell. Routes south of the city are cut.",
            "They fell to the east of the city.",
            [],
        ),
        ("Ash is 3 km north of Elm.", "Elm is 3 km south of Ash.", []),
        ("The wing lies in South Halden.", "The north wing was hit.", []),  # of a name
        ("It hit the coast.", "It hit the western coast.", []),  # perhaps: nobody says otherwise
        ("It blew from the west, then from the east.", "An easterly wind blew; the youth was best.", []),
    ],
)
def test_a_direction_is_a_claim_only_where_the_documents_say_the_opposite(
    document: str, response: str, contradicted: list[str]
) -> None:
    names = Names(query(document)).find(response)
    assert [name.text for name in names if name.text.islower()] == contradicted
    verdict = lexical_audit(query(document), response, AuditConfig(kinds=("name",)))
    assert (verdict.outcome is Outcome.REFUTED) == bool(contradicted)


@pytest.mark.parametrize("answer", ["ßolmek ßandor", "\u0149oldan \u0149arvik", "simone delacour won"])
def test_capitals_that_are_added_move_no_character(answer: str) -> None:
    asked = query("The winner was Ann Lee, with Bo.")
    assert len(with_capitals(answer, asked)) == len(answer)


def test_a_word_without_end_is_not_looked_up_at_each_of_its_letters() -> None:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        find_names(f"Der Rat ging mit {'Abcdefghij' * 2_000} nicht und auch nicht in das Haus.")
    finally:
        sys.setprofile(None)
    assert calls < 2_000
