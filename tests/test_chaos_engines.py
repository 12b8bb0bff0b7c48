"""Engines that misbehave, die and stall behind one reward server; the real ones are in test_chaos_vllm.py."""

from __future__ import annotations

import asyncio
import signal
import time

from tests.chaos_processes import (
    KINDS,
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths
from tests.chaos_trial import Step, Trial, assert_right, fairs

PAUSE_S = 0.1  # so that every kill finds requests under way


@in_both_lengths
def test_answers_that_are_none_are_no_numbers(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    few_retries = {"max_retries": 1}
    trial = Trial(serve(sampler=few_retries), fairs(100 if is_long else 24), at_once=64)
    assert_right(trial.cases, trial.plain)
    for kind in sorted(set(KINDS) - {"late"}):  # which has a test of its own
        for share in (0.3, 1.0) if is_long else (0.3,):
            for engine in engines:
                engine.fail(kind, share)
            trial.under(f"engines: {share:.0%} {kind}")
    for engine in engines:
        engine.fail()
    assert_right(trial.cases, trial.under("engines: well again").answers)
    trial.finish()


@in_both_lengths
def test_what_comes_after_the_deadline_is_no_number(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    trial = Trial(serve(deadline_s=6), fairs(100 if is_long else 24), at_once=8)
    for engine in engines:
        engine.fail("late", 0.5)
    trial.under("engines: 50% after the deadline", at_once=100)
    trial.finish()


@in_both_lengths
def test_an_engine_that_dies_or_stalls_is_left_and_comes_back(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    first, second = engines
    for engine in engines:
        engine.fail(pause_s=PAUSE_S)
    trial = Trial(serve(), fairs(300 if is_long else 60), at_once=16)

    async def kill_and_restart(step: Step) -> None:
        await step.reached(0.2)
        await asyncio.to_thread(first.kill)
        await step.reached(0.5)
        await asyncio.to_thread(first.restart)
        await asyncio.to_thread(first.fail, pause_s=PAUSE_S)

    async def stall_and_go_on(step: Step) -> None:
        await step.reached(0.2)
        second.signal(signal.SIGSTOP)
        await step.reached(0.6)
        second.signal(signal.SIGCONT)

    assert_right(trial.cases, trial.under("engine: kill -9, restart", kill_and_restart).answers)
    assert_right(trial.cases, trial.under("engine: kill -STOP, -CONT", stall_and_go_on).answers)
    before = [engine.num_served() for engine in engines]
    time.sleep(1)  # longer than the cool-down
    trial.under("engines: both again")
    assert all(engine.num_served() > num for engine, num in zip(engines, before, strict=True))
    trial.finish()
