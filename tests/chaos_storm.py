"""Troubles of two engines, the reward server, what it stands on, and its clients, at random and at once.

Each trouble ends what it began. Each row of troubles draws from a generator of its own, so the seed decides
what happens to whom and in which order; when it meets which question is up to the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.chaos_clients import dawdle, leave, never_read, stay_silent, vanish
from tests.chaos_processes import KINDS, RewardServer, ScriptedEngine
from tests.chaos_trial import fairs

PAUSE_S = 0.05  # of engines that are well
Trouble = Callable[[random.Random], Awaitable[None]]


class Storm:
    """All troubles of one server and its engines; `num_troubles` counts those begun.

    The server reads its clock's offset from `clock`, its tokens from `tokens.yaml`, and writes to `logs`, all
    in the folder.
    """

    def __init__(self, server: RewardServer, engines: Sequence[ScriptedEngine], folder: Path) -> None:
        self.num_troubles = 0
        self._server = server
        self._engines = engines
        self._logs = folder / "logs"
        self._clock = folder / "clock"
        self._tokens = folder / "tokens.yaml"

    async def rage(self, seed: int) -> None:
        """Until it is cancelled, and then until every trouble has ended what it began."""
        rows: list[list[Trouble]] = [_of_engine(engine) for engine in self._engines]
        rows.append([self._dies, self._is_relieved, self._tokens_break, self._logs_vanish, self._clock_jumps])
        rows.append([self._clients_leave, self._clients_hold_on])
        async with asyncio.TaskGroup() as group:
            for i, row in enumerate(rows):
                group.create_task(self._row(row, random.Random(f"{seed} {i}")))

    async def _row(self, troubles: Sequence[Trouble], rng: random.Random) -> None:
        while True:
            await asyncio.sleep(rng.uniform(0.1, 2))
            self.num_troubles += 1
            trouble = asyncio.ensure_future(rng.choice(troubles)(rng))
            try:
                await asyncio.shield(trouble)
            except asyncio.CancelledError:
                await trouble
                raise

    async def _dies(self, _: random.Random) -> None:
        await asyncio.to_thread(self._server.restart)

    async def _is_relieved(self, _: random.Random) -> None:
        self._server.signal(signal.SIGTERM)
        await asyncio.to_thread(self._server.process.wait)
        await asyncio.to_thread(self._server.restart)

    async def _tokens_break(self, rng: random.Random) -> None:
        kept = self._tokens.read_text()
        self._tokens.write_text("trainer: broken")
        await asyncio.sleep(rng.uniform(0, 2))
        self._tokens.unlink()
        await asyncio.sleep(rng.uniform(0, 2))
        self._tokens.write_text(kept)
        self._tokens.chmod(0o600)

    async def _logs_vanish(self, rng: random.Random) -> None:
        away = self._logs.with_suffix(".away")
        self._logs.rename(away)
        await asyncio.sleep(rng.uniform(0, 2))
        away.rename(self._logs)

    async def _clock_jumps(self, rng: random.Random) -> None:
        self._clock.write_text(f"{3600 * rng.uniform(-48, 48)}")

    async def _clients_leave(self, rng: random.Random) -> None:
        await leave(self._server, fairs(40, first=rng.randrange(9000)), rng, within_s=1)

    async def _clients_hold_on(self, _: random.Random) -> None:
        holds = (
            stay_silent(self._server, 30, for_s=2),
            vanish(self._server, 10),
            dawdle(self._server, 10, for_s=2),
            never_read(self._server, 3, for_s=2),
        )
        with contextlib.suppress(OSError):  # the server is down
            await asyncio.gather(*holds)


def _of_engine(engine: ScriptedEngine) -> list[Trouble]:
    async def dies(rng: random.Random) -> None:
        await asyncio.to_thread(engine.kill)
        await asyncio.sleep(rng.uniform(0, 3))
        await asyncio.to_thread(engine.restart)
        await asyncio.to_thread(engine.fail, pause_s=PAUSE_S)

    async def stalls(rng: random.Random) -> None:
        engine.signal(signal.SIGSTOP)
        await asyncio.sleep(rng.uniform(0.5, 5))
        engine.signal(signal.SIGCONT)

    async def misbehaves(rng: random.Random) -> None:
        await asyncio.to_thread(engine.fail, rng.choice(KINDS), rng.choice((0.1, 0.5, 1.0)), PAUSE_S)
        await asyncio.sleep(rng.uniform(0.5, 4))
        await asyncio.to_thread(engine.fail, pause_s=PAUSE_S)

    return [dies, stalls, misbehaves, misbehaves]
