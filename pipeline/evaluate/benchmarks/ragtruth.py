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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import JsonValue

from pipeline.evaluate.benchmark import Item
from pipeline.evaluate.benchmarks.faithjudge import (
    FAITHJUDGE_URL,
    Calibration,
    FaithJudgeBenchmark,
    labelled,
)
from pipeline.evaluate.benchmarks.files import published, rows
from reward.offline.ragtruth import RESPONSES, SOURCES, RagTruthSource, source_documents, source_query
from reward.offline.rows import InputRecord, RowId, make_query

_TASKS = {
    "ragtruth_qa.jsonl": "QA",
    "ragtruth_summary.jsonl": "Summary",
    "ragtruth_data2txt.jsonl": "Data2txt",
}


class _Label(InputRecord):
    text: str
    label_type: str
    meta: str | None = None
    implicit_true: bool | None = None
    due_to_null: bool | None = None

    @property
    def note(self) -> str:
        note = f'{self.label_type}: "{self.text}"'
        note += f" - {self.meta}" if self.meta else ""
        note += " (perhaps true, but the source does not say it)" if self.implicit_true else ""
        return note + (" (a null of the data was read as false)" if self.due_to_null else "")


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


class RagTruth(FaithJudgeBenchmark):
    """RAGTruth by FaithJudge's protocol."""

    name, title, licence = "ragtruth", "RAGTruth", "MIT"
    url = "https://github.com/ParticleMedia/RAGTruth"
    judge_chat = "judge_ragtruth"
    splits: ClassVar[tuple[str, ...]] = ("test",)  # of RAGTruth's own files; FaithJudge's are one selection

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a source; see `Benchmark.items`."""
        files = published(source, RESPONSES, *_TASKS, url=f"{self.url} and {FAITHJUDGE_URL}")
        if files[0].name == RESPONSES:
            yield from self._own_items(files[0])
            return
        for file in files:
            for place, row in rows(file, _FaithJudgeRow):
                fields = {"task_type": _TASKS[file.name], "source_info": row.source}
                found = RagTruthSource.model_validate({"source_id": row.source_id, **fields})
                yield _item(place, found, {f"{row.source_id}:{one.model}": one for one in row.responses})

    def _own_items(self, file: Path) -> Iterator[Item]:
        responses: dict[str, dict[str, _Response]] = defaultdict(dict)
        for _, row in rows(file, _OwnResponse):
            if row.split in self.splits:
                responses[row.source_id][row.id] = row
        for place, source in rows(file.with_name(SOURCES), RagTruthSource):
            if source.source_id in responses:
                yield _item(place, source, responses[source.source_id])


class RagTruthJudge(Calibration, RagTruth):
    """RAGTruth's labelled answers."""

    name, title = "ragtruth_judge", "Judge on RAGTruth's labelled answers"


def _item(place: str, source: RagTruthSource, responses: Mapping[str, _Response]) -> Item:
    documents = source_documents(place, source)
    good = {key: one for key, one in responses.items() if one.quality in (None, "good")}
    return Item(
        id=source.source_id,
        slice=source.task_type.lower(),
        cluster=source.source_id,
        query=make_query(place, source.source_id, source_query(source), documents),
        responses=tuple(
            labelled(key, one.response, (label.note for label in one.labels), consistent=not one.labels)
            for key, one in good.items()
        ),
    )
