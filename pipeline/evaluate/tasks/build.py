"""One benchmark as a task: its samples, the solver, the scorers, and how the paper samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai._util.error import PrerequisiteError  # shown as one line; Inspect exports none
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig, model_roles
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver

from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.plan import AuditKind
from pipeline.evaluate.sampling import GENERATION, JUDGE_RETRIES, NUM_GENERATIONS
from pipeline.evaluate.tasks.grader import ROLE
from pipeline.evaluate.tasks.numbers import numbers
from pipeline.evaluate.tasks.samples import make_sample
from pipeline.evaluate.tasks.scores import majority
from pipeline.evaluate.tasks.solver import answers
from pipeline.evaluate.tasks.verdict import verdict
from reward.config import SamplingSettings

_ABOUT = {"name", "url", "licence", "scored_by", "primary", "higher_is_better", "prompt_digest"}


def make_task(
    name: str,
    path: str,
    style: str,
    limit: int | None,
    *,
    audit: str = "lexical",
    checks: Sequence[str] = (),
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
        checks: Optional checks of the lookup, for documents of one layout.
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
        asked, audits = benchmark.style_of(PromptStyle(style)), AuditKind(audit)
        items = benchmark.read_items(Path(path), limit)
        needs_grader = (judge and benchmark.verdict is not None) or audits is AuditKind.MODEL
        if needs_grader and ROLE not in model_roles():  # the model under test never judges itself
            raise ValueError(
                f"a model judges the answers; give --model-role {ROLE}=MODEL, or -T judge=false now and "
                "`inspect score LOG --scorer march/verdict` later"
            )
    except (ValueError, FileNotFoundError) as error:
        raise PrerequisiteError(f"march/{name}: {error}") from None
    verdicts = [verdict(retries=judge_retries, schema=judge_schema, cache=judge_cache)] if judge else []
    scorers = [*verdicts, *other_scorers(benchmark, audits, {"checks": list(checks)})]
    return benchmark_task(benchmark, items, asked, answers(seed=seed), scorers, location=path)


def benchmark_task(
    benchmark: Benchmark,
    items: Sequence[Item],
    style: PromptStyle,
    solver: Solver,
    scorers: Sequence[Scorer],
    *,
    location: str,
    generation: SamplingSettings = GENERATION,
    epochs: int = NUM_GENERATIONS,
    **options: Any,
) -> Task:
    """A task of a benchmark's items; given answers have one epoch.

    Args:
        benchmark: Whose items they are.
        items: What is asked.
        style: How.
        solver: Asks the model, or has its answers.
        scorers: None leaves the answers unscored.
        location: Of the official files.
        generation: How the model is sampled.
        epochs: Answers to each prompt.
        options: Of Inspect's `Task`.
    """
    samples = [make_sample(benchmark, item, style) for item in items]
    about = benchmark.card.model_dump(include=_ABOUT)
    return Task(
        dataset=MemoryDataset(samples, name=benchmark.card.title, location=location),
        solver=solver,
        scorer=list(scorers) or None,
        epochs=Epochs(1 if benchmark.is_given else epochs, majority()),
        config=GenerateConfig(
            **generation.model_dump(include={"temperature", "top_p", "top_k", "max_tokens"})
        ),
        score_on_error=True,  # one request that fails is counted, and the others are scored
        metadata={"benchmark": about.pop("name"), **about},
        **options,
    )


def other_scorers(benchmark: Benchmark, audits: AuditKind, settings: Mapping[str, Any]) -> Iterator[Scorer]:
    """What scores beside the verdict: the audit of the answers' numbers."""
    if audits is not AuditKind.NONE and benchmark.card.has_answers and not benchmark.is_given:
        yield numbers(auditor="lexical" if audits is AuditKind.LEXICAL else "model", settings=dict(settings))
