"""The benchmarks as tasks of Inspect (https://inspect.aisi.org.uk): `inspect eval march/ragtruth`.

    inspect eval march/ragtruth --model vllm/Qwen/Qwen3-8B --model-role grader=openai/gpt-4.1 \\
        -T path=data/ragtruth -T style=cot

Inspect finds this package by its entry point; each benchmark's files, prompts and rules are those of
`pipeline/evaluate/benchmarks/`. Every task takes `path`, `style` (plain, cot or 10-shot), `limit`, `audit`
(lexical, model or none) and what `make_task` takes beside them.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task

from pipeline.evaluate.benchmarks import ALL_NAMES
from pipeline.evaluate.tasks.build import make_task
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.scores import item_scores, majority
from reward.offline.ragtruth import CHECKS

__all__ = ["item_scores", "majority", "make_task"]

# The lookup reads RAGTruth's tables of hours, stars and yes/no fields.
_FIXED: dict[str, dict[str, Any]] = {"ragtruth": {"checks": CHECKS}}


def _register(name: str) -> None:
    """Makes Inspect's task `march/NAME`."""

    @task(name=f"march/{name}")
    @of_march
    def benchmark(path: str = "", style: str = "plain", limit: int | None = None, **settings: Any) -> Task:
        return make_task(name, path, style, limit, **_FIXED.get(name, {}), **settings)


for _name in ALL_NAMES:
    _register(_name)
