"""FaithBench: summaries by ten models of hard articles, in which several people marked hallucinations.

`pipeline/data/evaluation_rows.py` has URL, licence, an example row and the reader of the release's
`batch_*.json`. A summary is consistent, by people, unless the worst label of all its annotations is
Questionable or Unwanted: the shipped setting of the official `scripts/binarize.py`. FaithJudge's judge is
stricter: by its prompt Benign hallucinations count, too; summaries whose worst label is Benign therefore have
a slice of their own in the judge's calibration. The release does not say who looked and marked nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from string import ascii_uppercase

from pipeline.data.evaluation_rows import Annotation, FaithBenchRow
from pipeline.data.rows import parse_row
from pipeline.evaluate.benchmark import Item, LabelledResponse
from pipeline.evaluate.benchmarks.faithjudge import Calibration, FaithJudgeBenchmark, labelled
from reward.offline.rows import make_query
from reward.types import Document

QUERY = "Summarise this passage concisely. Cover the core pieces of information that it describes."


class FaithBench(FaithJudgeBenchmark):
    """FaithBench by FaithJudge's protocol."""

    name, title, licence = "faithbench", "FaithBench", "CC-BY-NC-SA-4.0"
    url = "https://github.com/vectara/FaithBench"
    judge_chat = "judge_faithbench"

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item an article, with all summaries of it; see `Benchmark.items`."""
        files = self.published(source, "batch_[0-9]*.json")
        for file in sorted(files, key=lambda file: (len(file.name), file.name)):  # 2 before 10
            batch = file.stem.removeprefix("batch_")
            articles: dict[str, list[tuple[str, FaithBenchRow]]] = defaultdict(list)
            for raw in FaithBenchRow.raw_rows(file):
                row = parse_row(raw, FaithBenchRow)
                articles[row.source].append((raw.place, row))
            for text, rows in articles.items():
                place, first = rows[0]
                name = f"{batch}-{first.sample_id}"
                yield Item(
                    id=name,
                    slice="summary",
                    cluster=name,
                    query=make_query(place, name, QUERY, [Document(id=name, text=text)]),
                    responses=tuple(_labelled(batch, row) for _, row in rows),
                )


class FaithBenchJudge(Calibration, FaithBench):
    """FaithBench's labelled summaries."""

    name, title = "faithbench_judge", "Judge on FaithBench's labelled answers"


def _labelled(batch: str, row: FaithBenchRow) -> LabelledResponse:
    """A summary with its notes, one an annotation, and whether the worst label leaves it consistent."""
    annotators: dict[str, list[str]] = defaultdict(list)
    for one in row.annotations:
        annotators[one.annotator_id].append(_note(one))
    labels = {label for one in row.annotations for label in one.label}
    lettered = zip(cycle(ascii_uppercase), annotators.values(), strict=False)
    notes = [f"Annotator {letter}: {note}" for letter, found in lettered for note in found] if labels else []
    name = f"{batch}-{row.sample_id}"
    return labelled(name, row.summary, notes, consistent=labels <= {"Benign"})


def _note(one: Annotation) -> str:
    """With the one label that FaithJudge shows of several: Unwanted before Benign before the first."""
    first = one.label[0] if one.label else "-"
    label = next((label for label in ("Unwanted", "Benign") if label in one.label), first)
    text = f'{label}: "{one.summary_span or ""}"'
    text += f' (source: "{one.source_span}")' if one.source_span else ""
    return text + (f" - {one.note}" if one.note else "")
