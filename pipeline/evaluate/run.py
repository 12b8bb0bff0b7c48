"""The runner: benchmarks in, generations, judgements and audits paid for once, figures out.

    OUT/BENCHMARK/records.jsonl    what was paid for, kept at once (`store.py`)
    OUT/BENCHMARK/items.jsonl      scores and judgements, in the order of the items (`results.py`)
    OUT/manifest.json              last, by rename: settings, digests, licences, figures

First all generations are made, then the model is let go, then all judgements and audits: a model in this
process need not share its memory with a judge, and `--only` splits the two. The same command resumes what was
interrupted, tries again what failed, and changes nothing when all is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pipeline.evaluate.cache import ReplyCache
from pipeline.evaluate.cost import Expected, expect
from pipeline.evaluate.generate import Spent, generate
from pipeline.evaluate.judge import Judge
from pipeline.evaluate.manifest import Manifest, make_manifest
from pipeline.evaluate.number_audit import audit_numbers
from pipeline.evaluate.plan import (
    AuditKind,
    EvaluationJob,
    MakeBenchmark,
    Plan,
    PlannedBenchmark,
    Stage,
    make_plan,
)
from pipeline.evaluate.results import ITEMS_FILE, results
from pipeline.evaluate.store import RECORDS_FILE, Place, Store
from pipeline.evaluate.work import Progress
from reward.offline.files import only_writer, replace_file
from reward.samplers import Sampler, make_sampler
from reward.samplers.openai import OpenAISampler

_LOCK_FILE = ".lock"


@dataclass
class Outcome:
    """How a run ended."""

    manifest: Manifest | None = None  # None where the judge is still to be asked
    model: Spent = field(default_factory=Spent)
    judge: Spent = field(default_factory=Spent)
    num_cached: int = 0  # judge's replies that another answer or evaluation had paid for


def run_evaluation(
    job: EvaluationJob,
    make: MakeBenchmark,
    progress: Progress,
    *,
    sampler: Sampler | None = None,
) -> Outcome:
    """Evaluates a model, or goes on with it.

    Args:
        job: What to evaluate, and how.
        make: A benchmark by its name, such as `benchmarks.make_benchmark`.
        progress: Told of every piece of work.
        sampler: The model under test, in place of the one that `job.model` describes.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used, the folder is another evaluation's, a server does not
            answer, or the judge talks nonsense. What was done is kept.
    """
    plan = make_plan(job, make)
    with only_writer(job.out / _LOCK_FILE, what="evaluation"), _stores(plan) as stores:
        outcome = asyncio.run(_spend(plan, stores, progress, sampler))
        for one in plan.benchmarks:
            stores[one.name].finish(_places(one, stores[one.name]))
        if job.only is not Stage.GENERATE:
            outcome.manifest = _write(plan, stores)
        return outcome


async def expect_evaluation(job: EvaluationJob, make: MakeBenchmark) -> list[Expected]:
    """What is still to be asked, by benchmark; nothing is asked of a model, and nothing written.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used, or the folder is another evaluation's.
    """
    plan = make_plan(job, make)
    model, judge = make_sampler(job.model), OpenAISampler(job.judge) if job.judge else None
    try:
        return await expect(plan, open_stores(plan), model=model, judge=judge)
    finally:
        await model.close()
        if judge:
            await judge.close()


def open_stores(plan: Plan) -> dict[str, Store]:
    """What earlier runs kept, by benchmark.

    Raises:
        ValueError: a file holds something else, or records of items that take no part.
    """
    stores = {}
    for one in plan.benchmarks:
        store = Store(plan.job.out / one.name / RECORDS_FILE)
        store.refuse_others({(item.id, prompt.name) for item in one.items for prompt in one.prompts[item.id]})
        stores[one.name] = store
    return stores


@contextmanager
def _stores(plan: Plan) -> Iterator[dict[str, Store]]:
    """The stores of a run; whatever ends it closes them."""
    if plan.job.overwrite:
        plan.job.manifest_path.unlink(missing_ok=True)
        for one in plan.benchmarks:
            for name in (RECORDS_FILE, ITEMS_FILE):
                (plan.job.out / one.name / name).unlink(missing_ok=True)
    stores = open_stores(plan)
    with ExitStack() as closing:
        for store in stores.values():
            store.before_first = lambda: plan.job.manifest_path.unlink(missing_ok=True)
            closing.callback(store.close)
        yield stores


async def _spend(
    plan: Plan, stores: Mapping[str, Store], progress: Progress, sampler: Sampler | None
) -> Outcome:
    """Asks for everything that is not kept yet."""
    job, outcome = plan.job, Outcome()
    if job.only is not Stage.JUDGE:
        model = sampler or make_sampler(job.model)
        try:
            outcome.model = await generate(plan, stores, model, progress)
        finally:
            await model.close()
    if job.only is Stage.GENERATE:
        return outcome
    judging = OpenAISampler(job.judge) if job.judge else None
    cache = ReplyCache(job.cache) if job.cache and judging else None
    try:
        judge = Judge(job, judging, cache)
        await judge.judge(plan, stores, progress)
        outcome.judge, outcome.num_cached = judge.spent, judge.num_cached
        auditor = judging if job.audit is AuditKind.MODEL else None
        await audit_numbers(plan, stores, auditor, progress)
    finally:
        if judging:
            await judging.close()
        if cache:
            cache.close()
    return outcome


def _places(one: PlannedBenchmark, store: Store) -> Iterator[Place]:
    """Everything that can be kept of a benchmark, in the order in which it is written."""
    for item in one.items:
        for prompt in one.prompts[item.id]:
            yield Place("generations", item.id, prompt.name)
            found = store.generations(item.id, prompt.name)
            for index in range(len(found.texts) if found else 1):
                yield Place("judgement", item.id, prompt.name, index)
                yield Place("audit", item.id, prompt.name, index)


def _write(plan: Plan, stores: Mapping[str, Store]) -> Manifest:
    found = {}
    for one in plan.benchmarks:
        found[one.name] = list(results(plan, one, stores[one.name]))
        lines = (f"{result.model_dump_json()}\n" for result in found[one.name])
        replace_file(plan.job.out / one.name / ITEMS_FILE, lines)
    manifest = make_manifest(plan, stores, found)
    replace_file(plan.job.manifest_path, manifest.model_dump_json(indent=2) + "\n")
    return manifest
