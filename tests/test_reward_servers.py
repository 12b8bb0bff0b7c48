"""The reward servers of a training: several, kept alive, and waited for by the agent."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from pipeline import cpu
from pipeline.launch import reward_servers as servers_module
from pipeline.launch.reward_servers import (
    RewardServerLostError,
    held_ports,
    registry_name,
    reward_servers,
    server_configs,
    uncounted_gpu,
)
from pipeline.record.run import RunState
from pipeline.settings.recipe import load_recipe
from pipeline.train import train
from reward.config import LocalSamplerConfig, RaySamplerConfig
from reward.types import Role
from tests.role_server import QUERY, RESPONSE, TOKEN, Spawn, server_config, spawn_processes  # noqa: F401
from tests.rollout_runs import agent_settings
from tests.serving import KEY

cpu.install()

from pipeline.record.rollout_record import RolloutRecord  # noqa: E402
from pipeline.training import rollout  # noqa: E402
from pipeline.training.rollout import AgentExecutor  # noqa: E402


def servers_of(folder: Path) -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if str(folder) in " ".join(child.cmdline())]


def wait_until_alive(url: str) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            httpx.get(f"{url}/healthz", timeout=5, trust_env=False).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(url)


def test_a_run_has_as_many_servers_as_it_says_and_each_samples_its_engines(tmp_path: Path) -> None:
    recipe = load_recipe("tiny", ["reward.num_servers=3", "reward.host=127.0.0.2", "reward.deadline_s=400"])
    state = RunState(
        recipe=recipe,
        recipe_digest=recipe.digest,
        rows=tmp_path,
        num_rows=1,
        tracking_uri="",
        mlflow_run_id="run",
    )
    with held_ports(recipe.reward) as ports:
        configs = server_configs(state, address="127.0.0.1:6379", ports=ports)
    assert len(set(ports)) == 3 and [config.port for config in configs] == ports
    for config in configs:
        assert config.host == "127.0.0.2" and config.audit == recipe.audit
        assert isinstance(config.sampler, RaySamplerConfig)
        assert config.sampler.registry == registry_name(state) == "march-engines-run"
        assert config.deadline_s == 400 > config.sampler.timeout_s == 320


FROZEN = ["train_roles=[solver]", "reward.sampler={kind: vllm, model: start, max_model_len: 512}"]


def test_a_frozen_checker_is_sampled_in_place_of_the_runs_engines(tmp_path: Path) -> None:
    recipe = load_recipe("tiny", FROZEN)
    state = RunState(
        recipe=recipe, recipe_digest="", rows=tmp_path, num_rows=1, tracking_uri="", mlflow_run_id="run"
    )
    (config,) = server_configs(state, address="127.0.0.1:6379", ports=[5001])
    assert config.sampler == LocalSamplerConfig(model="start", max_model_len=512)


def test_a_frozen_checker_takes_no_gpu_that_nobody_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.train.has_gpu", lambda: True)
    with pytest.raises(
        ValueError, match=r"^reward\.sampler: kind vllm .* \(vllm serve start\) .* openai"
    ) as it:
        train("tiny", run_dir=tmp_path / "run", overrides=FROZEN)
    assert "\n" not in str(it.value) and not (tmp_path / "run").exists()
    served = "reward.sampler={kind: openai, base_url: 'http://127.0.0.1:8000/v1', model: start}"
    assert uncounted_gpu(load_recipe("tiny", [FROZEN[0], served]).reward, on_gpus=True) is None
    assert uncounted_gpu(load_recipe("tiny", FROZEN).reward, on_gpus=False) is None


def test_servers_are_started_again_and_end_with_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    with (
        held_ports(load_recipe("tiny").reward) as (port,),
        reward_servers([server_config(port=port)], tmp_path),
    ):
        (first,) = servers_of(tmp_path)
        first.kill()
        first.wait(30)
        wait_until_alive(f"http://127.0.0.1:{port}")
        (second,) = servers_of(tmp_path)
        assert second.pid != first.pid
    assert not second.is_running()
    assert (tmp_path / "reward_server-0.log").read_text().count("reward server on") == 2


def test_a_server_that_ends_whenever_it_is_started_ends_the_run_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setattr(servers_module, "_MOST_ENDS", 2)
    with (
        held_ports(load_recipe("tiny").reward) as (port,),
        pytest.raises(RewardServerLostError, match=r"ended 2 times in 600 s: .*; see .*reward_server-0\.log"),
        reward_servers([server_config(port=port)], tmp_path),
    ):
        (tmp_path / "reward_server-0.json").write_text("{}")  # so that it cannot start again
        (first,) = servers_of(tmp_path)
        first.kill()
        time.sleep(300)
    assert not servers_of(tmp_path)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_server_that_cannot_start_is_told_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", "short")
    with (
        held_ports(load_recipe("tiny").reward) as (port,),
        pytest.raises(RewardServerLostError, match=r"did not start: .+; see .*reward_server-0\.log"),
        reward_servers([server_config(port=port)], tmp_path),
    ):
        pass
    assert not servers_of(tmp_path)


def set_up(monkeypatch: pytest.MonkeyPatch, *urls: str, **reward: float) -> None:
    overrides = [f"reward.{name}={value}" for name, value in reward.items()]
    for name, value in agent_settings(*urls, overrides=overrides).items():
        monkeypatch.setenv(name, value)


def test_the_agent_waits_out_a_restart_and_gets_one_checker_turn(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    first = spawn(pause_s=0.5)
    set_up(monkeypatch, first.url)

    async def run() -> list[RolloutRecord]:
        agent = AgentExecutor()
        answers = [agent._audit(QUERY, RESPONSE + " " * i, finish_reason="stop") for i in range(8)]
        asked = [asyncio.create_task(answer) for answer in answers]
        await asyncio.to_thread(first.wait_in_flight, 8)
        first.process.kill()
        await asyncio.to_thread(first.process.wait)
        await asyncio.to_thread(spawn, pause_s=0.01)
        return await asyncio.gather(*asked)

    for record in asyncio.run(run()):
        assert record.verdict.reward == 0.0, record.verdict.detail
        assert record.num_checker_turns == 3
        assert record.turns[Role.CHECKER].role is Role.CHECKER
        assert len(record.turn_tokens[Role.CHECKER]) == 3


@pytest.mark.parametrize(
    ("timeout_s", "reward", "reason"), [(60.0, 0.0, "supported"), (1.0, None, "reward_server")]
)
def test_a_server_that_stands_still_costs_time_and_is_never_a_reward(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch, timeout_s: float, reward: float | None, reason: str
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    server = spawn(pause_s=0.2)
    monkeypatch.setattr(rollout, "TO_ANSWER_S", timeout_s - 0.5)
    set_up(monkeypatch, server.url, deadline_s=0.5)

    async def run() -> RolloutRecord:
        asked = asyncio.create_task(AgentExecutor()._audit(QUERY, RESPONSE, finish_reason="stop"))
        await asyncio.to_thread(server.wait_in_flight)
        server.process.send_signal(signal.SIGSTOP)
        await asyncio.wait([asked], timeout=2.0)
        server.process.send_signal(signal.SIGCONT)
        return await asked

    record = asyncio.run(run())
    assert (record.verdict.reward, record.verdict.reason) == (reward, reason)
    assert bool(record.turns) == (reward is not None)


def test_an_agent_whose_patience_is_over_has_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    with held_ports(load_recipe("tiny").reward) as ports:
        set_up(monkeypatch, *(f"http://127.0.0.1:{port}" for port in ports), patience_s=0)
        record = asyncio.run(AgentExecutor()._audit(QUERY, RESPONSE, finish_reason="stop"))
    assert (record.verdict.reward, record.verdict.reason, record.turns) == (None, "reward_server", {})
    assert os.environ["MARCH_REWARD_TOKEN"] not in record.verdict.detail
