"""Completions from vLLM in this process, by token ids, for audits and for the evaluation.

The prompt is rendered and tokenised here, and the engine answers `generate(prompt_token_ids,
sampling_params)` with vLLM's `RequestOutput`, as a training run's engines do (`reward.samplers.live`).

Seeds without a GPU: vLLM 0.29.0 reads a prompt in chunks when a step has no place for all of it, throws away
what it sampled after a chunk, and winds the request's random generator back, which PyTorch's CPU generators
cannot do ("CPU Generator does not use offset"): the whole engine ends. So prompts are read whole there.

torch, transformers and vLLM are imported inside functions: the light core does without them.
"""

import asyncio
import os
import uuid
from collections.abc import Sequence
from typing import Any

from reward.config import LocalSamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.start import SharedStart, demand_libraries
from reward.samplers.token_ids import (
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
# vLLM's choice without a GPU is 128. Only whole blocks are shared: voters would read short prompts again.
_CPU_BLOCK_SIZE = 32


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
        return self._config.model

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
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
