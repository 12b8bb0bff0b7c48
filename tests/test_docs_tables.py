"""The docs' tables of promises: each names a test that exists, or says that it is not kept yet."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "why-this-auditor.md"
NUM_ROWS = 13  # ways in which the published code departs from the paper


def names_of_all_tests() -> set[str]:
    """The names of all test functions, read without importing their files."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.glob("test_*.py")]
    functions = (node for tree in trees for node in tree.body)
    return {
        node.name
        for node in functions
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def tables() -> dict[str, list[list[str]]]:
    """The rows of each section's table, by the section's heading; a row is its cells, without the head."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    rows = {}
    for section in sections:
        lines = [line for line in section.splitlines() if line.startswith("| ")]
        rows[section.splitlines()[0]] = [line.strip("| ").split(" | ") for line in lines[1:]]
    return rows


def promises() -> list[str]:
    """The rows that promise something: of all tables but the last, whose tests are found by name."""
    *first, _ = tables().values()
    return [" | ".join(row) for table in first for row in table]


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.split(" | ")[0])
def test_each_promise_has_a_test_that_exists_or_says_not_yet(promise: str) -> None:
    named = re.findall(r"`(test_\w+)`", promise)
    assert named or promise.rstrip().endswith("not yet")
    assert set(named) <= names_of_all_tests()


@pytest.mark.parametrize("row", range(1, NUM_ROWS + 1))
def test_each_departure_of_the_published_code_has_a_test_by_its_number(row: int) -> None:
    assert any(name.startswith(f"test_row_{row:02}_") for name in names_of_all_tests())


def test_the_page_lists_every_departure_in_order() -> None:
    *_, departures = tables().values()
    assert [int(row[0]) for row in departures] == list(range(1, NUM_ROWS + 1))
