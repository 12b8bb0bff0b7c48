"""Two real vLLM engines behind one reward server: killed with kill -9, restarted, stalled.

The tiny policy decodes greedily, and vLLM on CPUs was found to give the same completions whatever else is in
the batch: 120 audits gave identical verdicts, votes included, at 1, 8, 32 and 120 at once. So verdicts are
compared answer by answer with those of the undisturbed run, which has another number at once.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.tiny.demonstrations import write_answer
from pipeline.tiny.world import sample_worlds
from reward.judging.vote import Reason
from reward.types import Outcome, Verdict
from tests.chaos_processes import RewardServer, VllmEngine, wait_until
from tests.chaos_scale import in_both_lengths_outside_the_gate
from tests.chaos_trial import Case, Step, Trial


def worlds(num: int) -> list[Case]:
    """Questions of the tiny world; in every third answer a number is wrong."""
    rng, cases = random.Random(3), []
    for i, world in enumerate(sample_worlds(num, 11, "held_out")):
        wrong = rng.randrange(len(world.asked)) if i % 3 == 0 else None
        claimed = [(fact, fact.value + (k == wrong)) for k, fact in enumerate(world.asked)]
        cases.append((world.query, write_answer(claimed)))
    return cases


@pytest.fixture(scope="module")
def vllms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[VllmEngine]]:
    both = [VllmEngine(tmp_path_factory.mktemp("vllm")) for _ in range(2)]
    for engine in both:
        engine.wait_serving()
    yield both
    for engine in both:
        engine.kill()


@pytest.fixture
def server(vllms: list[VllmEngine], tmp_path: Path) -> Iterator[RewardServer]:
    one = RewardServer(
        tmp_path, vllms, model="tiny", sampler={"timeout_s": 30, "cool_down_s": 2}, deadline_s=100
    )
    one.wait_serving()
    yield one
    one.http.close()
    one.kill()


def assert_scored(trial: Trial) -> None:
    """The undisturbed run says something: there are answers of both kinds."""
    outcomes = [given.outcome for given in trial.plain if isinstance(given, Verdict)]
    assert outcomes.count(Outcome.SUPPORTED) > len(outcomes) / 5
    assert outcomes.count(Outcome.REFUTED) > len(outcomes) / 5


@in_both_lengths_outside_the_gate
def test_engines_that_die_or_stall_cost_no_answer(
    vllms: list[VllmEngine], server: RewardServer, is_long: bool
) -> None:
    first, second = vllms
    trial = Trial(server, worlds(150 if is_long else 60), at_once=8)
    assert_scored(trial)

    async def kill(step: Step) -> None:
        await step.reached(0.3)
        await asyncio.to_thread(first.kill)

    async def stall_and_go_on(step: Step) -> None:
        await step.reached(0.3)
        second.signal(signal.SIGSTOP)
        await step.reached(0.7)
        second.signal(signal.SIGCONT)

    assert trial.under("vLLM: kill -9", kill, at_once=24).answers == trial.plain
    first.restart()
    before = [engine.num_served() for engine in vllms]
    assert trial.under("vLLM: restarted", at_once=24).answers == trial.plain
    assert all(engine.num_served() > num for engine, num in zip(vllms, before, strict=True))
    if is_long:
        assert trial.under("vLLM: kill -STOP, -CONT", stall_and_go_on, at_once=24).answers == trial.plain
    trial.finish()


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_no_engine_is_no_number(vllms: list[VllmEngine], server: RewardServer) -> None:
    trial = Trial(server, worlds(40), at_once=8)

    async def kill_all(step: Step) -> None:
        await step.reached(0.3)
        await asyncio.gather(*(asyncio.to_thread(engine.kill) for engine in vllms))

    answers = trial.under("vLLM: both killed", kill_all).answers
    reasons = {given.reason for given in answers if given not in trial.plain and isinstance(given, Verdict)}
    assert reasons and reasons <= {Reason.CONNECTION, Reason.ENGINE, Reason.TIMEOUT}
    for engine in vllms:
        engine.start()
    wait_until(lambda: server.http.get("/readyz").status_code == 200, "the server found an engine again")
    for engine in vllms:
        engine.wait_serving()
    assert trial.under("vLLM: both again").answers == trial.plain
    trial.finish()
