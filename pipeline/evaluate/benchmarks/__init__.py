"""The benchmarks, by the name that the command line gives them.

The paper's seven, two that hold the judge against people (`Calibration`), and those whose truth is known,
two worlds and a user's own rows, which are no figures of any table. A new one is a file with a `Benchmark`
and a line here; it is imported when it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.evaluate.benchmark import Benchmark

_CLASSES = {
    "ragtruth": "faithjudge.RagTruth",
    "faithbench": "faithjudge.FaithBench",
    "facts_grounding": "facts_grounding.FactsGrounding",
    "contextual_judge_bench": "contextual_judge_bench.ContextualJudgeBench",
    "hotpotqa": "multihop.HotpotQA",
    "2wikimultihopqa": "multihop.TwoWiki",
    "musique": "multihop.MuSiQue",
    "ragtruth_judge": "faithjudge.RagTruthJudge",
    "faithbench_judge": "faithjudge.FaithBenchJudge",
    "tiny": "worlds.TinyWorld",
    "wiki": "worlds.WikiWorldRows",
    "jsonl": "worlds.OwnRows",
    "jsonl_compact": "worlds.CompactOwnRows",
}
ALL_NAMES = tuple(_CLASSES)
CALIBRATION_NAMES = ("ragtruth_judge", "faithbench_judge")
_KNOWN_TRUTH = ("tiny", "wiki", "jsonl", "jsonl_compact")
NAMES = tuple(name for name in ALL_NAMES if name not in (*CALIBRATION_NAMES, *_KNOWN_TRUTH))


@cache
def make_benchmark(name: str) -> Benchmark:
    """Makes a benchmark with the paper's settings.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in _CLASSES:
        raise ValueError(f"benchmark: {name!r} is not known; give one of {', '.join(ALL_NAMES)}")
    module, _, made = _CLASSES[name].partition(".")
    benchmark: Benchmark = getattr(import_module(f"{__name__}.{module}"), made)()
    return benchmark
