"""The benchmarks as tasks of Inspect (https://inspect.aisi.org.uk): `inspect eval march/ragtruth`.

    inspect eval march/ragtruth --model vllm/Qwen/Qwen3-8B --model-role grader=openai/gpt-4.1 \\
        -T path=data/ragtruth -T style=cot

Inspect finds this package by its entry point; each benchmark's files, prompts and rules are those of
`pipeline/evaluate/benchmarks/`. Every task takes what `make_task` takes beside the benchmark's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, task
from inspect_ai._util.error import PrerequisiteError  # shown as one line; Inspect exports none
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig, model_roles
from inspect_ai.scorer import Scorer

from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks import NAMES, make_benchmark
from pipeline.evaluate.plan import GENERATION, NUM_GENERATIONS, AuditKind
from pipeline.evaluate.tasks.samples import answers, make_sample, of_march
from pipeline.evaluate.tasks.scorers import majority, numbers, verdict
from pipeline.evaluate.tasks.served import ROLE
from reward.config import SamplingSettings
from reward.offline.ragtruth import CHECKS


def make_task(
    name: str,
    path: str = "",
    style: str = "plain",
    limit: int | None = None,
    audit: str = "lexical",
    judge: bool = True,
) -> Task:
    """A task with the paper's settings, which Inspect's own options change (`--epochs 1`, `--temperature 0`).

    Args:
        name: Of the benchmark.
        path: Its official file or folder.
        style: How the model is asked: plain, cot or 10-shot.
        limit: First items alone.
        audit: How numbers are audited: lexical or none.
        judge: Whether verdicts are asked for now; `inspect score` adds them later.

    Raises:
        PrerequisiteError: files or the judge are missing, a row or a setting cannot be used.
    """
    benchmark = make_benchmark(name)
    try:
        if not path:
            raise ValueError(f"give -T path=FILE-OR-FOLDER; it is published at {benchmark.url}")
        asked, audits_by = benchmark.style_of(PromptStyle(style)), AuditKind(audit)
        if audits_by is AuditKind.MODEL:
            raise ValueError("-T audit=model: an audit by a model takes `march evaluate --audit model`")
        items = benchmark.read_items(Path(path), limit)
        if judge and benchmark.verdict and ROLE not in model_roles():
            raise ValueError(  # the model under test never judges itself
                f"a model judges the answers; give --model-role {ROLE}=MODEL, or -T judge=false now and "
                "`inspect score LOG --scorer march/verdict` later"
            )
    except (ValueError, FileNotFoundError) as error:
        raise PrerequisiteError(f"march/{name}: {error}") from None
    scorers = [*([verdict()] if judge else []), *audits(benchmark, audits_by, {})]
    return benchmark_task(benchmark, items, asked, location=path, solver=answers(), scorer=scorers or None)


def audits(benchmark: Benchmark, kind: AuditKind, settings: dict[str, Any]) -> list[Scorer]:
    """The audit of a benchmark's answers, where there is one."""
    if kind is AuditKind.NONE or benchmark.is_given or not benchmark.has_answers:
        return []
    # The lookup reads RAGTruth's tables of hours, stars and yes/no fields.
    checks = settings.get("checks") or (CHECKS if benchmark.name == "ragtruth" else ())
    return [numbers(auditor=kind.value, settings={**settings, "checks": list(checks)})]


def benchmark_task(
    benchmark: Benchmark,
    items: Sequence[Item],
    style: PromptStyle,
    *,
    location: str,
    generation: SamplingSettings = GENERATION,
    epochs: int = NUM_GENERATIONS,
    **options: Any,
) -> Task:
    """A task of a benchmark's items, asked in a style; given answers have one epoch.

    `location` is that of the official files; `options` are Inspect's, such as `solver` and `scorer`.
    """
    sampled = generation.model_dump(include={"temperature", "top_p", "top_k", "max_tokens"})
    samples = [make_sample(benchmark, item, style) for item in items]
    return Task(
        dataset=MemoryDataset(samples, name=benchmark.title, location=location),
        epochs=Epochs(1 if benchmark.is_given else epochs, majority()),
        config=GenerateConfig(**sampled),
        score_on_error=True,  # one request that fails is counted, and the others are scored
        metadata=benchmark.card.model_dump(),
        **options,
    )


for _name in NAMES:  # Inspect's task `march/NAME`
    task(name=f"march/{_name}")(of_march(partial(make_task, _name)))
