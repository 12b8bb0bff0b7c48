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
from pipeline.evaluate.benchmarks import ALL_NAMES, make_benchmark
from pipeline.evaluate.plan import GENERATION, JUDGE_RETRIES, NUM_GENERATIONS, AuditKind
from pipeline.evaluate.tasks.samples import answers, make_sample, of_march
from pipeline.evaluate.tasks.scorers import item_scores, majority, numbers, verdict
from pipeline.evaluate.tasks.served import ROLE
from reward.config import SamplingSettings
from reward.offline.ragtruth import CHECKS

__all__ = ["audits", "benchmark_task", "item_scores", "majority", "make_task"]

_ABOUT = {"name", "url", "licence", "scored_by", "primary", "higher_is_better", "prompt_digest"}


def make_task(
    name: str,
    path: str = "",
    style: str = "plain",
    limit: int | None = None,
    audit: str = "lexical",
    seed: int = 0,
    judge: bool = True,
    judge_retries: int = JUDGE_RETRIES,
    judge_schema: bool = True,
    judge_cache: bool = False,
) -> Task:
    """A task with the paper's settings, which Inspect's own options change (`--epochs 1`, `--temperature 0`).

    Args:
        name: Of the benchmark.
        path: Its official file or folder.
        style: How the model is asked: plain, cot or 10-shot.
        limit: First items alone.
        audit: How numbers are audited: lexical, model or none.
        seed: Of the first epoch; each further one has the next.
        judge: Whether verdicts are asked for now; `inspect score` adds them later.
        judge_retries: Further questions to the judge after a reply that cannot be read.
        judge_schema: Whether the judge's server is asked to bind its reply to a JSON schema.
        judge_cache: Whether Inspect keeps the judge's replies for equal questions.

    Raises:
        PrerequisiteError: files or the judge are missing, a row or a setting cannot be used.
    """
    benchmark = make_benchmark(name)
    try:
        if not path:
            url = benchmark.card.url
            raise ValueError(f"give -T path=FILE-OR-FOLDER; it is published at {url}")
        asked, audits_by = benchmark.style_of(PromptStyle(style)), AuditKind(audit)
        items = benchmark.read_items(Path(path), limit)
        needs_grader = (judge and benchmark.verdict is not None) or audits_by is AuditKind.MODEL
        if needs_grader and ROLE not in model_roles():  # the model under test never judges itself
            raise ValueError(
                f"a model judges the answers; give --model-role {ROLE}=MODEL, or -T judge=false now and "
                "`inspect score LOG --scorer march/verdict` later"
            )
    except (ValueError, FileNotFoundError) as error:
        raise PrerequisiteError(f"march/{name}: {error}") from None
    judging = verdict(retries=judge_retries, schema=judge_schema, cache=judge_cache)
    # The lookup reads RAGTruth's tables of hours, stars and yes/no fields.
    audited = audits(benchmark, audits_by, {"checks": CHECKS if name == "ragtruth" else []})
    scorers = [judging, *audited] if judge else audited
    return benchmark_task(
        benchmark, items, asked, location=path, solver=answers(seed=seed), scorer=scorers or None
    )


def audits(benchmark: Benchmark, kind: AuditKind, settings: dict[str, Any]) -> list[Scorer]:
    """The audit of a benchmark's answers, where there is one."""
    if kind is AuditKind.NONE or benchmark.is_given or not benchmark.card.has_answers:
        return []
    return [numbers(auditor="lexical" if kind is AuditKind.LEXICAL else "model", settings=settings)]


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
    about = benchmark.card.model_dump(include=_ABOUT)
    sampled = generation.model_dump(include={"temperature", "top_p", "top_k", "max_tokens"})
    samples = [make_sample(benchmark, item, style) for item in items]
    return Task(
        dataset=MemoryDataset(samples, name=benchmark.card.title, location=location),
        epochs=Epochs(1 if benchmark.is_given else epochs, majority()),
        config=GenerateConfig(**sampled),
        score_on_error=True,  # one request that fails is counted, and the others are scored
        metadata={"benchmark": about.pop("name"), **about},
        **options,
    )


for _name in ALL_NAMES:  # Inspect's task `march/NAME`
    task(name=f"march/{_name}")(of_march(partial(make_task, _name)))
