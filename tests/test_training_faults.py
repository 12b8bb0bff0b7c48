"""Trainings that go on: unmodified OpenRLHF over restarts of its reward server and a stall of the engine
behind it; ours with several engines and several reward servers, of which some and then all are killed; and
one whose only reward server stays away.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import httpx
import pytest

from pipeline.record.rollout_files import read_rollouts, rollouts_file
from pipeline.record.tracking import read_steps
from reward.config import OpenAISamplerConfig
from tests.march_training import Run, assert_nothing_lost_or_repeated
from tests.stock_training import TOKEN, StockTraining, earned_means, server_command, tiny_arguments
from tests.supervised import Supervised, environment
from tests.vllm_process import VllmServer

pytestmark = [pytest.mark.timeout(1500), pytest.mark.training]

BATCH = 8


class Fault(StrEnum):
    """What happens in the middle of a step."""

    STOP = "stop"  # the reward server gets SIGTERM, as at every new version
    KILL = "kill"  # it gets SIGKILL
    STALL = "stall"  # the engine behind it stands still for longer than the server waits


class Stock:
    """A stock training, its supervised reward server and the frozen engine behind that."""

    def __init__(self, folder: Path, *, num_steps: int) -> None:
        self.audit_log = folder / "audit.jsonl"
        self.engine = VllmServer(folder / "vllm.log")
        sampler = OpenAISamplerConfig(base_url=self.engine.url, model="tiny", timeout_s=5, max_retries=0)
        command = server_command(folder / "server.json", sampler=sampler, audit_log=self.audit_log)
        self.server = Supervised(command, environment(MARCH_REWARD_TOKEN=TOKEN))
        self.training = StockTraining(
            folder, self.server.url, tiny_arguments(folder, num_steps=num_steps, batch_size=BATCH)
        )

    def strike(self, fault: Fault) -> None:
        """Waits for the middle of a step, which must have audits under way."""
        self._wait_for_audits()
        if fault is not Fault.STALL:
            return self.server.send(signal.SIGTERM if fault is Fault.STOP else signal.SIGKILL)
        num_unscored = self.num_unscored()
        self.engine.stall()
        while self.num_unscored() == num_unscored:  # until an audit was given up for it
            time.sleep(0.1)
        self.engine.go_on()

    def num_unscored(self) -> int:
        log = self.audit_log.read_text() if self.audit_log.exists() else ""
        return log.count('"outcome": "UNSCORED"')

    def close(self) -> None:
        self.training.close()
        self.server.close()
        self.engine.close()

    def _wait_for_audits(self) -> None:
        url = f"{self.server.url}/metrics"
        while True:
            assert self.training.process.poll() is None, self.training.output[-3000:]
            text = httpx.get(url, auth=("march", TOKEN), timeout=120, trust_env=False).text
            if "march_audits_in_flight 0.0" not in text:
                return
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("num_steps", "faults"),
    [
        pytest.param(6, {1: Fault.STOP, 3: Fault.KILL, 4: Fault.STALL}, marks=pytest.mark.slow),
        pytest.param(20, {4: Fault.STOP, 9: Fault.KILL, 14: Fault.STALL}, marks=pytest.mark.long),
    ],
    ids=["short", "long"],
)
def test_stock_openrlhf_goes_on_over_restarts_and_a_stalled_engine(
    tmp_path: Path, num_steps: int, faults: Mapping[int, Fault]
) -> None:
    stock = Stock(tmp_path, num_steps=num_steps)
    try:
        for step, fault in faults.items():
            stock.training.wait_for_step(step)
            stock.strike(fault)
        stock.training.wait()
    finally:
        stock.close()
    struck = list(faults.values())
    codes = [0 if fault is Fault.STOP else -signal.SIGKILL for fault in struck if fault is not Fault.STALL]
    assert stock.server.exit_codes == [*codes, 0]
    assert "Request error, please check" in stock.training.output  # the kill broke requests
    assert stock.num_unscored() > 0  # the stall failed audits
    trained = stock.training.reward_means()
    assert len(trained) == num_steps
    assert trained == pytest.approx(earned_means(stock.audit_log, batch_size=BATCH), abs=1e-6)


@pytest.mark.long
def test_several_engines_and_reward_servers_share_a_run_and_lose_no_answer_when_servers_die(
    tmp_path: Path,
) -> None:
    folder, steps = tmp_path / "run", 6
    settings = {
        "data.max_steps": steps,
        "rollout.batch_size": 16,
        "rollout.micro_batch_size": 8,
        "ppo.micro_batch_size": 8,
        "cluster.num_engines": 2,
        "reward.num_servers": 2,
    }
    run = Run(folder, settings)
    run.wait_for_step(1)
    assert min(run.metric(number, "march_audits_total") for number in range(2)) > 0
    run.wait_for_audit(0)
    run.reward_server(0).kill()  # the other one does its work
    run.wait_for_step(len(read_steps(folder)) + 1)
    run.wait_for_audit(1)
    for number in range(2):  # now the step waits until they are back
        run.reward_server(number).kill()
    error = run.end()
    assert run.process.returncode == 0, error
    assert [row["step"] for row in read_steps(folder)] == list(range(1, steps + 1))
    numbers = [int(step["step"]) for step in read_steps(folder)]
    answers = [row for number in numbers for row in read_rollouts(rollouts_file(folder, number))]
    assert len({answer.query_id for answer in answers}) == len(answers) == steps * 16
    assert "reward_server" not in {answer.verdict.reason for answer in answers}
    assert "another server is asked" in (folder / "train.log").read_text()


@pytest.mark.long
def test_a_run_whose_reward_server_stays_away_stops_by_itself_and_goes_on_when_told_again(
    tmp_path: Path,
) -> None:
    folder, steps, batch = tmp_path / "run", 3, 8
    settings = {
        "data.max_steps": steps,
        "rollout.batch_size": batch,
        "rollout.micro_batch_size": 4,
        "ppo.micro_batch_size": 4,
        "checkpoint.every": 1,
        "reward.patience_s": 3,
    }
    run = Run(folder, settings)
    run.wait_for_step(1)
    (folder / "reward_server-0.json").write_text("{}")  # so that it cannot start again
    run.reward_server(0).kill()
    message = run.end()
    assert run.process.returncode != 0
    assert "have no reward" in message and "resume" in message, message
    assert len(message.strip().splitlines()) == 1, message
    assert 1 <= len(read_steps(folder)) < steps  # none was taken on missing rewards

    again = Run(folder, settings)
    error = again.end()
    assert again.process.returncode == 0, error
    assert_nothing_lost_or_repeated(folder, steps=steps, batch=batch)
