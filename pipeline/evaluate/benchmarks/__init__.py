"""The benchmarks, by the name that the command line gives them.

The paper's seven, two that hold the judge against people (`Calibration`), and two worlds whose truth is
known, which are no figures of any table. A benchmark's files are imported when it is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.evaluate.benchmark import Benchmark

NAMES = (
    "ragtruth",
    "faithbench",
    "facts_grounding",
    "contextual_judge_bench",
    "hotpotqa",
    "2wikimultihopqa",
    "musique",
)
CALIBRATION_NAMES = ("ragtruth_judge", "faithbench_judge")
TINY_NAME, WIKI_NAME = "tiny", "wiki"


@cache
def make_benchmark(name: str) -> Benchmark:
    """Makes a benchmark with the paper's settings.

    Raises:
        ValueError: there is none of this name.
    """
    for made in _benchmarks():
        if made.card.name == name:
            return made
    known = ", ".join((*NAMES, *CALIBRATION_NAMES, TINY_NAME, WIKI_NAME))
    raise ValueError(f"benchmark: {name!r} is not known; give one of {known}")


def _benchmarks() -> tuple[Benchmark, ...]:
    from pipeline.evaluate.benchmarks.calibration import Calibration
    from pipeline.evaluate.benchmarks.contextual_judge_bench import ContextualJudgeBench
    from pipeline.evaluate.benchmarks.facts_grounding import FactsGrounding
    from pipeline.evaluate.benchmarks.faithbench import FaithBench
    from pipeline.evaluate.benchmarks.hotpotqa import HotpotQA
    from pipeline.evaluate.benchmarks.musique import MuSiQue
    from pipeline.evaluate.benchmarks.ragtruth import RagTruth
    from pipeline.evaluate.benchmarks.tiny_world import TinyWorld
    from pipeline.evaluate.benchmarks.twowiki import TwoWiki
    from pipeline.evaluate.benchmarks.wiki_world import WikiWorldRows

    ragtruth, faithbench = RagTruth(), FaithBench()
    return (
        ragtruth,
        faithbench,
        FactsGrounding(),
        ContextualJudgeBench(),
        HotpotQA(),
        TwoWiki(),
        MuSiQue(),
        Calibration(ragtruth),
        Calibration(faithbench),
        TinyWorld(),
        WikiWorldRows(),
    )
