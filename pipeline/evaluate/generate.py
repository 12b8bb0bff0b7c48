"""The model under test answers: all generations of a prompt in one request, so that its prompt is read once.

A prompt that does not fit the model is recorded and never asked again. Any other failure leaves nothing
behind: the item is counted as failed, and the same command tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.evaluate.benchmark import Item, Prompt
from pipeline.evaluate.plan import EvaluationJob, Plan, PlannedBenchmark, generation_digest
from pipeline.evaluate.store import Generations, Place, Store
from pipeline.evaluate.work import Failures, Progress, work
from reward.samplers import Sampler, SamplerError
from reward.types import TokenUse

TOO_LONG = "prompt_too_long"
_READY_ATTEMPTS = 6  # each has a limit of seconds, and a server that loads may need more


class Ready(Protocol):
    """What tells whether it answers."""

    async def ready(self) -> None:
        """Raises `SamplerError` when it does not."""
        ...


@dataclass
class Spent:
    """What this run paid for."""

    num_requests: int = 0
    num_prompt_tokens: int = 0
    num_completion_tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    def add(self, use: TokenUse | None) -> None:
        """Counts one request."""
        self.num_requests += 1
        if use is not None:
            self.num_prompt_tokens += use.num_prompt
            self.num_completion_tokens += use.num_completion

    @property
    def use(self) -> TokenUse:
        """All of it."""
        return TokenUse(num_prompt=self.num_prompt_tokens, num_completion=self.num_completion_tokens)

    @property
    def num_tokens(self) -> int:
        """Prompts and completions together."""
        return self.num_prompt_tokens + self.num_completion_tokens


@dataclass(frozen=True)
class GenerationTask:
    """One prompt to ask of the model under test."""

    store: Store
    item: Item
    prompt: Prompt
    digest: str

    @property
    def place(self) -> Place:
        """Where its generations are kept."""
        return Place("generations", self.item.id, self.prompt.name)


async def generate(plan: Plan, stores: Mapping[str, Store], sampler: Sampler, progress: Progress) -> Spent:
    """Asks for all generations that are not kept yet.

    Raises:
        ServerDownError: the model's server failed too often.
        ValueError: what is kept was made otherwise.
    """
    job = plan.job
    asked = [task for one in plan.benchmarks for task in generation_tasks(job, one, stores[one.name])]
    todo = [task for task in asked if not task.store.require(task.place, task.digest)]
    spent, failures = Spent(), Failures("model")
    if not todo:
        return spent
    await require_ready(sampler, "model")
    progress.stage("generating", len(asked), len(asked) - len(todo))

    async def do(task: GenerationTask) -> None:
        record = await _asked(job, task, sampler, failures)
        if record is not None:
            task.store.add(record)
            spent.add(record.use)
        progress.step(f"{spent.num_tokens:,} tokens")

    try:
        await work(todo, do, concurrency=job.concurrency)
    finally:
        spent.failures = dict(failures.counts)
    return spent


def texts_of(store: Store, item: Item, prompt: Prompt) -> tuple[str, ...]:
    """The generations of a prompt: the given one, or what is kept; empty where the model gave none."""
    if prompt.given is not None:
        return (prompt.given,)
    found = store.generations(item.id, prompt.name)
    return found.texts if found else ()


async def require_ready(sampler: Ready, who: str) -> None:
    """Raises `ValueError` when a server does not answer; a slow one is asked several times."""
    for attempt in range(_READY_ATTEMPTS):
        try:
            await sampler.ready()
            return
        except SamplerError as error:
            if error.reason != "timeout" or attempt == _READY_ATTEMPTS - 1:
                raise ValueError(f"{who}: {error.detail}") from error


def generation_tasks(job: EvaluationJob, one: PlannedBenchmark, store: Store) -> Iterator[GenerationTask]:
    for item in one.items:
        for prompt in one.prompts[item.id]:
            if prompt.given is None:
                yield GenerationTask(store, item, prompt, generation_digest(job, prompt))


async def _asked(
    job: EvaluationJob, task: GenerationTask, sampler: Sampler, failures: Failures
) -> Generations | None:
    texts: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    failure, use = "", None
    try:
        group = await sampler.sample(task.prompt.messages, n=job.num_generations, settings=job.generation)
    except SamplerError as error:
        if error.reason != TOO_LONG:
            failures.failed(error)
            return None
        failures.counts[error.reason] += 1
        failure = TOO_LONG
    else:
        failures.succeeded()
        texts = tuple(sample.text for sample in group.samples)
        reasons = tuple(sample.finish_reason for sample in group.samples)
        use = group.use
    return Generations(
        item=task.item.id,
        prompt=task.prompt.name,
        digest=task.digest,
        texts=texts,
        finish_reasons=reasons,
        use=use,
        failure=failure,
    )
