"""Completions from vLLM engines by token ids: a training run's live engines, or one in this process.

Both samplers rest on one idea: an engine is something that answers `generate(prompt_token_ids,
sampling_params)` with vLLM's `RequestOutput`. The prompt is rendered and tokenised here, so the ids of a
trajectory are the ids that the model saw, and one request with n samples fills the prompt's cache once.

`RayEngineSampler` reaches the engines that OpenRLHF rolls out on (`RolloutRayActor.generate`): no second
copy of the weights, and every role is the current policy. The trainer registers the engines under a named
actor, whose `snapshot()` returns `([reference], weights_version)`, the reference being that of the list of
engine handles. An engine that sleeps never answers, so every request has a deadline; where there are several
engines, one that stalls for half of it or dies is left for another, once. `LocalEngineSampler` starts vLLM in
this process, for audits and for the evaluation.

Seeds without a GPU: vLLM 0.29.0 reads a prompt in chunks when a step has no room for all of it, throws away
what it sampled after a chunk, and winds the request's random generator back, which PyTorch's CPU generators
cannot do ("CPU Generator does not use offset"): the whole engine dies. So the local engine reads prompts
whole there, and a seeded request is refused before it reaches the live engines of a cluster without a GPU.

torch, transformers, vLLM and Ray are imported inside functions: the light core does without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from reward.config import LocalSamplerConfig, RaySamplerConfig, SamplingSettings
from reward.samplers import EngineStatus, Message, SamplerError, Weights
from reward.samplers.libraries import demand_libraries
from reward.samplers.placement import Placement
from reward.samplers.start import SharedStart
from reward.samplers.tokens import (
    completion_budget,
    load_tokenizer,
    prompt_token_ids,
    sample_group,
    sampling_params,
)
from reward.types import SampleGroup

# Without a GPU: a small cache, and no compilation, which costs more than it saves there.
_CPU_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
# vLLM's choice without a GPU is 128. Only whole blocks are shared: voters would read short prompts anew.
_CPU_BLOCK_SIZE = 32


class RayEngineSampler:
    """Samples the live rollout engines over Ray. It connects at the first request, not before."""

    def __init__(self, config: RaySamplerConfig) -> None:
        self._config = config
        self._tokenizer = load_tokenizer(config.tokenizer, field="sampler.tokenizer")
        self._training = SharedStart(self._connect)
        self._placement = Placement()

    @property
    def model(self) -> str:
        """The trained policy, by its tokenizer; its weights have a version of their own."""
        return self._config.tokenizer

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        """Returns `n` completions of one prompt by the engine with the fewest of our requests.

        The weights version is read before the request: the older one, when the weights change meanwhile.

        Raises:
            SamplerError: with reason `timeout`, `prompt_too_long`, `bad_response` or `engine`.
        """
        prompt = prompt_token_ids(self._tokenizer, messages)
        max_model_len = self._config.max_model_len
        budget = completion_budget(len(prompt), max_tokens=settings.max_tokens, max_model_len=max_model_len)
        async with _ray_failures_named(self._config.timeout_s, self._training):
            engines, weights = await self._snapshot(settings)
            params = sampling_params(settings, n=n, max_tokens=budget, pattern=pattern)
            output = await self._generate(engines, prompt, params)
        return sample_group(output, self._tokenizer, n=n, params=params, weights_version=weights.version)

    async def weights(self) -> Weights:
        """The policy's weights, as its registry knows them.

        Raises:
            SamplerError: `engine` or `timeout`, when the registry cannot be asked.
        """
        async with _ray_failures_named(self._config.timeout_s, self._training):
            return (await self._snapshot())[1]

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt."""
        return len(prompt_token_ids(self._tokenizer, messages))

    async def ready(self) -> None:
        """Returns when the registry hands out an engine; none is sampled, as they sleep between rollouts."""
        async with _ray_failures_named(self._config.timeout_s, self._training):
            await self._snapshot()

    def engines(self) -> tuple[EngineStatus, ...]:
        """The rollout engines that were asked, by their actors' ids."""
        return self._placement.statuses()

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

    async def _snapshot(self, settings: SamplingSettings | None = None) -> tuple[dict[str, Any], Weights]:
        """The engines by name, and their weights."""
        training = await self._training.get()
        if settings and settings.seed is not None and settings.temperature and not training.has_gpus:
            mend = "leave it out or set temperature: 0"
            detail = f"seed: {settings.seed} could kill a rollout engine, for the cluster has no GPU; {mend}"
            raise SamplerError("engine", detail)
        (engines,), weights_version = await training.registry.snapshot.remote()
        handles = await engines
        if not handles:
            raise SamplerError("engine", f"the registry {self._config.registry!r} holds no engine yet")
        weights = Weights(run=_actor_id(training.registry), version=int(weights_version))
        return {_actor_id(handle): handle for handle in handles}, weights

    async def _generate(self, engines: dict[str, Any], prompt: list[int], params: Any) -> Any:
        import ray
        from ray.exceptions import RayActorError

        async def send(name: str) -> Any:
            request = engines[name].generate.remote(prompt, params)
            try:
                return await request
            except asyncio.CancelledError:
                ray.cancel(request)  # or the engine would go on for nobody
                raise

        timeout_s, deaths = self._config.timeout_s, (RayActorError,)
        return await self._placement.ask(engines, send, timeout_s=timeout_s, deaths=deaths)


@dataclass(frozen=True)
class _Training:
    """A training run, as a sampler sees it."""

    registry: Any
    has_gpus: bool


class LocalEngineSampler:
    """Samples vLLM from this process. The engine starts at the first request and takes seconds to minutes.

    vLLM computes in a process of its own, which imports the main module again: a script that uses this keeps
    what it does under `if __name__ == "__main__":`.
    """

    def __init__(self, config: LocalSamplerConfig) -> None:
        self._config = config
        _set_vllm_environment()
        self._tokenizer = load_tokenizer(config.model, field="sampler.model")
        self._engine = SharedStart(self._start)

    @property
    def model(self) -> str:
        """The model's folder or name."""
        return self._config.model

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        """Returns `n` completions of one prompt.

        Raises:
            SamplerError: with reason `timeout`, `prompt_too_long`, `bad_response` or `engine`.
        """
        prompt = prompt_token_ids(self._tokenizer, messages)
        engine = await self._started()
        max_model_len = int(engine.model_config.max_model_len)
        budget = completion_budget(len(prompt), max_tokens=settings.max_tokens, max_model_len=max_model_len)
        params = sampling_params(settings, n=n, max_tokens=budget, pattern=pattern)
        try:
            async with asyncio.timeout(self._config.timeout_s):  # which takes the request back from vLLM
                output = await _last_output(engine, prompt, params)
        except TimeoutError as error:
            detail = f"{n} completions took over {self._config.timeout_s:g} s; raise sampler.timeout_s"
            raise SamplerError("timeout", detail) from error
        except Exception as error:  # vLLM promises no common type
            raise SamplerError("engine", f"{type(error).__name__}: {error}") from error
        return sample_group(output, self._tokenizer, n=n, params=params, weights_version=None)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt; the engine need not have started."""
        return len(prompt_token_ids(self._tokenizer, messages))

    async def ready(self) -> None:
        """Returns when the engine has started and lives."""
        engine = await self._started()
        if engine.errored:
            raise SamplerError("engine", f"vLLM died: {engine.dead_error}")

    async def close(self) -> None:
        """Stops the engine, if it was started."""
        engine = await self._engine.forget_when_started()
        if engine is None:
            return
        if engine.output_handler is not None:
            engine.output_handler.cancel()  # or it logs the end of the engine as a failure
        await asyncio.to_thread(engine.shutdown)

    async def _started(self) -> Any:
        try:
            return await self._engine.get()
        except Exception as error:  # vLLM promises no common type
            raise SamplerError("engine", f"vLLM did not start: {type(error).__name__}: {error}") from error

    def _start(self) -> Any:
        demand_libraries()
        import torch
        import vllm

        has_gpu = torch.cuda.is_available()
        arguments = vllm.AsyncEngineArgs(
            model=self._config.model,
            max_model_len=self._config.max_model_len,
            seed=self._config.seed,
            dtype=self._config.dtype or ("bfloat16" if has_gpu else "float32"),
            enforce_eager=True,
            enable_prefix_caching=True,
            block_size=None if has_gpu else _CPU_BLOCK_SIZE,
            enable_chunked_prefill=None if has_gpu else False,  # seeds without a GPU, see above
            logprobs_mode="processed_logprobs",  # of the distribution that was sampled, temperature included
            disable_log_stats=True,
        )
        return vllm.AsyncLLMEngine.from_engine_args(arguments)


@contextlib.asynccontextmanager
async def _ray_failures_named(timeout_s: float, training: SharedStart[_Training]) -> AsyncIterator[None]:
    """Bounds what runs inside and names its failures; after one, the run is looked up afresh."""
    from ray.exceptions import RayError

    try:
        async with asyncio.timeout(timeout_s):
            yield
    except SamplerError:
        raise
    except TimeoutError as error:
        detail = f"no rollout engine answered in {timeout_s:g} s; is it asleep?"
        raise SamplerError("timeout", detail) from error
    except (RayError, ValueError, OSError, RuntimeError) as error:  # not there yet, died, or no cluster
        training.forget()
        cause = str(error).strip().rpartition("\n")[2]  # after the traceback of the other process
        raise SamplerError("engine", f"{type(error).__name__}: {cause.strip()}") from error


async def _last_output(engine: Any, prompt: list[int], params: Any) -> Any:
    from vllm.inputs import TokensPrompt

    last = None
    async for output in engine.generate(TokensPrompt(prompt_token_ids=prompt), params, uuid.uuid4().hex):
        last = output
    return last


def _set_vllm_environment() -> None:
    """Sets defaults that vLLM reads when it is imported."""
    import torch

    # A forked engine process would inherit the threads and the listening socket of a running server.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    if not torch.cuda.is_available():
        for name, value in _CPU_ENVIRONMENT.items():
            os.environ.setdefault(name, value)


def _actor_id(handle: Any) -> str:
    return str(handle._actor_id.hex())
