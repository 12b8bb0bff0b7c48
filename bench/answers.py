"""Answers that people left unmarked, out of the files of several data sets, as rows to audit.

    RAGTruth                    answers without any mark, by its own reader
    FaithBench                  summaries without any annotation
        {"samples": [{"sample_id": 3, "source": "The mill ...", "summary": "...", "annotations": []}]}
    HotpotQA, 2WikiMultihopQA   the gold answer as a short sentence, with all paragraphs as documents
        [{"_id": "5a", "question": "...", "answer": "Oslo", "context": [["Title", ["Sentence.", ...]], ...]}]
    MuSiQue                     the same; its rows stand one a line
        {"id": "2hop__1_2", "question": "...", "answer": "Oslo", "paragraphs": [{"idx": 0, "title": "", ...}]}

Gold answers that are "yes" or "no" are left out: they hold neither a number nor a name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reward.offline.inputs import RowFormat, format_of, read_rows
from reward.offline.rows import AuditRow
from reward.types import Document, RagQuery

_SUMMARISE = "Summarise this passage."
_CHOICES = {"yes", "no"}


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
        for number, record in enumerate(_records(file), start=1):
            yield from _answers(f"{file}:{number}", record)


def _is_ragtruth(path: Path) -> bool:
    try:
        return format_of(path) is RowFormat.RAGTRUTH
    except ValueError:
        return False


def _records(file: Path) -> Iterator[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
        return
    content = json.loads(text)
    yield from content["samples"] if isinstance(content, dict) else content


def _answers(place: str, record: dict[str, Any]) -> Iterator[AuditRow]:
    if {"source", "summary", "annotations"} <= record.keys():
        if not record["annotations"]:
            batch = record.get("batch_id", "")
            document = Document(id="source", text=record["source"])
            row_id = f"{batch}-{record['sample_id']}"
            yield _row(place, row_id, "FaithBench", _SUMMARISE, [document], record["summary"])
    elif {"source", "summaries"} <= record.keys():  # FaithJudge's layout: an annotator's list each
        document = Document(id="source", text=record["source"])
        for one in record["summaries"]:
            if not any(one["annotations"]):
                yield _row(place, one["sample_id"], "FaithBench", _SUMMARISE, [document], one["summary"])
    elif {"question", "answer"} <= record.keys() and ("context" in record or "paragraphs" in record):
        if record["answer"].strip().lower() not in _CHOICES:
            name, documents = _paragraphs(record)
            said = f"The answer is {record['answer'].strip().rstrip('.')}."
            row_id = str(record.get("_id") or record.get("id"))
            yield _row(place, row_id, name, record["question"], documents, said)
    else:
        keys = ", ".join(record)
        raise ValueError(
            f"{place}: no row of the data sets of bench/answers.py (keys {keys:.120}); leave it out"
        )


def _paragraphs(record: dict[str, Any]) -> tuple[str, list[Document]]:
    """The name of the data set, and the documents."""
    if "paragraphs" in record:
        pairs = [(one["title"], one["paragraph_text"]) for one in record["paragraphs"]]
        return "MuSiQue", _documents(pairs)
    context = record["context"]
    if isinstance(context, dict):  # the hub's layout
        context = list(zip(context["title"], context["sentences"], strict=True))
    # Sentences of HotpotQA carry their spaces; those of 2WikiMultihopQA do not.
    name, joined_by = ("2WikiMultihopQA", " ") if "evidences" in record else ("HotpotQA", "")
    return name, _documents([(title, joined_by.join(sentences)) for title, sentences in context])


def _documents(pairs: list[tuple[str, str]]) -> list[Document]:
    return [Document(id=str(i), title=title, text=text) for i, (title, text) in enumerate(pairs)]


def _row(
    place: str, row_id: str, task_type: str, query: str, documents: list[Document], response: str
) -> AuditRow:
    asked = RagQuery(id=row_id, query=query, documents=tuple(documents))
    return AuditRow(place=place, query=asked, response=response, task_type=task_type, human_spans=())
