"""Documents and answers by people who had not seen the code, through the whole audit without a model.

Rounds, each written without looking at the readers; the rules then learned from what they showed.
What is wrong still is listed in `known_wrong.txt`, and must stay wrong: a row that becomes right leaves the
list.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery

FOLDER = Path(__file__).with_name("data") / "hostile"
KNOWN = Path(__file__).with_name("data") / "hostile" / "known_wrong.txt"


class Row(NamedTuple):
    name: str  # "round1:17", by the line of the file
    document: str
    answer: str
    expected: str


@cache
def rows() -> tuple[Row, ...]:
    found = []
    for file in sorted(FOLDER.glob("round*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for line, row in enumerate(
                csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), start=2
            ):
                found.append(Row(f"{file.stem}:{line}", row["document"], row["answer"], row["expected"]))
    return tuple(found)


def is_right(row: Row) -> bool:
    """Whether an answer that a careful reader refuses is refuted, and no other."""
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=row.document),))
    refuted = lexical_audit(query, row.answer, AuditConfig()).outcome is Outcome.REFUTED
    return refuted == (row.expected == "refuted")


def known_wrong() -> set[str]:
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return {line.split("#")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_an_answer_is_refuted_where_a_careful_reader_would(row: Row) -> None:
    assert is_right(row) == (row.name not in known_wrong()), (row.document, row.answer, row.expected)


def test_of_each_round_nearly_all_are_right() -> None:
    wrong = known_wrong()
    assert wrong <= {row.name for row in rows()}
    for stem in {row.name.partition(":")[0] for row in rows()}:
        total = sum(row.name.startswith(f"{stem}:") for row in rows())
        assert sum(name.startswith(f"{stem}:") for name in wrong) <= 0.1 * total
