"""Wrong on purpose: another cell of a table, in answers to questions about financial reports.

    python -m bench tables                                    # the contexts in tests/data
    python -m bench tables --data tatqa_dataset_dev.json      # other files of TAT-QA

Of TAT-QA (https://nextplusplus.github.io/TAT-QA, CC BY 4.0) those questions are taken whose answer is one
number that one cell of the table holds. Each is answered with it, with another number of its row, and with
another one of its column, alone and, where the question begins with "What is" or the like, in a sentence.
So a sound audit refutes each exchanged answer and none of the others.
"""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import write_result
from pipeline.data.tatqa import TatRow
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Outcome, RagQuery

_DEFAULT = Path(__file__).parent.parent / "tests" / "data" / "tatqa_cc-by-4.0" / "tatqa_dataset_dev.json"
_NUMBER = re.compile(r"\(?[-$€£ ]*\(?\d[\d,.]*\)?\s*%?\)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ASKS = re.compile(r"(?:What|How much|How many) (is|was|were|are) (?:the )?(.*?)\??")
_CELL, _ROW, _COLUMN = "as_is", "other_number_of_row", "other_number_of_column"


def run(data: Sequence[Path] = ()) -> None:
    start = time.perf_counter()
    found = {path.name: _counts(path) for path in data or [_DEFAULT]}
    figures = {"files": found}
    samples = {"all": [time.perf_counter() - start]}
    written = write_result("tables", samples_s=samples, figures=figures, data=[path.name for path in data])
    for name, counts in found.items():
        for form, refuted in counts.items():
            print(f"{name}, {form}:", "; ".join(f"{what} {one}" for what, one in refuted.items()))
    print(written)


def answers(path: Path) -> Iterator[tuple[RagQuery, str, str, str]]:
    """Queries of a file with answers, each with its form ("alone", "sentence") and what it is."""
    for raw in json.loads(path.read_text(encoding="utf-8")):
        queries = {query.id: query for query in TatRow.model_validate(raw).queries(path.name)}
        for question in raw["questions"]:
            draw = random.Random(question["uid"])
            for what, number in _numbers(raw["table"]["table"], question, draw):
                query = queries[question["uid"]]
                yield query, number, "alone", what
                if asks := _ASKS.fullmatch(query.query):
                    yield query, f"The {asks[2]} {asks[1]} {number}.", "sentence", what


def _numbers(
    table: Sequence[Sequence[str]], question: dict[str, Any], draw: random.Random
) -> Iterator[tuple[str, str]]:
    """The number that answers a question, and two others of the table."""
    if question["answer_type"] != "span":
        return
    answer = question["answer"] if isinstance(question["answer"], str) else question["answer"][0]
    answer = answer.strip()
    cells = {
        (row, column): cell.strip()
        for row, line in enumerate(table)
        for column, cell in enumerate(line)
        if column and _is_value(cell.strip())
    }
    places = [place for place, cell in cells.items() if _value(cell) == _value(answer)]
    if not _is_value(answer) or len(places) != 1:
        return
    (row, column) = places[0]
    same_row = [cell for place, cell in cells.items() if place[0] == row and place not in places]
    same_column = [
        cell
        for place, cell in cells.items()
        if place[1] == column and place not in places and ("%" in cell) == ("%" in cells[places[0]])
    ]
    for what, others in ((_CELL, [answer]), (_ROW, same_row), (_COLUMN, same_column)):
        wrong = [cell for cell in others if what == _CELL or _value(cell) != _value(answer)]
        if wrong:
            yield what, draw.choice(wrong)


def _is_value(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and not _YEAR.fullmatch(cell)


def _value(cell: str) -> str:
    return re.sub(r"[^\d.%]", "", cell)


def _counts(path: Path) -> dict[str, dict[str, str]]:
    """How many answers of each form and exchange are refuted, of how many."""
    refuted: Counter[tuple[str, str]] = Counter()
    whole: Counter[tuple[str, str]] = Counter()
    for query, answer, form, what in answers(path):
        whole[form, what] += 1
        refuted[form, what] += lexical_audit(query, answer, AuditConfig()).outcome is Outcome.REFUTED
    forms = dict.fromkeys(form for form, _ in whole)
    return {
        form: {what: f"{refuted[form, what]} of {whole[form, what]}" for what in (_CELL, _ROW, _COLUMN)}
        for form in forms
    }
