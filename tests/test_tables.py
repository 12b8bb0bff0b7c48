"""Tables of documents: their heads, rows and cells, and what a response says of another cell."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.tables import answers
from reward.claims.tables import Table, laid_out, tables_of, words_of
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, Outcome, RagQuery

DATA = Path(__file__).with_name("data")
PAIRS = [json.loads(line) for line in (DATA / "table_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
LAPTOPS = (
    "| Model | Weight (kg) | Price |\n|---|---|---|\n| Aero 14 | 1.18 | €1,149 |\n| Aero 16 | 1.74 | €1,399 |"
)
SALES = """\
 |  | Years Ended September 30, |
 | 2019 | 2018 | 2017
(in millions) |  |  |
Revenue: |  |  |
Fixed price | $ 1,452.4 | $ 1,146.2 | $ 1,036.9
Other | 44.1 | 56.7 | 70.8
Total revenue | $1,496.5 | $1,202.9 | $1,107.7
Net income (loss)1 | 30.2 | (12.5) | 8.1
"""


def only(text: str) -> Table:
    (table,) = tables_of(text)
    return table


def audit(document: str, answer: str, query: str = "?") -> Outcome:
    asked = RagQuery(id="q", query=query, documents=(Document(id="d", text=document),))
    return lexical_audit(asked, answer, AuditConfig()).outcome


def test_a_table_of_markdown_has_heads_and_cells() -> None:
    table = only(f"Our laptops:\n\n{LAPTOPS}\n\nPrices include VAT.")
    assert [label.text for label in table.rows] == ["Aero 14", "Aero 16"]
    assert [label.text for label in table.columns] == ["", "Weight (kg)", "Price"]
    assert [table.text[cell.start : cell.end].strip() for cell in table.cells] == [
        "1.18",
        "€1,149",
        "1.74",
        "€1,399",
    ]
    cell = table.at(table.text.index("1,399"))
    assert cell is not None and (cell.row, cell.column) == (1, 2)
    assert table.at(table.text.index("Aero 16")) is None
    assert table.at(table.text.index("VAT")) is None


def test_tabs_make_a_table_too() -> None:
    table = only("Pupil\tMaths\tDays absent\nAmelie Brandt\t2\t4\nCem Aydin\t1\t0\n")
    assert [label.text for label in table.rows] == ["Amelie Brandt", "Cem Aydin"]
    assert [label.text for label in table.columns] == ["", "Maths", "Days absent"]


def test_heads_of_several_lines_and_headings_of_rows() -> None:
    table = only(SALES)
    assert [sorted(label.years) for label in table.columns] == [[], ["2019"], ["2018"], ["2017"]]
    assert [label.name for label in table.rows] == ["Fixed price", "Other", "Total revenue", "Net income"]
    assert "revenue" in table.rows[0].context
    assert table.rows[3].words == {"net", "income"}  # and not the number of its footnote


def test_heads_further_down_begin_another_table_with_the_years_of_all() -> None:
    first, second = tables_of("Item | 2019 | 2018\nCash | 5 | 6\n | 2017 | 2016\nCash | 7 | 8\n")
    assert [sorted(label.years) for label in second.columns] == [[], ["2017"], ["2016"]]
    assert first.years == second.years == {"2016", "2017", "2018", "2019"}


def test_a_line_that_is_only_a_bar_is_left_out() -> None:
    table = only("| Name | Age |\n|---|---|\n| Ann | 5 |\n|\n| Bo | 6 |")
    assert [label.text for label in table.rows] == ["Ann", "Bo"]


def test_text_alone_is_no_head_below_a_rule() -> None:
    table = only(
        "| Name | Role | Since |\n|---|---|---|\n| Ann | Head | 1 May 2015 |\n| Ben | Cook | 2 May 2019 |"
    )
    assert [label.text for label in table.rows] == ["Ann", "Ben"]
    assert table.rows[1].cell_texts[0] == {"cook"}


@pytest.mark.parametrize("text", ["", "a | b", "no table\nhere", "|---|\n|---|\n", "Text\n|\n|\nmore"])
def test_a_text_without_a_table_has_no_cells(text: str) -> None:
    assert not any(table.cells for table in tables_of(text))


def test_a_table_beyond_the_bounds_is_left_out() -> None:
    assert tables_of("".join(f"row {place} | {place}\n" for place in range(501))) == ()
    assert tables_of("head" + " | 1" * 101 + "\nrow" + " | 2" * 101) == ()


def test_numbers_go_with_the_word_beside_them() -> None:
    assert words_of("the Aero 14 in 2019") == {"aero", "aero 14", "14 in", "2019", "in 2019"}
    assert words_of("non-current assets") == {"noncurrent", "asset"}


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What was the total revenue in 2018?", "$1,202.9 million"),
        ("What was the total revenue in 2018?", "Total revenue was $1,202.9 million in 2018."),
        (
            "What was the total revenue in 2018?",
            "It was $1,202.9 million, down from $1,496.5 million the year before.",
        ),
        ("How did the company do in 2019?", "Sales were $1,496.5 million and earnings $30.2 million."),
        ("What was the net income in 2019?", "30.2"),
        ("What was revenue in 2019?", "It rose to $1,496.5 million from $1,202.9 million in 2018."),
    ],
)
def test_the_right_cell_supports(query: str, answer: str) -> None:
    assert audit(SALES, answer, query) is Outcome.SUPPORTED


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What was the total revenue in 2018?", "$1,107.7 million"),  # of 2017
        (
            "What was the total revenue in 2018?",
            "Total revenue was $1,146.2 million in 2018.",
        ),  # at a fixed price
        ("What was the net income in 2019?", "44.1"),  # Other
        ("?", "In 2017 the company had a net income of 30.2 million."),
        ("?", "Fixed price sales were $44.1 million in 2019."),
    ],
)
def test_another_cell_refutes(query: str, answer: str) -> None:
    assert audit(SALES, answer, query) is Outcome.REFUTED


YEARS = "| Year | Revenue |\n|---|---|\n| 2019 | 500 |\n| 2020 | 450 |"
LEADERS = (
    '[{"name": "Ann Lee", "manager": "Bo Kim", "salary": 52000},'
    ' {"name": "Bo Kim", "manager": "Cy Day", "salary": 61000}]'
)


@pytest.mark.parametrize(
    ("document", "answer", "query"),
    [
        (YEARS, "After 2019, revenue fell to 450.", "?"),
        (YEARS, "In the year after 2019 revenue was 450.", "?"),
        (YEARS, "500", "What was the revenue before 2020?"),
        (LEADERS, "61000", "What does the manager of Ann Lee earn?"),
        (LEADERS, "Bo Kim, the manager of Ann Lee, earns 61000.", "?"),
        (LAPTOPS, "It costs €1,399.", "My Aero 14 broke. What is the price of the larger one?"),
        (LAPTOPS, "You get the larger Aero for €1,399 instead of the Aero 14.", "?"),
        (LAPTOPS, "The one with the best price weighs 1.18 kg.", "?"),
        (SALES, "In 2019 it had $1,452.4 million at fixed prices, against $1,146.2 million.", "?"),
    ],
)
def test_what_is_beside_a_row_or_a_year_is_left_alone(document: str, answer: str, query: str) -> None:
    assert audit(document, answer, query) is Outcome.SUPPORTED


def test_the_note_names_the_cell() -> None:
    query = RagQuery(id="q", query="What does the Aero 16 cost?", documents=(Document(id="d", text=LAPTOPS),))
    (claim,) = lexical_audit(query, "€1,149", AuditConfig()).claims
    assert claim.state is ClaimState.NOT_IN_DOCUMENTS
    assert claim.note == "the documents say it of another: Aero 14"


def test_what_other_text_says_too_is_not_held_against_the_table() -> None:
    query = "What does the Aero 16 cost?"
    assert audit(f"{LAPTOPS}\n\nUntil Sunday the Aero 16 is €1,149.", "€1,149", query) is Outcome.SUPPORTED


def test_the_head_of_a_column_gives_the_unit() -> None:
    assert audit(LAPTOPS, "The Aero 14 weighs 1,180 g.") is Outcome.SUPPORTED
    assert audit(LAPTOPS, "The Aero 14 weighs 1,740 g.") is Outcome.REFUTED
    assert audit(LAPTOPS, "The Aero 14 weighs 1,190 g.") is Outcome.REFUTED


CITIES = {
    "csv": "City,Population,Area (km²)\nOslo,709000,454.1\nBergen,291000,464.7\nTrondheim,212000,341.2",
    "json": '[{"city": "Oslo", "population": 709000}, {"city": "Bergen", "population": 291000}]',
    "pairs": "City: Oslo\nPopulation: 709000\n\nCity: Bergen\nPopulation: 291000",
    "html": (
        "<table><tr><th>City</th><th>Population</th></tr>\n<tr class='a'>\n<td>Oslo</td>\n<td>709000</td>"
        "</tr><tr><td>Bergen</td><td>291000</td></tr></table>"
    ),
}


@pytest.mark.parametrize("document", CITIES.values(), ids=CITIES)
def test_tables_in_other_formats(document: str) -> None:
    assert len(laid_out(document)) == len(document)
    assert audit(document, "Oslo has 709,000 inhabitants.") is Outcome.SUPPORTED
    assert audit(document, "Oslo has 291,000 inhabitants.") is Outcome.REFUTED
    assert audit(document, "709,000", "How many people live in Oslo?") is Outcome.SUPPORTED
    assert audit(document, "291,000", "What is the population of Oslo?") is Outcome.REFUTED


def test_numbers_of_comma_separated_lines_are_whole_and_quoted_as_written() -> None:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=CITIES["csv"]),))
    (name, number) = lexical_audit(query, "Bergen covers 464.7 km².", AuditConfig()).claims
    assert (name.state, number.state) == (ClaimState.SUPPORTED, ClaimState.SUPPORTED)
    (vote,) = number.votes
    assert vote is not None and vote.evidence == "Bergen,291000,464.7"
    assert audit(CITIES["csv"], "Bergen covers 465 km².") is Outcome.SUPPORTED  # rounded
    assert audit(CITIES["csv"], "Bergen covers 7 km².") is Outcome.REFUTED


@pytest.mark.parametrize(
    "text",
    [
        "It cost 1,234,567 dollars,\nwhich was,by then,a lot,\nand 2,345,678 more,said he,\nlater,too.",
        "1,234,567\n2,345,678\n3,456,789",
        "He said Ann,Bob,Cy came.\nNext were red,blue,green cars.\nThen 12,400,350 people came.",
        "Yes, no, maybe\nred, green, blue\none, two, three",
    ],
)
def test_lines_with_commas_alone_are_no_table(text: str) -> None:
    assert laid_out(text) == text


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: f"{row['writer']}: {row['answer'][:60]}")
def test_pairs_by_people_who_had_not_seen_the_code(row: dict[str, str]) -> None:
    is_refuted = audit(row["document"], row["answer"], row["query"]) is Outcome.REFUTED
    is_judged_rightly = is_refuted == (row["label"] == "wrong")
    assert is_judged_rightly == ("judged_wrongly" not in row)


def test_other_cells_of_real_reports_refute() -> None:
    """Gold answers of TAT-QA, and other numbers of their rows and columns, as in `python -m bench tables`."""
    refuted = Counter[str]()
    for query, answer, _, what in answers(DATA / "tatqa_cc-by-4.0" / "tatqa_dataset_dev.json"):
        refuted[what] += lexical_audit(query, answer, AuditConfig()).outcome is Outcome.REFUTED
    assert refuted == {"as_is": 0, "other_number_of_row": 11, "other_number_of_column": 9}  # of 11 each
