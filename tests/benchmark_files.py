"""Where the tests find the small files of each benchmark, and what they read of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.evaluate.benchmark import Benchmark, Item
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.majority import Judgement, means
from reward.samplers import Message

DATA = Path(__file__).parent / "data"
FOLDERS: Mapping[str, Path] = {
    "ragtruth": DATA / "ragtruth",
    "faithbench": DATA / "faithbench_layout",
    "facts_grounding": DATA / "facts_grounding_layout",
    "contextual_judge_bench": DATA / "contextual_judge_bench_layout",
    "hotpotqa": DATA / "hotpotqa_cc-by-sa-4.0" / "hotpot_dev_distractor.json",
    "2wikimultihopqa": DATA / "2wikimultihopqa",
    "musique": DATA / "musique_cc-by-4.0" / "musique_ans.jsonl",
}
NAMES = tuple(FOLDERS)  # of the paper
CALIBRATION_NAMES = ("ragtruth_judge", "faithbench_judge")
FOLDERS = {**FOLDERS, **{name: FOLDERS[name.removesuffix("_judge")] for name in CALIBRATION_NAMES}}
Judged = tuple[str, Judgement | None]  # a generation and what was found of it
QA = ("hotpotqa", "2wikimultihopqa", "musique")


def items_of(name: str) -> list[Item]:
    """The items of a benchmark's fixture."""
    return list(make_benchmark(name).items(FOLDERS[name]))


def write_pairs(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows of ContextualJudgeBench as its Parquet files hold them."""
    from pyarrow import Table
    from pyarrow.parquet import write_table

    file.parent.mkdir(parents=True, exist_ok=True)
    write_table(Table.from_pylist(list(rows)), file)


def text_of(messages: tuple[Message, ...]) -> str:
    """All of a chat."""
    return "\n".join(message["content"] for message in messages)


def item_scores(
    benchmark: Benchmark, item: Item, judged: Mapping[str, Sequence[Judged]]
) -> dict[str, float | None]:
    """All scores of one item, as the tasks' reducer works them out."""
    measured = [benchmark.measured(item, name, text) for name, found in judged.items() for text, _ in found]
    judgements = {name: [judgement for _, judgement in found] for name, found in judged.items()}
    return dict(benchmark.by_majority(judgements)) | means(measured)
