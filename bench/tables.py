"""Wrong on purpose: the number of another cell, in answers to questions about tables of financial reports.

    python -m bench tables                                    # the contexts in tests/data
    python -m bench tables --data tatqa_dataset_dev.json      # other files of TAT-QA

The questions are those of TAT-QA (https://nextplusplus.github.io/TAT-QA, CC BY 4.0) whose answer is a number
that one cell of the table holds. Each is answered with this number, with another one of its row, and with
another one of its column: alone and, if the question begins with "What is" or the like, in a sentence.
A sound audit refutes each exchanged answer and none of the others.
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
_RIGHT, _ROW, _COLUMN = "as_is", "other_number_of_row", "other_number_of_column"


def run(data: Sequence[Path] = ()) -> None:
    start = time.perf_counter()
    counts = {path.name: _counts(path) for path in data or [_DEFAULT]}
    samples = {"all": [time.perf_counter() - start]}
    names = [path.name for path in data]
    written = write_result("tables", samples_s=samples, figures={"files": counts}, data=names)
    for name, forms in counts.items():
        for form, refuted in forms.items():
            print(f"{name}, {form}:", "; ".join(f"{what} {one}" for what, one in refuted.items()))
    print(written)


def answers(path: Path) -> Iterator[tuple[RagQuery, str, str, str]]:
    """Queries of a file, each with an answer, its form ("alone", "sentence") and which cell it is from."""
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
    """The number that answers a question, and one other of its row and of its column."""
    if question["answer_type"] != "span":
        return
    answer = question["answer"] if isinstance(question["answer"], str) else question["answer"][0]
    answer = answer.strip()
    cells = [
        (row, column, cell.strip())
        for row, line in enumerate(table)
        for column, cell in enumerate(line)
        if column and _is_value(cell.strip())
    ]
    own = [one for one in cells if _value(one[2]) == _value(answer)]
    if not _is_value(answer) or len(own) != 1:
        return
    ((own_row, own_column, own_cell),) = own
    others = [one for one in cells if one not in own]
    same_row = [cell for row, _, cell in others if row == own_row]
    is_percentage = "%" in own_cell
    same_column = [
        cell for _, column, cell in others if column == own_column and ("%" in cell) == is_percentage
    ]
    # A choice advances the draw, even the one of the right answer.
    for what, numbers in ((_RIGHT, [answer]), (_ROW, same_row), (_COLUMN, same_column)):
        if numbers:
            yield what, draw.choice(numbers)


def _is_value(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and not _YEAR.fullmatch(cell)


def _value(cell: str) -> str:
    return re.sub(r"[^\d.%]", "", cell)


def _counts(path: Path) -> dict[str, dict[str, str]]:
    """How many answers of each form and exchange are refuted, of how many."""
    refuted: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for query, answer, form, what in answers(path):
        total[form, what] += 1
        refuted[form, what] += lexical_audit(query, answer, AuditConfig()).outcome is Outcome.REFUTED
    forms = dict.fromkeys(form for form, _ in total)
    return {
        form: {what: f"{refuted[form, what]} of {total[form, what]}" for what in (_RIGHT, _ROW, _COLUMN)}
        for form in forms
    }
