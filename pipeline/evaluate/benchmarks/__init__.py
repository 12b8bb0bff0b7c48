"""The benchmarks, by the name that the command line gives them.

A new one is a file with a `Benchmark` and a line here; it is imported when it is asked for.
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
    # The judge against people.
    "ragtruth_judge": "faithjudge.RagTruthJudge",
    "faithbench_judge": "faithjudge.FaithBenchJudge",
    # Their truth is known: figures of no table.
    "tiny": "worlds.TinyWorlds",
    "wiki": "worlds.WikiFacts",
    "jsonl": "worlds.OwnRows",
    "jsonl_compact": "worlds.CompactOwnRows",
    "jsonl_audit": "worlds.UnknownAnswers",
    "jsonl_audit_compact": "worlds.CompactUnknownAnswers",
}
NAMES = tuple(_CLASSES)


@cache
def make_benchmark(name: str) -> Benchmark:
    """Makes a benchmark with the paper's settings; raises `ValueError` when none has this name."""
    if name not in _CLASSES:
        raise ValueError(f"benchmark: {name!r} is not known; give one of {', '.join(NAMES)}")
    module, _, made = _CLASSES[name].partition(".")
    benchmark: Benchmark = getattr(import_module(f"{__name__}.{module}"), made)()
    return benchmark
