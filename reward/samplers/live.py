"""Completions from the live engines of a training run, over Ray, by token ids.

The engines are those that OpenRLHF rolls out on (`RolloutRayActor.generate`): no second copy of the weights,
and every role is the current policy. The prompt is rendered and tokenised here, so the ids of a trajectory
are the ids that the model saw, and one request with n samples fills the prompt's cache once. The trainer
registers the engines under a named actor, whose `snapshot()` returns `([reference], weights_version)`, the
reference being that of the list of engine handles. An engine that sleeps never answers, so every request has
a deadline; where there are several engines, one that stalls for half of it or dies is left for another, once.

A seeded request could kill an engine without a GPU (`reward.samplers.local` says why), so it is refused
before it reaches one.

torch, transformers, vLLM and Ray are imported inside functions: the light core does without them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from reward.config import RaySamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError, Weights
from reward.samplers.pool import Engine, Pool
from reward.samplers.start import SharedStart
from reward.samplers.token_ids import (
    completion_budget,
    load_tokenizer,
    prompt_token_ids,
    sample_group,
    sampling_params,
)
from reward.types import SampleGroup

# Of Ray's connection and vLLM's import, half a minute on a busy machine: no request's limit covers them.
_CONNECT_TIMEOUT_S = 120.0
_COOL_DOWN_S = 30.0
_MOST_ENGINES = 2  # of one request: the first one that stalls has half of its time


class RayEngineSampler:
    """Samples the live rollout engines over Ray. It connects at the first request, not before."""

    def __init__(self, config: RaySamplerConfig) -> None:
        self._config = config
        self._tokenizer = load_tokenizer(config.tokenizer, field="sampler.tokenizer")
        self._training = SharedStart(self._connect)
        self._pool: Pool[Any] = Pool(
            cool_down_s=_COOL_DOWN_S, named=_death, silence="; is the rollout engine asleep?"
        )

    @property
    def model(self) -> str:
        """The trained policy, by its tokenizer; its weights have a version of their own."""
        return self._config.tokenizer

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """Returns `n` completions of one prompt by the engine with the fewest of our requests.

        The weights version is read before the request: the older one, when the weights change meanwhile.
        """
        prompt = prompt_token_ids(self._tokenizer, messages)
        max_model_len = self._config.max_model_len
        budget = completion_budget(len(prompt), max_tokens=settings.max_tokens, max_model_len=max_model_len)
        async with self._request() as training:
            _refuse_seed_without_gpu(settings, training)
            engines, weights = await self._snapshot(training)
            params = sampling_params(settings, n=n, max_tokens=budget, pattern=pattern)
            output = await self._generate(engines, prompt, params)
        return sample_group(output, self._tokenizer, n=n, params=params, weights_version=weights.version)

    async def weights(self) -> Weights:
        """The policy's weights, as its registry knows them."""
        async with self._request() as training:
            return (await self._snapshot(training))[1]

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return len(prompt_token_ids(self._tokenizer, messages))

    async def ready(self) -> None:
        """Returns when the registry hands out an engine; none is sampled, as they sleep between rollouts."""
        async with self._request() as training:
            await self._snapshot(training)

    async def close(self) -> None:
        """Forgets the registry. The connection to Ray belongs to the process and ends with it."""
        self._training.forget()

    def _connect(self) -> _Training:
        import ray
        from vllm import SamplingParams  # noqa: F401  # seconds, here in a thread; `import vllm` alone is half

        config = self._config
        ray.init(
            address=config.address, namespace=config.namespace, ignore_reinit_error=True, log_to_driver=False
        )
        registry = ray.get_actor(config.registry, namespace=config.namespace)
        return _Training(registry, has_gpus=ray.cluster_resources().get("GPU", 0) > 0)

    @contextlib.asynccontextmanager
    async def _request(self) -> AsyncIterator[_Training]:
        """The run, for one request; `timeout_s` starts when it is found, which has a limit of its own.

        Failures get their names here; after one of Ray's, the run is looked up again.
        """
        from ray.exceptions import RayError

        config = self._config
        try:
            lost = f"no run was found at {config.address} in {_CONNECT_TIMEOUT_S:g} s; does Ray answer there?"
            async with _limit(_CONNECT_TIMEOUT_S, lost):
                training = await self._training.get()
            asleep = f"no rollout engine answered in {config.timeout_s:g} s; is it asleep?"
            async with _limit(config.timeout_s, asleep):
                yield training
        except SamplerError as error:
            if isinstance(error.__cause__, RayError):
                self._training.forget()
            raise
        except (RayError, ValueError, OSError, RuntimeError) as error:  # not there yet, ended, or no cluster
            self._training.forget()
            raise _failure(error) from error

    async def _snapshot(self, training: _Training) -> tuple[dict[str, Any], Weights]:
        """The engines by name, and their weights."""
        (engines,), weights_version = await training.registry.snapshot.remote()
        handles = await engines
        if not handles:
            raise SamplerError("engine", f"the registry {self._config.registry!r} holds no engine yet")
        weights = Weights(run=_actor_id(training.registry), version=int(weights_version))
        return {_actor_id(handle): handle for handle in handles}, weights

    async def _generate(self, engines: dict[str, Any], prompt: list[int], params: Any) -> Any:
        import ray

        async def send(engine: Engine[Any]) -> Any:
            request = engine.handle.generate.remote(prompt, params)
            try:
                return await request
            except asyncio.CancelledError:
                ray.cancel(request)  # or the engine would go on for nobody
                raise

        self._pool.hold(Engine(name, handle, {"march.engine": name}) for name, handle in engines.items())
        return await self._pool.ask(send, timeout_s=self._config.timeout_s, most=_MOST_ENGINES)


@dataclass(frozen=True)
class _Training:
    """A training run, as a sampler sees it."""

    registry: Any
    has_gpus: bool


def _death(error: Exception, name: str) -> SamplerError | None:
    """The failure of an engine that died; other errors are the request's."""
    from ray.exceptions import RayActorError

    return _failure(error) if isinstance(error, RayActorError) else None


def _failure(error: Exception) -> SamplerError:
    cause = str(error).strip().rpartition("\n")[2]  # after the traceback of the other process
    return SamplerError("engine", f"{type(error).__name__}: {cause.strip()}")


@contextlib.asynccontextmanager
async def _limit(limit_s: float, detail: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise SamplerError("timeout", detail) from error


def _refuse_seed_without_gpu(settings: SamplingSettings, training: _Training) -> None:
    if settings.seed is None or not settings.temperature or training.has_gpus:
        return
    fix = "leave it out or set temperature: 0"
    detail = f"seed: {settings.seed} could end a rollout engine, since the cluster has no GPU; {fix}"
    raise SamplerError("engine", detail)


def _actor_id(handle: Any) -> str:
    return str(handle._actor_id.hex())
