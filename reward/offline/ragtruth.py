"""RAGTruth: answers of six models to RAG prompts, in which people marked every hallucinated passage.

https://github.com/ParticleMedia/RAGTruth, MIT licence; Niu et al., ACL 2024 (arXiv 2401.00396). Two files:

    response.jsonl
    {"id": "fj:14364:llama-2-7b-chat", "source_id": "14364", "model": "llama-2-7b-chat", "temperature": null,
     "labels": [{"start": 234, "end": 353, "text": "* For returns filed in 2017 and later, keep ...",
       "meta": "...", "label_type": "Evident Baseless Info", "implicit_true": false, "due_to_null": false}],
     "split": "train", "quality": null, "response": "Based on the provided passages, the general ..."}
    source_info.jsonl
    {"source_id": "14364", "task_type": "QA", "source": "MARCO", "prompt": null,
     "source_info": {"question": "how long do you have to keep income tax record", "passages": "passage 1:File
       a 2016 income tax return ...  passage 2:statements---assuming you are paid in that way ..."}}

As in the official evaluation, answers of a quality other than "good" (refusals, truncated ones) take no part;
copies without the field keep all. `agreement.py` says when marks are about a number.
Data2txt's documents have tables of hours and fields of stars: `CHECKS` is for the audit without a model.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from reward.config import CheckName
from reward.offline.rows import AuditRow, InputRecord, RowId, make_query, read_records
from reward.types import Document, Span

RESPONSES, SOURCES = "response.jsonl", "source_info.jsonl"
CHECKS = (CheckName.OPENING_HOURS, CheckName.RATINGS, CheckName.YES_NO_FIELDS)
_PASSAGE = re.compile(r"(?m)^passage (\d+):")
# The instruction of RAGTruth's own prompts, for copies that left the prompts out.
_INSTRUCTIONS = {
    "Summary": "Summarize the following news.",
    "Data2txt": (
        "Write an objective overview about the following local business based only on the provided "
        "structured data in the JSON format. You should include details and cover the information mentioned "
        "in the customers' review. The overview should be 100 - 200 words. Don't make up information."
    ),
}


class _Label(InputRecord):
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class _Response(InputRecord):
    id: RowId
    source_id: RowId
    labels: tuple[_Label, ...]
    quality: str | None = None
    response: str


class RagTruthSource(InputRecord):
    """One source: what was asked and what was given."""

    source_id: RowId
    task_type: Literal["QA", "Summary", "Data2txt"]
    source_info: JsonValue
    prompt: str | None = None


def read_ragtruth(path: Path) -> Iterator[AuditRow]:
    """Yields every answer with what people marked in it, in the order of `response.jsonl`.

    Args:
        path: The folder of both files, or `response.jsonl` with `source_info.jsonl` beside it.

    Raises:
        FileNotFoundError: one of the files is not there.
        ValueError: a row is not what it must be, or names a source that is not there.
    """
    responses = path / RESPONSES if path.is_dir() else path
    sources = _read_sources(responses.with_name(SOURCES))
    for place, row in read_records(responses, _Response):
        if row.source_id not in sources:
            fix = f"is not in {SOURCES}; use both files of one release"
            raise ValueError(f"{place}: source_id: {row.source_id!r} {fix}")
        source_place, source = sources[row.source_id]
        query = make_query(place, row.id, source_query(source), source_documents(source_place, source))
        yield AuditRow(
            place=place,
            query=query,
            response=row.response,
            task_type=source.task_type,
            source_id=row.source_id,
            human_spans=tuple(Span(start=label.start, end=label.end) for label in row.labels),
            excluded="" if row.quality in (None, "good") else f"quality {row.quality}",
        )


def _read_sources(path: Path) -> dict[str, tuple[str, RagTruthSource]]:
    sources: dict[str, tuple[str, RagTruthSource]] = {}
    for place, source in read_records(path, RagTruthSource):
        if source.source_id in sources:
            fix = "remove one of the rows"
            raise ValueError(f"{place}: source_id: {source.source_id!r} is used twice; {fix}")
        sources[source.source_id] = (place, source)
    return sources


def source_query(source: RagTruthSource) -> str:
    """The question, or the instruction of a task that has none."""
    if source.task_type == "QA":
        return str(source.source_info["question"]) if isinstance(source.source_info, dict) else ""
    if source.prompt is None:
        return _INSTRUCTIONS[source.task_type]
    if source.task_type == "Summary":  # one line of instruction, then the article
        return source.prompt.partition("\n")[0]
    return source.prompt.partition("Structured data:")[0].removeprefix("Instruction:").strip()


def source_documents(place: str, source: RagTruthSource) -> list[Document]:
    """What the answer must hold to.

    Raises:
        ValueError: `source_info` is not what the task has; begins with `place`.
    """
    info, source_id = source.source_info, source.source_id
    if source.task_type == "Summary" and isinstance(info, str):
        return [Document(id=source_id, text=info)]
    if source.task_type == "Data2txt" and isinstance(info, dict):
        text = json.dumps(info, ensure_ascii=False)
        return [Document(id=source_id, title=str(info.get("name", "")), text=text)]
    if source.task_type == "QA" and isinstance(info, dict) and {"question", "passages"} <= info.keys():
        return _passages(source_id, str(info["passages"]))
    raise ValueError(
        f"{place}: source_info: is not what task_type {source.task_type} has; use the published file"
    )


def _passages(source_id: str, text: str) -> list[Document]:
    """Splits "passage 1:... passage 2:..."; a text without such heads is one document."""
    _, *parts = _PASSAGE.split(text)
    heads, bodies = parts[::2], parts[1::2]
    if not heads:
        return [Document(id=source_id, text=text.strip())]
    return [
        Document(id=f"{source_id}#{place}", title=f"passage {head}", text=body.strip())
        for place, (head, body) in enumerate(zip(heads, bodies, strict=True), start=1)
    ]
