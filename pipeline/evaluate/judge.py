"""The judge: pinned, asked by schema, read strictly. A reply that cannot be read is never guessed.

Pinned are its model, the benchmark's prompts, the sampling settings and the seed; all of them are in the
digest of a reply. A useless reply is asked for again with another seed (and, since at temperature 0 the reply
would be the same, at `retry_temperature`), then counted apart. A judge that mostly talks nonsense ends the
stage before more is spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from pydantic import JsonValue

from pipeline.evaluate.benchmark import Item, JudgeRequest, Prompt
from pipeline.evaluate.cache import CachedReply, ReplyCache
from pipeline.evaluate.generate import Spent, require_ready, texts_of
from pipeline.evaluate.plan import EvaluationJob, Plan, PlannedBenchmark, judge_digest
from pipeline.evaluate.sampling import attempt_settings
from pipeline.evaluate.store import JudgeReplies, Place, Store, total_use
from pipeline.evaluate.work import Failures, Progress, work
from reward.config import SamplingSettings
from reward.samplers import Message, SamplerError
from reward.types import SampleGroup

_FEWEST_TO_TELL = 20  # judgements, before the share of useless ones means anything


class JudgeSampler(Protocol):
    """What a judge's server must do: `reward.samplers.openai.OpenAISampler` does."""

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        json_schema: Mapping[str, JsonValue] | None = None,
    ) -> SampleGroup:
        """Returns completions, bound to the schema where the server can."""
        ...

    async def ready(self) -> None:
        """Returns when the judge answers."""
        ...


class NonsenseError(ValueError):
    """Too many replies could not be read; what was done is kept."""


@dataclass(frozen=True)
class _Task:
    one: PlannedBenchmark
    store: Store
    item: Item
    prompt: Prompt
    index: int
    text: str
    digest: str

    @property
    def place(self) -> Place:
        return Place("judgement", self.item.id, self.prompt.name, self.index)

    def request(self) -> JudgeRequest | None:
        return self.one.benchmark.judge_request(self.item, self.prompt, self.text)

    def is_read(self, reply: str) -> bool:
        return self.one.benchmark.read_judgement(self.item, self.prompt, reply) is not None


class Judge:
    """Asks for judgements, out of the cache where it can.

    Args:
        job: How the judge is asked.
        sampler: Its server; None where nothing is judged by a model.
        cache: Replies of other evaluations.
    """

    def __init__(self, job: EvaluationJob, sampler: JudgeSampler | None, cache: ReplyCache | None) -> None:
        self.spent = Spent()
        self.num_cached = self.num_read = self.num_unread = 0
        self.failures = Failures("judge")
        self._job = job
        self._sampler = sampler
        self._cache = cache
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def judge(self, plan: Plan, stores: Mapping[str, Store], progress: Progress) -> None:
        """Asks for all judgements that are not kept yet.

        Raises:
            ServerDownError: the judge's server failed too often.
            NonsenseError: too many of its replies could not be read.
            ValueError: what is kept was made otherwise.
        """
        asked = [task for one in plan.benchmarks for task in judge_tasks(self._job, one, stores[one.name])]
        todo = [task for task in asked if not task.store.require(task.place, task.digest)]
        if not todo:
            return
        await require_ready(self._asked(), "judge")
        progress.stage("judging", len(asked), len(asked) - len(todo))

        async def do(task: _Task) -> None:
            await self._do(task)
            notes = [f"{self.spent.num_tokens:,} tokens"]
            notes += [f"{self.num_cached:,} known"] if self.num_cached else []
            notes += [f"{self.num_unread:,} unread"] if self.num_unread else []
            progress.step(", ".join(notes))

        try:
            await work(todo, do, concurrency=self._job.concurrency)
        finally:
            self.spent.failures = dict(self.failures.counts)

    def _asked(self) -> JudgeSampler:
        assert self._sampler is not None, "make_plan refuses what needs a judge that is not there"
        return self._sampler

    async def _do(self, task: _Task) -> None:
        try:
            record = await self._replies(task)
        except SamplerError as error:
            self.failures.failed(error)
            return
        self.failures.succeeded()
        task.store.add(record)
        self.num_read += record.read
        self.num_unread += not record.read
        self._hold_against_nonsense(record)

    async def _replies(self, task: _Task) -> JudgeReplies:
        request = task.request()
        assert request is not None, "a task is of a request"
        replies: list[CachedReply] = []
        is_read = False
        for attempt in range(self._job.judge_retries + 1):
            reply = await self._reply(task, request, attempt)
            replies.append(reply)
            is_read = task.is_read(reply.text)
            if is_read:
                break
        return JudgeReplies(
            item=task.item.id,
            prompt=task.prompt.name,
            index=task.index,
            digest=task.digest,
            replies=tuple(reply.text for reply in replies),
            read=is_read,
            use=total_use([reply.use for reply in replies]),
        )

    async def _reply(self, task: _Task, request: JudgeRequest, attempt: int) -> CachedReply:
        settings = attempt_settings(self._job.judging, attempt, self._job.retry_temperature)
        assert self._job.judge is not None, "there is no judge without its settings"
        prompt_digest = task.one.benchmark.card.prompt_digest
        key = judge_digest(self._job.judge.model, prompt_digest, settings, request)
        if self._cache is None:
            return await self._ask(task, request, settings, key)
        lock = self._locks.setdefault(key, asyncio.Lock())  # for answers to one question that say the same
        async with lock:
            found = self._cache.get(key)
            if found is not None:
                self.num_cached += 1
                return found
            return await self._ask(task, request, settings, key)

    async def _ask(
        self, task: _Task, request: JudgeRequest, settings: SamplingSettings, key: str
    ) -> CachedReply:
        group = await self._asked().sample(
            request.messages, n=1, settings=settings, json_schema=request.json_schema
        )
        self.spent.add(group.use)
        reply = CachedReply(text=group.samples[0].text, use=group.use)
        if self._cache and task.is_read(reply.text):
            self._cache.put(key, reply)
        return reply

    def _hold_against_nonsense(self, record: JudgeReplies) -> None:
        total = self.num_read + self.num_unread
        if total < _FEWEST_TO_TELL or self.num_unread <= self._job.most_unread * total:
            return
        raise NonsenseError(
            f"judge: {self.num_unread} of {total} judgements could not be read, more than "
            f"most_unread: {self._job.most_unread:g}; the last reply was {record.replies[-1]!r:.80}; mend "
            "the judge, and the same command goes on"
        )


def judge_tasks(job: EvaluationJob, one: PlannedBenchmark, store: Store) -> Iterator[_Task]:
    """Every generation of a benchmark that a judge is asked about."""
    card = one.benchmark.card
    for item in one.items:
        for prompt in one.prompts[item.id]:
            for index, text in enumerate(texts_of(store, item, prompt)):
                request = one.benchmark.judge_request(item, prompt, text)
                if request is None:
                    continue
                assert job.judge is not None, "make_plan refuses what needs a judge that is not there"
                digest = judge_digest(job.judge.model, card.prompt_digest, job.judging, request)
                yield _Task(one, store, item, prompt, index, text, digest)
