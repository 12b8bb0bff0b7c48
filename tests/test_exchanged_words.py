"""One word of an answer exchanged, by which it says something else: the audit without a model must see it.

`tests/data/exchanged_words.tsv` has a document, an answer that it supports, and one that it does not. They
were found by exchanging words of right answers by script: units, bounds, moves, rates, parts of a day, names.
"""

import csv
from pathlib import Path

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery

_PATH = Path(__file__).parent / "data" / "exchanged_words.tsv"
with _PATH.open(encoding="utf-8", newline="") as file:
    CASES = [(row["document"], row["right"], row["wrong"]) for row in csv.DictReader(file, delimiter="\t")]


def outcome(document: str, response: str) -> Outcome:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    return lexical_audit(query, response, AuditConfig()).outcome


@pytest.mark.parametrize(("document", "right", "wrong"), CASES, ids=[case[2] for case in CASES])
def test_an_exchanged_word_is_refuted_and_the_right_one_is_not(document: str, right: str, wrong: str) -> None:
    assert outcome(document, right) is not Outcome.REFUTED
    assert outcome(document, wrong) is Outcome.REFUTED
