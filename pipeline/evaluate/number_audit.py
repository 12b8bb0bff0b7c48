"""The MARCH audit of the answers, as one of the metrics: are their numbers those of the documents?

Lexical, each number is looked up; or by model, where the judge's model proposes, checks and votes. Only
answers that a judge is asked about are audited, without the thought before them: a letter that names the
better of two responses states no number of a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.evaluate.benchmark import Item, Prompt
from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.generate import texts_of
from pipeline.evaluate.plan import AuditKind, Plan, PlannedBenchmark, digest
from pipeline.evaluate.store import NumberAudit, Place, Store
from pipeline.evaluate.work import Progress, work
from reward.auditor import audit
from reward.lexical import lexical_audit
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler


@dataclass(frozen=True)
class _Task:
    store: Store
    item: Item
    prompt: Prompt
    index: int
    text: str
    digest: str

    @property
    def place(self) -> Place:
        return Place("audit", self.item.id, self.prompt.name, self.index)


async def audit_numbers(
    plan: Plan, stores: Mapping[str, Store], sampler: Sampler | None, progress: Progress
) -> None:
    """Audits every answer that was not audited yet.

    Args:
        plan: What is evaluated.
        stores: By benchmark.
        sampler: The auditing model's, with `audit: model`.
        progress: Told of every audit.

    Raises:
        ValueError: what is kept was made otherwise.
    """
    job = plan.job
    if job.audit is AuditKind.NONE:
        return
    asked = [task for one in plan.benchmarks for task in audit_tasks(plan, one, stores[one.name])]
    todo = [task for task in asked if not task.store.require(task.place, task.digest)]
    if not todo:
        return
    progress.stage("auditing numbers", len(asked), len(asked) - len(todo))
    prompts = load_prompts(job.audit_settings.prompts) if job.audit is AuditKind.MODEL else None

    async def do(task: _Task) -> None:
        if job.audit is AuditKind.LEXICAL:
            verdict = lexical_audit(task.item.query, task.text, job.audit_settings)
        else:
            settings = job.audit_settings
            result = await audit(
                task.item.query, task.text, sampler=sampler, prompts=prompts, config=settings
            )
            verdict = result.verdict
        record = NumberAudit(
            item=task.item.id, prompt=task.prompt.name, index=task.index, digest=task.digest, verdict=verdict
        )
        task.store.add(record)
        progress.step()

    await work(todo, do, concurrency=job.concurrency)


def audit_tasks(plan: Plan, one: PlannedBenchmark, store: Store) -> Iterator[_Task]:
    """Every answer of a benchmark whose numbers are audited."""
    job = plan.job
    if job.audit is AuditKind.NONE or not one.benchmark.card.has_answers:
        return
    auditor = job.judge.model if job.audit is AuditKind.MODEL and job.judge else job.audit.value
    settings = digest(auditor, job.audit_settings.model_dump(mode="json"))
    for item in one.items:
        if not item.query.documents:
            continue
        query = digest(item.query.model_dump(mode="json"))
        for prompt in one.prompts[item.id]:
            if prompt.given is not None:
                continue
            for index, generation in enumerate(texts_of(store, item, prompt)):
                text = judged_text(prompt.name, generation)
                yield _Task(store, item, prompt, index, text, digest(settings, query, text))
