"""FaithBench: summaries by ten models of hard articles, in which several people marked hallucinations.

https://github.com/vectara/FaithBench, CC BY-NC-SA 4.0 (no commercial use); Bao et al. 2024 (arXiv
2410.13210). Two layouts are read:

    a folder with the release's `batch_*.json`, or one such file (rows made up here)
    {"samples": [{"sample_id": 0, "source": "The mill opened in 1902.", "summary": "A mill opened in 1920.",
      "annotations": [{"annot_id": 1, "annotator_id": "a3ac", "label": ["Unwanted", "Unwanted.Intrinsic"],
        "note": "1902, not 1920", "summary_span": "1920", "source_span": "1902", ...}], "metadata": {...}}]}
    FaithJudge's `faithbench_summary.jsonl`, the 72 sources of the paper's figures
    {"source_id": "14-0", "source": "The mill ...", "summaries": [{"sample_id": "14-0", "summary": "A ...",
      "annotations": [[{...}, ...], []]}, ...]}, one list of annotations for each annotator

A summary is consistent, by people, unless the worst label of all its annotations is Questionable or
Unwanted: the shipped setting of the official `scripts/binarize.py`. FaithJudge's judge is stricter: by its
prompt Benign hallucinations count, too; summaries whose worst label is Benign therefore have a slice of
their own in the judge's calibration. The release does not say who looked and marked nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field

from pipeline.evaluate.benchmark import Item, LabelledResponse
from pipeline.evaluate.benchmarks.faithjudge import (
    FAITHJUDGE_URL,
    Calibration,
    FaithJudgeBenchmark,
    labelled,
)
from pipeline.evaluate.benchmarks.files import published, rows
from reward.offline.rows import InputRecord, RowId, make_query
from reward.types import Document

FAITHJUDGE = "faithbench_summary.jsonl"
QUERY = "Summarise this passage concisely. Cover the core pieces of information that it describes."
_NOTHING = "nothing was marked"
LABELS = ("Benign", "Questionable", "Unwanted")


def _known(label: str) -> str:
    kind = label.partition(".")[0]  # "Unwanted.Intrinsic" is Unwanted
    if kind not in LABELS:
        raise ValueError(f"{label!r} is no label of FaithBench; use the published file")
    return kind


class _Annotation(InputRecord):
    annotator: RowId = Field(validation_alias=AliasChoices("annotator_id", "annotator"))
    label: tuple[Annotated[str, AfterValidator(_known)], ...]
    note: str | None = None
    summary_span: str | None = None
    source_span: str | None = None

    @property
    def text(self) -> str:
        """With the one label that FaithJudge shows of several: Unwanted before Benign before the first."""
        first = self.label[0] if self.label else "-"
        label = next((label for label in ("Unwanted", "Benign") if label in self.label), first)
        text = f'{label}: "{self.summary_span or ""}"'
        text += f' (source: "{self.source_span}")' if self.source_span else ""
        return text + (f" - {self.note}" if self.note else "")


class _Sample(InputRecord):
    sample_id: RowId
    source: str
    summary: str
    annotations: tuple[_Annotation, ...] = ()


class _Summary(InputRecord):
    sample_id: RowId
    summary: str
    annotations: tuple[tuple[_Annotation, ...], ...]


class _FaithJudgeRow(InputRecord):
    source_id: RowId
    source: str
    summaries: tuple[_Summary, ...]


class FaithBench(FaithJudgeBenchmark):
    """FaithBench by FaithJudge's protocol."""

    name, title, licence = "faithbench", "FaithBench", "CC-BY-NC-SA-4.0"
    url = "https://github.com/vectara/FaithBench"
    judge_chat = "judge_faithbench"

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item an article; see `Benchmark.items`."""
        files = published(source, FAITHJUDGE, "batch_[0-9]*.json", url=f"{self.url} and {FAITHJUDGE_URL}")
        if files[0].name == FAITHJUDGE:
            for place, row in rows(files[0], _FaithJudgeRow):
                responses = [_labelled(one.sample_id, one.summary, one.annotations) for one in row.summaries]
                yield _item(place, row.source_id, row.source, responses)
            return
        for number, file in sorted((int(file.stem.removeprefix("batch_")), file) for file in files):
            yield from _batch_items(str(number), file)


class FaithBenchJudge(Calibration, FaithBench):
    """FaithBench's labelled summaries."""

    name, title = "faithbench_judge", "Judge on FaithBench's labelled answers"


def _batch_items(batch: str, file: Path) -> Iterator[Item]:
    """The samples of a batch, those of one article together; none is in two batches."""
    articles: dict[str, list[tuple[str, _Sample]]] = defaultdict(list)
    for place, sample in rows(file, _Sample, "samples"):
        articles[sample.source].append((place, sample))
    for source, samples in articles.items():
        place, first = samples[0]
        responses = []
        for _, one in samples:
            annotators: dict[str, list[_Annotation]] = defaultdict(list)
            for annotation in one.annotations:
                annotators[annotation.annotator].append(annotation)
            responses.append(_labelled(f"{batch}-{one.sample_id}", one.summary, list(annotators.values())))
        yield _item(place, f"{batch}-{first.sample_id}", source, responses)


def _item(place: str, item_id: str, source: str, responses: Sequence[LabelledResponse]) -> Item:
    query = make_query(place, item_id, QUERY, [Document(id=item_id, text=source)])
    return Item(id=item_id, slice="summary", cluster=item_id, query=query, responses=tuple(responses))


def _labelled(sample_id: str, summary: str, annotators: Sequence[Sequence[_Annotation]]) -> LabelledResponse:
    """A summary with its notes, one an annotation, and whether the worst label leaves it consistent."""
    labels = {label for found in annotators for one in found for label in one.label}
    notes = []
    for letter, found in zip(cycle(ascii_uppercase), annotators, strict=False):
        notes += [f"Annotator {letter}: {text}" for text in [one.text for one in found] or [_NOTHING]]
    return labelled(sample_id, summary, notes if labels else (), consistent=labels <= {"Benign"})
