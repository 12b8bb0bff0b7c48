"""RayEngineSampler on real Ray actors that play a training run's live engines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.training.engines import EngineRegistry
from reward.config import RaySamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.live import RayEngineSampler
from reward.samplers.make import make_sampler
from reward.samplers.token_ids import load_tokenizer

TINY_POLICY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
MESSAGES = [Message(role="user", content="How many euros?")]
WEIGHTS_VERSION = 3
SETTINGS = SamplingSettings(temperature=1.0, max_tokens=32)

CLUSTER = """
import ray, sys
ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    """A cluster of another process, so that the sampler is the second driver that it is in a training run."""
    environment = os.environ | {"RAY_raylet_start_wait_time_s": "240"}  # a busy machine is slow to start it
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as cluster:
        assert cluster.stdout is not None and cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        assert address, "Ray did not start"
        yield address
        import ray

        ray.shutdown()
        cluster.stdin.close()
        cluster.wait(30)


@pytest.fixture
def start_training(ray_address: str) -> Iterator[Callable[[int], Any]]:
    """Gives a function that starts engines and their registry, as a trainer does; all end with the test."""
    started: list[Any] = []
    answer = answer_ids()
    import ray

    class Engine:
        def __init__(self, answer: list[int]) -> None:
            from vllm import SamplingParams  # noqa: F401  # half a minute of import that no request may pay for

            self.answer = answer
            self.mode, self.calls, self.cancelled = "answer", 0, 0

        async def behave(self, mode: str) -> None:
            self.mode = mode

        async def counts(self) -> tuple[int, int]:
            return self.calls, self.cancelled

        async def generate(self, prompt_token_ids: list[int], sampling_params: Any) -> Any:
            import asyncio
            from types import SimpleNamespace

            self.calls += 1
            try:
                await asyncio.sleep({"sleep": 60, "pause": 0.3}.get(self.mode, 0))
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if self.mode == "raise":
                raise ValueError("the engine is ill")
            if self.mode == "sync":
                await ray.get_actor("march-engines").advance.remote()
            token_ids = self.answer
            logprobs = [{token: SimpleNamespace(logprob=-1.0)} for token in token_ids]
            one = SimpleNamespace(token_ids=token_ids, logprobs=logprobs, finish_reason="stop")
            return SimpleNamespace(
                prompt_token_ids=prompt_token_ids, outputs=[one] * sampling_params.n, num_cached_tokens=1
            )

    def start(num_engines: int) -> Any:
        ray.init(address=ray_address, namespace="march", ignore_reinit_error=True, log_to_driver=False)
        engines = [ray.remote(Engine).options(num_cpus=0).remote(answer) for _ in range(num_engines)]
        registry = ray.remote(EngineRegistry).options(name="march-engines", num_cpus=0)
        registry = registry.remote([ray.put(engines)])
        started.extend([registry, *engines])
        ray.get([engine.counts.remote() for engine in engines])
        ray.get([registry.advance.remote() for _ in range(WEIGHTS_VERSION)])
        return SimpleNamespace(registry=registry, engines=engines)

    yield start
    for actor in started:
        ray.kill(actor)


def answer_ids() -> list[int]:
    tokenizer = load_tokenizer(str(TINY_POLICY), field="x")
    return [*tokenizer("466", add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]


def ray_sampler(address: str, *, timeout_s: float = 60) -> RayEngineSampler:
    config = RaySamplerConfig(
        address=address, tokenizer=str(TINY_POLICY), max_model_len=96, timeout_s=timeout_s
    )
    sampler = make_sampler(config)
    assert isinstance(sampler, RayEngineSampler)
    return sampler


@pytest.mark.slow
def test_a_sampler_finds_the_engines_when_they_come_and_when_they_come_again(
    ray_address: str, start_training: Callable[[int], Any]
) -> None:
    import ray

    async def run() -> None:
        sampler = ray_sampler(ray_address)
        with pytest.raises(SamplerError) as early:
            await sampler.ready()
        assert early.value.reason == "engine"
        for _ in range(2):
            training = start_training(1)
            await sampler.ready()
            assert "vllm.sampling_params" in sys.modules, "the event loop would import it"
            group = await sampler.sample(MESSAGES, n=3, settings=SETTINGS)
            assert [s.token_ids for s in group.samples] == [tuple(answer_ids())] * 3
            assert group.samples[0].text == "466"
            assert len(group.prompt_token_ids or ()) == await sampler.count_tokens(MESSAGES)
            assert group.weights_version == WEIGHTS_VERSION
            for actor in [training.registry, *training.engines]:
                ray.kill(actor)
            with pytest.raises(SamplerError) as died:
                await sampler.sample(MESSAGES, n=3, settings=SETTINGS)
            assert died.value.reason == "engine"

    asyncio.run(run())


@pytest.mark.slow
def test_a_slow_connection_is_not_charged_to_the_request(
    ray_address: str, start_training: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = RayEngineSampler._connect

    def connect_slowly(sampler: RayEngineSampler) -> Any:
        time.sleep(6)
        return connect(sampler)

    async def run() -> None:
        training = start_training(1)
        sampler = ray_sampler(ray_address, timeout_s=5)
        monkeypatch.setattr("reward.samplers.live._CONNECT_TIMEOUT_S", 0.5)
        with pytest.raises(SamplerError, match=r"no run was found at .* in 0\.5 s") as lost:
            await sampler.ready()
        assert lost.value.reason == "timeout"
        monkeypatch.undo()
        assert (await sampler.sample(MESSAGES, n=1, settings=SETTINGS)).samples[0].text == "466"
        assert await training.engines[0].counts.remote() == (1, 0)

    monkeypatch.setattr(RayEngineSampler, "_connect", connect_slowly)
    asyncio.run(run())


@pytest.mark.slow
def test_live_engines_share_the_load_and_fail_by_name(
    ray_address: str, start_training: Callable[[int], Any]
) -> None:
    async def run() -> None:
        training = start_training(2)
        sampler = ray_sampler(ray_address, timeout_s=240)  # on a busy machine, too, none is asked twice
        sleepless = ray_sampler(ray_address, timeout_s=10)  # five for each engine: a busy machine is slow
        await asyncio.gather(*(engine.behave.remote("pause") for engine in training.engines))
        await asyncio.gather(*(sampler.sample(MESSAGES, n=2, settings=SETTINGS) for _ in range(6)))
        assert [(await engine.counts.remote())[0] for engine in training.engines] == [3, 3]

        await training.engines[0].behave.remote("sync")
        group = await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        assert group.weights_version == WEIGHTS_VERSION
        assert (await training.registry.snapshot.remote())[1] == WEIGHTS_VERSION + 1

        await training.engines[0].behave.remote("raise")
        with pytest.raises(SamplerError, match="the engine is ill") as ill:
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        assert ill.value.reason == "engine"

        await training.engines[0].behave.remote("sleep")
        moved = await sleepless.sample(MESSAGES, n=1, settings=SETTINGS)
        assert moved.samples[0].text == "466", "the other engine was not asked"
        await asyncio.sleep(0.5)
        assert (await training.engines[0].counts.remote())[1] == 1, "the request was not taken back"
        await training.engines[1].behave.remote("sleep")
        with pytest.raises(SamplerError) as asleep:
            await sleepless.sample(MESSAGES, n=1, settings=SETTINGS)
        assert asleep.value.reason == "timeout"
        weights = await sampler.weights()
        assert weights.version == 4 and weights == await sleepless.weights()
        await training.engines[1].behave.remote("answer")

        long = [Message(role="user", content="how " * 200)]
        with pytest.raises(SamplerError) as refused:
            await sampler.sample(long, n=1, settings=SETTINGS)
        assert refused.value.reason == "prompt_too_long"

        await training.engines[0].behave.remote("answer")
        num_calls = (await training.engines[0].counts.remote())[0]
        with pytest.raises(SamplerError, match="seed: 7 could end a rollout engine") as killer:
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS.model_copy(update={"seed": 7}))
        assert killer.value.reason == "engine" and "set temperature: 0" in killer.value.detail
        assert (await training.engines[0].counts.remote())[0] == num_calls
        greedy = SamplingSettings(temperature=0, max_tokens=32, seed=7)
        assert len((await sampler.sample(MESSAGES, n=3, settings=greedy)).samples) == 3

    asyncio.run(run())
