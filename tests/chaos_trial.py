"""A trial: questions are asked without faults, then again under a fault, and compared answer by answer.

An answer under a fault is the one without it, or UNSCORED, or an error that its asker gets. Afterwards the
server holds nothing any more: no task, place, body, file descriptor or thread, and its memory is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reward.serving.client import RewardClient, RewardServerError
from reward.types import Document, Outcome, RagQuery, Verdict
from tests.chaos_processes import KEY, TOKEN, RewardServer, Usage, wait_until
from tests.chaos_table import ROWS, Row

Case = tuple[RagQuery, str]
Given = Verdict | RewardServerError
MIB = 1024**2
_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)  # most that asyncio's own pool ever has, and keeps
_AT_REST = ("audits", "present", "inside", "requests", "held_bytes")


def fair(i: int) -> Case:
    """A query and a response; every third response is wrong, and says what is true of the fair 400 later."""
    document = Document(id="d", text=f"Fair {i} raised {500 + i} euros.")
    query = RagQuery(id=f"q{i}", query=f"What did fair {i} raise?", documents=(document,))
    return query, f"It raised {500 + i if i % 3 else 900 + i} euros."


def fairs(num: int, first: int = 0) -> list[Case]:
    return [fair(i) for i in range(first, first + num)]


def assert_right(cases: Sequence[Case], answers: Sequence[Given]) -> None:
    """Every answer to fairs is what it must be, by the scripted engines' rules."""
    for (query, _), given in zip(cases, answers, strict=True):
        right = (Outcome.SUPPORTED, 0.0) if int(query.id[1:]) % 3 else (Outcome.REFUTED, -1.0)
        assert isinstance(given, Verdict) and (given.outcome, given.reward) == right, (query.id, given)


class Step:
    """Questions under way together, as a fault's script sees them."""

    def __init__(self, num: int) -> None:
        self.num_answered = 0
        self._num = num

    async def reached(self, share: float) -> None:
        """Returns once that share of the answers is there."""
        while self.num_answered < share * self._num:
            await asyncio.sleep(0.01)


Fault = Callable[[Step], Awaitable[None]]


@dataclass
class Asked:
    """What became of the questions, in their order."""

    answers: list[Given]
    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)  # of all attempts

    def add(self, more: Asked) -> None:
        """Counts another step in."""
        self.answers += more.answers
        self.seconds += more.seconds
        self.statuses += more.statuses


async def ask(
    url: str,
    cases: Sequence[Case],
    *,
    at_once: int = 10_000,
    num_clients: int = 1,
    fault: Fault | None = None,
    token: str = TOKEN,
    **options: Any,
) -> Asked:
    """Asks everything, with `at_once` questions under way, while the fault's script runs."""
    step, places = Step(len(cases)), asyncio.Semaphore(at_once)
    settings = {"timeout_s": 150, "signing_key": KEY, "patience_s": 120} | options
    clients = [RewardClient(url, token, **settings) for _ in range(num_clients)]

    async def one(i: int, case: Case) -> Given:
        async with places:
            try:
                return (await clients[i % num_clients].audit(*case)).verdict
            except RewardServerError as error:
                return error
            finally:
                step.num_answered += 1

    start = time.monotonic()
    script = asyncio.ensure_future(fault(step) if fault else asyncio.sleep(0))
    try:
        with statuses_of(url) as statuses:
            answers = await asyncio.gather(*(one(i, case) for i, case in enumerate(cases)))
        seconds = time.monotonic() - start
        await script
    finally:
        script.cancel()
        await asyncio.gather(*(client.close() for client in clients))
    return Asked(answers, seconds, statuses)


@contextlib.contextmanager
def statuses_of(url: str) -> Iterator[Counter[int]]:
    """Counts the statuses of all answers from an address, as httpx logs them."""
    logger, statuses = logging.getLogger("httpx"), Counter[int]()

    def count(record: logging.LogRecord) -> bool:
        _, asked, _, status, _ = record.args
        statuses[status] += str(asked).startswith(url)
        return False

    level = logger.level
    logger.addFilter(count)
    logger.setLevel(logging.INFO)
    try:
        yield statuses
    finally:
        logger.removeFilter(count)
        logger.setLevel(level)


class Trial:
    """One server's questions, first without faults; raises when even those have no answer.

    Args:
        server: Nothing was asked of it yet.
        cases: The questions.
        asking: As `ask` takes.
    """

    def __init__(self, server: RewardServer, cases: Sequence[Case], **asking: Any) -> None:
        self.cases = cases
        self._server = server
        self._asking = asking
        self._first = _idle(server)
        self.plain = asyncio.run(ask(server.url, cases, **asking)).answers
        assert not [given for given in self.plain if isinstance(given, Exception)]
        self.take_level()

    def take_level(self) -> None:
        """Takes the memory of now for the level that it must come back to."""
        self._rss_before = self._server.usage()["rss"]

    def under(self, name: str, fault: Fault | None = None, **asking: Any) -> Asked:
        """Asks again under a fault, compares, and adds a row to the table."""
        self._server.forget_peak()
        asked = asyncio.run(ask(self._server.url, self.cases, fault=fault, **self._asking | asking))
        self.compare(asked.answers)
        self.settle()
        self.add_row(name, asked)
        return asked

    def compare(self, answers: Sequence[Given]) -> None:
        """Every question has its answer, and none has a number that it had not earned."""
        for (query, _), plain, given in zip(self.cases, self.plain, answers, strict=True):
            if isinstance(given, RewardServerError):
                continue
            assert isinstance(plain, Verdict) and given.id == query.id
            earned = (plain.outcome, plain.reward)
            assert (given.outcome, given.reward) in (earned, (Outcome.UNSCORED, None)), (plain, given)

    def settle(self, also: Mapping[str, int] | None = None) -> None:
        """Returns once no audit, place or body is left, and no more of what `also` names than it says."""
        most = {**dict.fromkeys(_AT_REST, 0), "tasks": self._first["tasks"], **(also or {})}
        usage: Usage = {}

        def is_settled() -> bool:
            usage.update(_idle(self._server))
            return all(usage[name] <= bound for name, bound in most.items()) or bool(time.sleep(0.3))

        wait_until(is_settled, ("held", usage, "at most", most), timeout_s=60)

    def finish(self, *, more_mib: int = 24) -> None:
        """Nothing is left, connections to engines included, and the memory is what it was or little more."""
        self.settle({"fds": self._first["fds"], "threads": self._first["threads"] + _POOL_THREADS})
        after = self._server.usage()["rss"]
        assert after <= self._rss_before + more_mib * MIB, (self._rss_before / MIB, after / MIB)

    def add_row(self, name: str, asked: Asked) -> None:
        """Adds a row to the table."""
        ROWS.append(
            Row(
                scenario=name,
                answers=asked.answers,
                num_refused=asked.statuses[503],
                num_attempts=sum(asked.statuses.values()),
                seconds=asked.seconds,
                rss=(self._rss_before, self._server.memory("VmHWM"), self._server.usage()["rss"]),
            )
        )


def _idle(server: RewardServer) -> Usage:
    server.http.get("/readyz")  # which has the pools of connections drop what is old
    return server.usage()
