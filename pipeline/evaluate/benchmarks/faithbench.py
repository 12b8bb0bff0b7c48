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
Unwanted: the shipped setting of the official `scripts/binarize.py`. FaithJudge's judge is stricter and is
told that Benign hallucinations count, too; summaries whose worst label is Benign therefore have a slice of
their own in the judge's calibration. The release does not say who looked and marked nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field

from pipeline.data.rows import parse_row
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import BenchmarkCard, Item, LabelledResponse
from pipeline.evaluate.benchmarks.faithjudge import (
    SCORED_BY,
    STYLES,
    TEXTS,
    FaithJudgeBenchmark,
    labelled,
)
from pipeline.evaluate.benchmarks.prompts import load_texts
from reward.offline.rows import InputRecord, RowId, make_query, read_records
from reward.types import Document

URL = "https://github.com/vectara/FaithBench"
FAITHJUDGE = "faithbench_summary.jsonl"
QUERY = "Summarise this passage concisely. Cover the core pieces of information that it describes."
SEVERITY = {"Benign": 1, "Questionable": 2, "Unwanted": 3}
_BATCH = re.compile(r"batch_(\d+)\.json")


def _known(label: str) -> str:
    kind = label.partition(".")[0]  # "Unwanted.Intrinsic" is Unwanted
    if kind not in SEVERITY:
        raise ValueError(f"{label!r} is no label of FaithBench; use the published file")
    return kind


class _Annotation(InputRecord):
    annotator: RowId = Field(validation_alias=AliasChoices("annotator_id", "annotator"))
    label: tuple[Annotated[str, AfterValidator(_known)], ...]
    note: str | None = None
    summary_span: str | None = None
    source_span: str | None = None


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


@dataclass(frozen=True)
class FaithBench(FaithJudgeBenchmark):
    """FaithBench by FaithJudge's protocol."""

    judge_chat = "judge_faithbench"

    card = BenchmarkCard(
        name="faithbench",
        title="FaithBench",
        url=URL,
        licence="CC-BY-NC-SA-4.0",
        primary="consistent",
        scored_by=SCORED_BY,
        styles=STYLES,
        prompt_digest=load_texts(TEXTS).digest,
    )

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item an article.

        Raises:
            FileNotFoundError: the files are not there.
            ValueError: a row is not what it must be.
        """
        if source.name == FAITHJUDGE or (source / FAITHJUDGE).is_file():
            yield from _faithjudge_items(source if source.is_file() else source / FAITHJUDGE)
            return
        files = [source] if source.is_file() else sorted(source.glob("batch_*.json"), key=_batch)
        if not files or not all(_BATCH.fullmatch(file.name) for file in files):
            raise FileNotFoundError(
                f"{source}: holds neither batch_*.json ({URL}, data_for_release) nor {FAITHJUDGE} "
                "(https://github.com/vectara/FaithJudge, eval_data); give their folder"
            )
        for file in files:
            yield from _batch_items(file)


def _batch(file: Path) -> int:
    found = _BATCH.fullmatch(file.name)
    return int(found[1]) if found else 0


def _faithjudge_items(file: Path) -> Iterator[Item]:
    for place, row in read_records(file, _FaithJudgeRow):
        responses = [labelled_summary(one.sample_id, one.summary, one.annotations) for one in row.summaries]
        yield _item(place, row.source_id, row.source, responses)


def _batch_items(file: Path) -> Iterator[Item]:
    """The samples of a batch, those of one article together; none stands in two batches."""
    articles: dict[str, list[tuple[str, _Sample]]] = {}
    for raw in raw_rows(file, "samples"):
        sample = parse_row(raw, _Sample)
        articles.setdefault(sample.source, []).append((raw.place, sample))
    for source, samples in articles.items():
        place, first = samples[0]
        responses = [
            labelled_summary(f"{_batch(file)}-{one.sample_id}", one.summary, _by_annotator(one.annotations))
            for _, one in samples
        ]
        yield _item(place, f"{_batch(file)}-{first.sample_id}", source, responses)


def _by_annotator(annotations: Sequence[_Annotation]) -> list[list[_Annotation]]:
    groups: dict[str, list[_Annotation]] = {}
    for one in annotations:
        groups.setdefault(one.annotator, []).append(one)
    return list(groups.values())


def _item(place: str, item_id: str, source: str, responses: Sequence[LabelledResponse]) -> Item:
    documents = [Document(id=item_id, text=source)]
    query = make_query(place, item_id, QUERY, documents)
    return Item(id=item_id, slice="summary", cluster=item_id, query=query, responses=tuple(responses))


def labelled_summary(
    sample_id: str, summary: str, annotators: Sequence[Sequence[_Annotation]]
) -> LabelledResponse:
    """A summary with its notes, one an annotation, and whether the worst label leaves it consistent."""
    labels = [label for annotations in annotators for one in annotations for label in one.label]
    worst = max((SEVERITY[label] for label in labels), default=0)
    notes = [note for place, group in enumerate(annotators) for note in _notes(place, group)]
    consistent = worst < SEVERITY["Questionable"]
    return labelled(sample_id, summary, consistent=consistent, notes=notes if labels else ())


def _notes(place: int, annotations: Sequence[_Annotation]) -> Iterator[str]:
    who = f"Annotator {ascii_uppercase[place % 26]}"
    if not annotations:
        yield f"{who}: nothing was marked"
    for one in annotations:
        note = f'{who}: {_shown_label(one.label)}: "{one.summary_span or ""}"'
        note += f' (source: "{one.source_span}")' if one.source_span else ""
        note += f" - {one.note}" if one.note else ""
        yield note


def _shown_label(labels: Sequence[str]) -> str:
    """The one label that FaithJudge shows of several: Unwanted before Benign before the first."""
    return next((label for label in ("Unwanted", "Benign") if label in labels), labels[0] if labels else "-")
