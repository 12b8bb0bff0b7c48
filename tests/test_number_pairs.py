"""Pairs of numbers, written by hand: whether they are equal, one supports the other, or they differ, and why.

The pairs stand in `data/number_pairs.tsv`, and `docs/numbers.md` ends with the same pairs as tables. To write
those again after a change to the pairs: `python tests/test_number_pairs.py`.

A cell holds a number alone or in its context ("in 2021"). `other` is read by what it shows itself of how it
writes numbers, `claim` by what it shows itself and then by `other`, as an answer and its document are.
Characters that a reader could not see or tell apart are written as `\\u2009`. The relation is one of

    equal         the two say the same
    supports      they are not equal, but a source that says `other` bears `claim` out
    different     neither
    not_a_number  `claim` is refused as a number; `other` is empty
"""

import csv
import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from reward.claims.numbers import Number, conventions_of, equal, find_numbers, parse_number, supports

PAIRS = Path(__file__).with_name("data") / "number_pairs.tsv"
PAGE = Path(__file__).parents[1] / "docs" / "numbers.md"
TABLES_BEGIN = "## The pairs\n"
SAYS = {"equal": "=", "supports": "supported by", "different": "≠", "not_a_number": "refused"}


class Pair(NamedTuple):
    """One row of the file, its cells as they stand there."""

    topic: str
    claim: str
    other: str
    relation: str
    why: str


def pairs() -> list[Pair]:
    """All rows of the file, in its order."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    assert tuple(header) == Pair._fields
    return [Pair(*row) for row in rows]


def unescaped(cell: str) -> str:
    """A cell with its `\\u2009` as characters."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), cell)


def number_in(cell: str, *others: str) -> Number:
    """The number of a cell, which holds nothing else or its context as well."""
    text = unescaped(cell)
    conventions = conventions_of(text, *map(unescaped, others))
    alone = parse_number(text, conventions=conventions)
    numbers = [alone] if alone else find_numbers(text, conventions=conventions)
    assert len(numbers) == 1, f"{text!r} is {len(numbers)} numbers"
    return numbers[0]


def relation(claim: Number, other: Number) -> str:
    """The relation of two numbers as the code under test sees it."""
    if equal(claim, other):
        return "equal"
    return "supports" if supports(claim, other) else "different"


def name(pair: Pair) -> str:
    return f"{pair.claim} {SAYS[pair.relation]} {pair.other}".strip()


@pytest.mark.parametrize("pair", [p for p in pairs() if p.other], ids=name)
def test_two_numbers_are_what_their_row_says(pair: Pair) -> None:
    assert relation(number_in(pair.claim, pair.other), number_in(pair.other)) == pair.relation, pair.why


@pytest.mark.parametrize("pair", [p for p in pairs() if p.relation != "supports" and p.other], ids=name)
def test_equality_does_not_depend_on_the_order(pair: Pair) -> None:
    assert equal(number_in(pair.other), number_in(pair.claim, pair.other)) == (pair.relation == "equal")


@pytest.mark.parametrize("pair", [p for p in pairs() if not p.other], ids=name)
def test_what_is_no_number_is_refused(pair: Pair) -> None:
    assert parse_number(unescaped(pair.claim)) is None, pair.why


def test_the_file_is_large_and_says_nothing_twice() -> None:
    rows = pairs()
    assert len(rows) >= 400
    assert {row.relation for row in rows} == set(SAYS)
    assert all(row.claim and row.why and bool(row.other) == (row.relation != "not_a_number") for row in rows)
    assert len({(row.claim, row.other) for row in rows}) == len(rows)
    both_ways = {frozenset((r.claim, r.other)) for r in rows if r.relation == "equal"}
    assert len(both_ways) == sum(r.relation == "equal" for r in rows)
    assert len([topic for topic, _ in groupby(row.topic for row in rows)]) == len({row.topic for row in rows})


def test_the_page_ends_with_the_pairs_of_the_file() -> None:
    prose, _, tables = PAGE.read_text(encoding="utf-8").partition(TABLES_BEGIN)
    assert tables == rendered(pairs()), "run: python tests/test_number_pairs.py"
    assert prose.startswith("# ")


def test_the_page_names_the_kind_of_each_example() -> None:
    prose = PAGE.read_text(encoding="utf-8").partition(TABLES_BEGIN)[0]
    table = re.findall(r"^\| `(\w+)` \| (.+) \|", prose, re.MULTILINE)
    assert len(table) == 13
    for kind, cells in table:
        for example in re.findall(r"`([^`]+)`", cells.partition(" | ")[0]):
            assert number_in(example).kind.value == kind, example


def rendered(rows: list[Pair]) -> str:
    """The tables of the page: one a topic, in the file's order."""
    tables = [f"\n{len(rows)} rows of `tests/data/number_pairs.tsv`; each one is a test.\n"]
    for topic, group in groupby(rows, key=lambda row: row.topic):
        lines = [f"| {code(r.claim)} | {SAYS[r.relation]} | {code(r.other)} | {r.why} |" for r in group]
        tables.append(
            "\n".join([f"\n### {topic}\n", "| claim | | other | why |", "|---|---|---|---|", *lines, ""])
        )
    return "".join(tables)


def code(cell: str) -> str:
    """A cell as Markdown code, also when it holds a backtick."""
    if not cell:
        return ""
    return f"`` {cell} ``" if "`" in cell else f"`{cell}`"


if __name__ == "__main__":
    prose = PAGE.read_text(encoding="utf-8").partition(TABLES_BEGIN)[0]
    PAGE.write_text(prose + TABLES_BEGIN + rendered(pairs()), encoding="utf-8")
