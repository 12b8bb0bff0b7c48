"""Which engine is asked, and what happens when it stalls or dies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter

import pytest

from reward.samplers import SamplerError
from reward.samplers.pool import Engine, Pool


class Died(Exception):
    """An engine's death."""


def named(error: Exception, name: str) -> SamplerError | None:
    return SamplerError("engine", f"{name} died") if isinstance(error, Died) else None


class Engines:
    """Engines that answer their name, after a pause, or fail."""

    def __init__(self, **behaviours: float | Exception) -> None:
        self.behaviours = behaviours
        self.asked: Counter[str] = Counter()
        self.cancelled: Counter[str] = Counter()
        self.pool: Pool[None] = Pool(cool_down_s=30, named=named)

    async def send(self, engine: Engine[None]) -> str:
        name = engine.name
        self.asked[name] += 1
        behaviour = self.behaviours[name]
        if isinstance(behaviour, Exception):
            raise behaviour
        try:
            await asyncio.sleep(behaviour)
        except asyncio.CancelledError:
            self.cancelled[name] += 1
            raise
        return name

    async def ask(self, timeout_s: float = 1.0) -> str:
        self.hold(*self.behaviours)
        return await self.pool.ask(self.send, timeout_s=timeout_s, most=2)

    def hold(self, *names: str) -> None:
        self.pool.hold(Engine(name, None, {}) for name in names)

    @property
    def num_under_way(self) -> int:
        return sum(engine.num_requests for engine in self.pool.engines)


def test_the_least_busy_engine_is_asked() -> None:
    engines = Engines(a=0.05, b=0.05, c=0.05)

    async def run() -> list[str]:
        return await asyncio.gather(*(engines.ask() for _ in range(9)))

    assert Counter(asyncio.run(run())) == {"a": 3, "b": 3, "c": 3}
    assert not engines.num_under_way


@pytest.mark.parametrize("failure", [60.0, Died()])
def test_a_request_moves_from_an_engine_that_stalls_or_dies_and_the_next_avoids_it(
    failure: float | Exception,
) -> None:
    engines = Engines(a=failure, b=0.0)

    async def run() -> list[str]:
        return [await engines.ask(timeout_s=2.0) for _ in range(3)]

    assert asyncio.run(run()) == ["b"] * 3
    assert engines.asked == {"a": 1, "b": 3}
    assert engines.cancelled["a"] == (failure == 60.0)  # what stalled is taken back


def test_after_its_cool_down_an_engine_is_asked_again() -> None:
    engines = Engines(a=Died(), b=0.0)
    engines.pool = Pool(cool_down_s=0.0, named=named)

    async def run() -> list[str]:
        first = await engines.ask()
        engines.behaviours["a"] = 0.0
        return [first, await engines.ask()]

    assert asyncio.run(run()) == ["b", "a"]


def test_with_one_engine_it_has_all_the_time_and_its_failure_is_raised() -> None:
    async def run(behaviour: float | Exception, timeout_s: float) -> str:
        return await Engines(a=behaviour).ask(timeout_s)

    assert asyncio.run(run(0.15, 0.2)) == "a"
    with pytest.raises(SamplerError, match=r"timeout: a did not answer in 0\.0"):
        asyncio.run(run(60, 0.05))
    with pytest.raises(SamplerError, match="engine: a died"):
        asyncio.run(run(Died(), 1))


@pytest.mark.parametrize(("names", "then"), [(("a",), "it is asked again"), (("a", "b"), "another is asked")])
def test_an_engine_that_does_not_answer_is_named_once(
    names: tuple[str, ...], then: str, caplog: pytest.LogCaptureFixture
) -> None:
    engines = Engines(a=Died(), b=0.0)
    engines.hold(*names)
    with contextlib.suppress(SamplerError):
        asyncio.run(engines.pool.ask(engines.send, timeout_s=9, max_retries=2))
    assert caplog.messages == [f"engine a gave no answer (engine); {then}"]


def test_when_all_stall_the_time_is_not_exceeded() -> None:
    begin = time.monotonic()
    with pytest.raises(SamplerError, match=r"timeout: .*; a did not answer"):
        asyncio.run(Engines(a=60, b=60, c=60).ask(0.2))
    assert time.monotonic() - begin < 2


def test_a_failure_of_the_request_is_not_the_engines() -> None:
    engines = Engines(a=ValueError("the request"), b=0.0)

    async def run() -> str:
        with pytest.raises(ValueError, match="the request"):
            await engines.ask()
        engines.behaviours["a"] = 0.0
        return await engines.ask()

    assert asyncio.run(run()) == "a" and engines.asked["b"] == 0


def test_a_request_that_is_given_up_blames_nobody() -> None:
    engines = Engines(a=60, b=60)

    async def run() -> None:
        task = asyncio.create_task(engines.ask(100))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert not any(engine.failed or engine.avoided for engine in engines.pool.engines)
    assert not engines.num_under_way


def test_engines_that_are_no_more_are_forgotten_and_known_ones_are_not() -> None:
    engines = Engines(a=Died(), b=0.0)
    asyncio.run(engines.ask())
    engines.hold("c", "a")
    found = [(one.name, one.failed, one.num_requests) for one in engines.pool.engines]
    assert found == [("c", False, 0), ("a", True, 0)]
