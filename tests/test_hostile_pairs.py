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
SWAPPED = Path(__file__).with_name("data") / "swapped_values.tsv"
REFUSED = Path(__file__).with_name("data") / "refused_answers.tsv"


class Row(NamedTuple):
    name: str  # "round1:17", by the line of the file
    document: str
    answer: str
    expected: str

    @property
    def round(self) -> str:
        """ "round1", the name of the file."""
        return self.name.partition(":")[0]


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def rows() -> tuple[Row, ...]:
    found = []
    for file in sorted(FOLDER.glob("round*.tsv")):
        for line, row in enumerate(read(file), start=2):
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


@pytest.mark.parametrize("name", sorted({row.round for row in rows()}))
def test_an_answer_is_refuted_where_a_careful_reader_would(name: str) -> None:
    known = known_wrong()
    of_round = [row for row in rows() if row.round == name]
    became_wrong = [row for row in of_round if row.name not in known and not is_right(row)]
    became_right = [row for row in of_round if row.name in known and is_right(row)]
    assert not became_wrong
    assert not became_right, "take these out of known_wrong.txt"
    assert sum(row.name in known for row in of_round) <= 0.1 * len(of_round)


def test_what_is_known_to_be_wrong_is_a_row() -> None:
    assert known_wrong() <= {row.name for row in rows()}
    assert len(known_wrong()) <= 0.035 * len(rows())


def test_right_answers_that_are_refused_move_to_their_round_when_they_are_not() -> None:
    """Of rounds 90 to 98, mostly sums: more than the tenth of a round that may be wrong."""
    found = [row for row in read(REFUSED) if is_right(Row("", row["document"], row["answer"], "supported"))]
    assert not found


def test_most_values_that_a_document_says_of_something_else_are_accepted() -> None:
    """What a lookup cannot see; the audit with a model asks. The share is in `docs/judge.md`."""
    swapped = read(SWAPPED)
    refuted = sum(is_right(Row("", row["document"], row["answer"], "refuted")) for row in swapped)
    assert refuted / len(swapped) == pytest.approx(0.145, abs=0.005), "give the new share in docs/judge.md"
