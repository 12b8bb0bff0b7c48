"""Clients that go at any moment, fall silent, dawdle or never read take nothing from those who stay."""

from __future__ import annotations

import asyncio
import random

from tests.chaos_clients import dawdle, leave, never_read, stay_silent, vanish
from tests.chaos_processes import (
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths_outside_the_gate
from tests.chaos_trial import Step, Trial, assert_right, fairs

STALLED = 'march_connections_refused_total{reason="stalled"}'
LIMITS = {"header_timeout_s": 1.5, "body_timeout_s": 1.5, "stall_timeout_s": 1.5}


@in_both_lengths_outside_the_gate
def test_clients_that_go_take_nothing_from_those_who_stay(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    for engine in engines:
        engine.fail(pause_s=0.3)  # two of them make an audit longer than most stay
    server = serve()
    trial = Trial(server, fairs(300 if is_long else 60), at_once=32)
    rng = random.Random(1)

    async def others_leave(_: Step) -> None:
        same, other = trial.cases, fairs(len(trial.cases), first=5000)
        for _ in range(3 if is_long else 1):
            await leave(server, [*same, *other], rng, within_s=0.6)

    assert_right(trial.cases, trial.under("clients: gone at any moment", others_leave).answers)
    assert server.metric("march_audits_cancelled_total") > 0
    trial.finish()


@in_both_lengths_outside_the_gate
def test_sockets_that_only_hold_on_hold_up_nobody(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    for engine in engines:
        engine.fail(pause_s=0.1)
    server = serve(limits=LIMITS)
    trial = Trial(server, fairs(300 if is_long else 60), at_once=16)
    num = 150 if is_long else 30

    async def silent(_: Step) -> None:
        await asyncio.gather(stay_silent(server, num, for_s=3), vanish(server, num // 3))

    async def slow(_: Step) -> None:
        await dawdle(server, num, for_s=3)

    async def unread(_: Step) -> None:
        holding = asyncio.ensure_future(never_read(server, 5, for_s=300))
        while not await asyncio.to_thread(server.metric, STALLED):
            await asyncio.sleep(0.2)
        holding.cancel()

    assert_right(trial.cases, trial.under("clients: half-open", silent).answers)
    assert_right(trial.cases, trial.under("clients: slow-loris", slow).answers)
    assert server.metric('march_connections_refused_total{reason="slow"}') > 0
    assert_right(trial.cases, trial.under("clients: never read", unread).answers)
    trial.finish()
