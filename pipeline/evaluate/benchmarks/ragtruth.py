"""RAGTruth: answers, summaries and data-to-text by six models, in which people marked hallucinations.

https://github.com/ParticleMedia/RAGTruth, MIT; Niu et al., ACL 2024. Two layouts are read:

    a folder with RAGTruth's two files, `response.jsonl` and `source_info.jsonl` (`reward/offline/ragtruth.py`
    shows rows), of which the test split is taken; or
    a folder with FaithJudge's `ragtruth_qa.jsonl`, `ragtruth_summary.jsonl`, `ragtruth_data2txt.jsonl`, or
    one of them. These are the 139, 150 and 150 sources of the paper's figures, partly of the train split:
    {"source_id": 14300, "source": {"question": "how do automotive ...", "passages": "passage 1:..."},
     "responses": [{"response": "Automotive technicians ...", "model": "gpt-4-0613", "labels": [...]}]}

An answer of a quality other than "good" is no example for the judge, as in RAGTruth's own evaluation. It is
consistent if nothing is marked in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from pipeline.evaluate.benchmark import BenchmarkCard, Item, LabelledResponse
from pipeline.evaluate.benchmarks.faithjudge import (
    SCORED_BY,
    STYLES,
    TEXTS,
    FaithJudgeBenchmark,
    labelled,
)
from pipeline.evaluate.benchmarks.prompts import load_texts
from reward.offline.ragtruth import RESPONSES, SOURCES, RagTruthSource, source_documents, source_query
from reward.offline.rows import InputRecord, RowId, make_query, read_records

URL = "https://github.com/ParticleMedia/RAGTruth"
_FAITHJUDGE = {
    "ragtruth_qa.jsonl": "QA",
    "ragtruth_summary.jsonl": "Summary",
    "ragtruth_data2txt.jsonl": "Data2txt",
}
_SLICES = {"QA": "qa", "Summary": "summary", "Data2txt": "data2txt"}


class _Label(InputRecord):
    text: str
    label_type: str
    meta: str | None = None
    implicit_true: bool | None = None
    due_to_null: bool | None = None


class _Response(InputRecord):
    model: str
    response: str
    labels: tuple[_Label, ...]
    quality: str | None = None


class _OwnResponse(_Response):
    id: RowId
    source_id: RowId
    split: Literal["train", "test"]


class _FaithJudgeRow(InputRecord):
    source_id: RowId
    source: JsonValue
    responses: tuple[_Response, ...]


@dataclass(frozen=True)
class RagTruth(FaithJudgeBenchmark):
    """RAGTruth by FaithJudge's protocol.

    Args:
        split: Of RAGTruth's own files; None takes both. FaithJudge's files are one selection.
    """

    split: Literal["train", "test"] | None = "test"
    judge_chat = "judge_ragtruth"

    card = BenchmarkCard(
        name="ragtruth",
        title="RAGTruth",
        url=URL,
        licence="MIT",
        primary="consistent",
        scored_by=SCORED_BY,
        styles=STYLES,
        prompt_digest=load_texts(TEXTS).digest,
    )

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a source.

        Raises:
            FileNotFoundError: the files are not there.
            ValueError: a row is not what it must be.
        """
        if source.is_dir() and (source / RESPONSES).is_file():
            yield from self._own_files(source)
            return
        files = [source] if source.is_file() else [source / name for name in _FAITHJUDGE]
        files = [file for file in files if file.name in _FAITHJUDGE and file.is_file()]
        if not files:
            names = ", ".join(_FAITHJUDGE)
            raise FileNotFoundError(
                f"{source}: holds neither {RESPONSES} with {SOURCES} ({URL}) nor any of {names} "
                "(https://github.com/vectara/FaithJudge, eval_data); give their folder"
            )
        for file in files:
            yield from _faithjudge_items(file)

    def _own_files(self, folder: Path) -> Iterator[Item]:
        responses = defaultdict(list)
        for _, row in read_records(folder / RESPONSES, _OwnResponse):
            if self.split in (None, row.split):
                responses[row.source_id].append(row)
        for place, source in read_records(folder / SOURCES, RagTruthSource):
            found = responses.get(source.source_id)
            if found:
                yield _item(place, source, {row.id: row for row in found})


def _faithjudge_items(file: Path) -> Iterator[Item]:
    task = _FAITHJUDGE[file.name]
    for place, row in read_records(file, _FaithJudgeRow):
        fields = {"source_id": row.source_id, "task_type": task, "source_info": row.source}
        responses = {f"{row.source_id}:{one.model}": one for one in row.responses}
        yield _item(place, RagTruthSource.model_validate(fields), responses)


def _item(place: str, source: RagTruthSource, responses: Mapping[str, _Response]) -> Item:
    documents = source_documents(place, source)
    return Item(
        id=source.source_id,
        slice=_SLICES[source.task_type],
        cluster=source.source_id,
        query=make_query(place, source.source_id, source_query(source), documents),
        responses=tuple(
            _labelled(response_id, one)
            for response_id, one in responses.items()
            if one.quality in (None, "good")
        ),
    )


def _labelled(response_id: str, row: _Response) -> LabelledResponse:
    return labelled(response_id, row.response, consistent=not row.labels, notes=list(_notes(row.labels)))


def _notes(labels: Sequence[_Label]) -> Iterator[str]:
    for label in labels:
        note = f'{label.label_type}: "{label.text}"'
        note += f" - {label.meta}" if label.meta else ""
        note += " (perhaps true, but the source does not say it)" if label.implicit_true else ""
        note += " (a null of the data was read as false)" if label.due_to_null else ""
        yield note
