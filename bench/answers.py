"""Answers that people left unmarked, out of the files of several data sets, as rows to audit.

    RAGTruth                    answers without any mark, by its own reader
    FaithBench                  summaries without any annotation
        {"samples": [{"sample_id": 3, "source": "The mill ...", "summary": "...", "annotations": []}]}
    HotpotQA, 2WikiMultihopQA   the gold answer as a short sentence, with all paragraphs as documents
        [{"_id": "5a", "question": "...", "answer": "Oslo", "context": [["Title", ["Sentence.", ...]], ...]}]
    MuSiQue                     the same; its rows stand one a line
        {"id": "2hop__1_2", "question": "...", "answer": "Oslo", "paragraphs": [{"idx": 0, "title": "", ...}]}

Gold answers that are "yes" or "no" are left out: they hold neither a number nor a name.

Questions with their answers and all paragraphs, for `march evaluate --benchmark jsonl_compact=ROWS`:

    python -m bench.answers FILE... > ROWS

and the tasks of RAGTruth's folder, once each, for `jsonl_audit_compact`, as no answer to them is known.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.data.evaluation_rows import FaithBenchRow
from pipeline.data.musique import MusiqueRow
from pipeline.data.rows import MultiHopRow, parse_row
from pipeline.data.twowiki import HotpotRow, TwoWikiRow
from pipeline.data.values import RawRow, raw_rows
from reward.offline.inputs import RowFormat, format_of, read_rows
from reward.offline.rows import AuditRow, make_query
from reward.types import Document

_SUMMARISE = "Summarise this passage."
_CHOICES = {"yes", "no"}
_MULTI_HOP: dict[str, tuple[str, type[MultiHopRow]]] = {  # by a key that only its rows have
    "paragraphs": ("MuSiQue", MusiqueRow),
    "evidences": ("2WikiMultihopQA", TwoWikiRow),
    "context": ("HotpotQA", HotpotRow),
}


def unmarked_answers(path: Path) -> Iterator[AuditRow]:
    """Yields the unmarked answers of a file, or of all files of a folder.

    Raises:
        ValueError: a file has none of the layouts.
    """
    if _is_ragtruth(path):
        rows = read_rows(path, RowFormat.RAGTRUTH)
        yield from (row for row in rows if row.human_spans == () and not row.excluded)
        return
    files = [path] if path.is_file() else sorted({*path.glob("*.json"), *path.glob("*.jsonl")})
    if not files:
        raise ValueError(f"{path}: holds no .json and no .jsonl file; give a folder of one of the data sets")
    for file in files:
        for raw in raw_rows(file, FaithBenchRow.list_key):
            yield from _answers(raw)


def _is_ragtruth(path: Path) -> bool:
    try:
        return format_of(path) is RowFormat.RAGTRUTH
    except ValueError:
        return False


def _answers(raw: RawRow) -> Iterator[AuditRow]:
    record = json.loads(raw.text)
    if "source" in record:
        yield from _summaries(raw, record)
        return
    for key, (task_type, model) in _MULTI_HOP.items():
        if key in record:
            row = parse_row(raw, model)
            if row.answer.strip().lower() not in _CHOICES:
                said = f"The answer is {row.answer.strip().rstrip('.')}."
                yield _row(raw, row.id, task_type, row.question, row.to_documents(), said)
            return
    keys = ", ".join(record)
    raise ValueError(
        f"{raw.place}: no row of the data sets of bench/answers.py (keys {keys:.120}); leave it out"
    )


def _summaries(raw: RawRow, record: dict[str, Any]) -> Iterator[AuditRow]:
    """FaithJudge's layout has all summaries of a source in one row, and in each a list of every annotator."""
    document = Document(id="source", text=record["source"])
    for one in record.get("summaries", [record]):
        if not any(one["annotations"]):
            batch = f"{record.get('batch_id', '')}-" if one is record else ""
            name = f"{batch}{one['sample_id']}"
            yield _row(raw, name, "FaithBench", _SUMMARISE, [document], one["summary"])


def _row(
    raw: RawRow, row_id: str, task_type: str, query: str, documents: list[Document], response: str
) -> AuditRow:
    asked = make_query(raw.place, row_id, query, documents)
    return AuditRow(place=raw.place, query=asked, response=response, task_type=task_type, human_spans=())


def questions(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yields the questions of HotpotQA, 2WikiMultihopQA, MuSiQue and RAGTruth as rows of one's own."""
    for file in files:
        if _is_ragtruth(file):
            rows = {row.cluster: row.query for row in read_rows(file, RowFormat.RAGTRUTH)}
            for source, asked in rows.items():
                shown = [one.model_dump() for one in asked.documents]
                yield {"id": source, "query": asked.query, "documents": shown}
            continue
        for raw in raw_rows(file):
            key = next(key for key in _MULTI_HOP if key in json.loads(raw.text))
            row = parse_row(raw, _MULTI_HOP[key][1])
            documents = [one.model_dump() for one in row.to_documents()]
            answers = [one for one in row.answers if one]
            yield {"id": row.id, "query": row.question, "documents": documents, "answers": answers}


if __name__ == "__main__":
    for asked in questions(map(Path, sys.argv[1:])):
        print(json.dumps(asked))
