"""RAGTruth: answers, summaries and data-to-text by six models, in which people marked hallucinations.

https://github.com/ParticleMedia/RAGTruth, MIT; Niu et al., ACL 2024. `pipeline/data/ragtruth.py` reads its
two files, `response.jsonl` and `source_info.jsonl`; here the test split is asked. FaithJudge's selection of
sources, which the paper's figures are of, is another one.

An answer of a quality other than "good" is no example for the judge, as in RAGTruth's own evaluation. It is
consistent if nothing is marked in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pipeline.data.ragtruth import RagTruthLabel, RagTruthRow, responses_by_source
from pipeline.data.rows import Split, parse_row
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import Item
from pipeline.evaluate.benchmarks.faithjudge import Calibration, FaithJudgeBenchmark, labelled
from reward.offline.ragtruth import RESPONSES


class RagTruth(FaithJudgeBenchmark):
    """RAGTruth by FaithJudge's protocol."""

    name, title, licence = "ragtruth", "RAGTruth", "MIT"
    url = "https://github.com/ParticleMedia/RAGTruth"
    judge_chat = "judge_ragtruth"
    splits: ClassVar[tuple[Split, ...]] = ("test",)

    def items(self, source: Path) -> Iterator[Item]:
        """Yields one item a source; see `Benchmark.items`."""
        (file,) = self.published(source, RESPONSES)
        responses = responses_by_source(file, self.splits)
        for raw in raw_rows(RagTruthRow.files(file)[0]):
            row = parse_row(raw, RagTruthRow)
            if row.source_id in responses:
                good = [one for one in responses[row.source_id] if one.quality in (None, "good")]
                yield Item(
                    id=row.source_id,
                    slice=row.task_type.lower(),
                    cluster=row.source_id,
                    query=row.queries(raw.place)[0],
                    responses=tuple(
                        labelled(one.id, one.response, map(_note, one.labels), consistent=not one.labels)
                        for one in good
                    ),
                )


class RagTruthJudge(Calibration, RagTruth):
    """RAGTruth's labelled answers."""

    name, title = "ragtruth_judge", "Judge on RAGTruth's labelled answers"


def _note(label: RagTruthLabel) -> str:
    note = f'{label.label_type}: "{label.text}"'
    note += f" - {label.meta}" if label.meta else ""
    note += " (perhaps true, but the source does not say it)" if label.implicit_true else ""
    return note + (" (a null of the data was read as false)" if label.due_to_null else "")
