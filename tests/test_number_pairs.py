"""Pairs of numbers, written by hand: whether they are equal, one supports the other, or they differ, and why.

The pairs are in `data/number_pairs.tsv`.

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

from reward.claims.numbers import Number, equal, find_numbers, parse_number, supports
from reward.claims.numbers.conventions import conventions_of

PAIRS = Path(__file__).with_name("data") / "number_pairs.tsv"
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
