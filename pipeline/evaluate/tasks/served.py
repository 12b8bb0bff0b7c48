"""Models of `reward.samplers` as Inspect's, and Inspect's grader as a sampler.

`ServedModel` is vLLM in this process, or servers with failover. It sends what Inspect's own providers do not
send everywhere (top-k, a JSON schema, a pattern), warns of a server that refuses one, and stops asking a
server that is down: five failures after another end the stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError

from pipeline.evaluate.tasks.samples import chat, generation_of, of_march
from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, Sampler, SamplerError
from reward.samplers.make import make_sampler
from reward.types import Sample, SampleGroup

ROLE = "grader"
_MOST_IN_A_ROW = 5  # failures; one item may be at fault, five after another are the server's
_READY_ATTEMPTS = 6  # each has a limit of seconds, and a server that loads may need more
_OPEN: list[ServedModel] = []  # those that hold connections or an engine


class ServerDownError(ValueError):
    """A server failed too often; what was done is kept."""


class ServedModel(ModelAPI):
    """One model; nothing is connected or started before it is first asked.

    Args:
        config: Where it runs.
        who: "model" or "judge", for messages.
        on_request: Called before each request.

    Attributes:
        num_requests, num_tokens: What was answered and paid.
        down: Why nothing is asked any more.
    """

    def __init__(
        self,
        config: OpenAISamplerConfig | LocalSamplerConfig,
        who: str,
        on_request: Callable[[], None] = lambda: None,
    ) -> None:
        folder = Path(config.model)  # which may be moved: its content is in the task's version
        super().__init__(folder.name if folder.is_dir() else config.model)
        self.num_requests = self.num_tokens = 0
        self.down: ServerDownError | None = None
        self._config, self._who, self._on_request = config, who, on_request
        self._sampler: Sampler | None = None
        self._num_in_a_row = 0
        self._starting = asyncio.Lock()

    async def sampler(self) -> Sampler:
        """The sampler, when it answers; raises `ServerDownError` when it does not."""
        async with self._starting:
            if self.down is not None:
                raise self.down
            if self._sampler is None:
                self._sampler = make_sampler(self._config)
                _OPEN.append(self)
                _close_at_the_end()
                await self._require_ready(self._sampler)
            return self._sampler

    async def _require_ready(self, sampler: Sampler) -> None:
        for attempt in range(1, _READY_ATTEMPTS + 1):
            try:
                return await sampler.ready()
            except SamplerError as error:
                if error.reason != "timeout" or attempt == _READY_ATTEMPTS:
                    self.down = ServerDownError(f"{self._who}: {error.detail}")
                    raise self.down from error

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """One completion.

        Raises:
            ServerDownError: the server failed too often.
            SamplerError: the request failed; a prompt that does not fit is an output instead.
        """
        sampler = await self.sampler()
        self._on_request()
        text, reason, read, written = "", "model_length", 0, 0
        try:
            group = await _sample(sampler, input, config)
        except SamplerError as error:
            if error.reason != "prompt_too_long":
                raise self._failed(error) from error
        else:
            self._num_in_a_row = 0
            (sample,) = group.samples
            text, reason = sample.text, "max_tokens" if sample.finish_reason == "length" else "stop"
            if group.use is not None:
                read, written = group.use.num_prompt, group.use.num_completion
            self.num_requests += 1
            self.num_tokens += read + written
        output = ModelOutput.from_content(self.model_name, text, stop_reason=cast(StopReason, reason))
        # Without a usage, Inspect would fetch a tokenizer.
        output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
        return output

    async def aclose(self) -> None:
        """Frees connections, or the engine."""
        if self._sampler is not None:
            await self._sampler.close()
            self._sampler = None

    def _failed(self, error: SamplerError) -> Exception:
        self._num_in_a_row += 1
        if self._num_in_a_row >= _MOST_IN_A_ROW:
            detail = f"{self._who}: {error.detail}; what is done is kept, and the same command goes on"
            self.down = ServerDownError(detail)
        return self.down or error


def as_model(served: ServedModel) -> Model:
    """As Inspect's functions take it. Where it runs is no argument, as that decides no figure."""
    return Model(served, GenerateConfig())


# Makes one that Inspect knows as `march/NAME`.
served_model: Callable[..., ServedModel] = modelapi(name="march")(of_march(ServedModel))  # type: ignore[assignment]


async def _sample(sampler: Sampler, input: Sequence[ChatMessage], config: GenerateConfig) -> SampleGroup:
    messages = [Message(role=one.role, content=one.text) for one in input]
    named = config.model_dump(include=set(SamplingSettings.model_fields), exclude_none=True)
    bound: dict[str, Any] = {}
    if config.response_schema is not None:  # of a judge, which is a server
        schema = config.response_schema.json_schema
        bound["json_schema"] = schema.model_dump(exclude_none=True, by_alias=True)
    return await sampler.sample(messages, n=1, settings=SamplingSettings.model_validate(named), **bound)


@cache
def _close_at_the_end() -> None:
    """Not at import: Inspect tells every user of a hook that is in its registry when it starts."""
    hooks(name="march/served", description="Lets the models go when their run ends.")(_Closing)


class _Closing(Hooks):
    """In the event loop of the run, which an engine of this process is bound to."""

    async def on_run_end(self, data: RunEnd) -> None:
        while _OPEN:
            await _OPEN.pop().aclose()


def grader() -> Model:
    """The judge: `--model-role grader=...`.

    Raises:
        PrerequisiteError: there is none; the model under test never judges itself unasked.
    """
    return get_model(role=ROLE, required=True)


async def grader_sampler() -> Sampler:
    """The grader as `reward.auditor` samples its roles: one of our own servers keeps what it can do."""
    api = grader().api
    return await api.sampler() if isinstance(api, ServedModel) else GraderSampler()


class GraderSampler:
    """A grader of any provider of Inspect's."""

    @property
    def model(self) -> str:
        """Its name, for the provenance of a verdict."""
        return str(grader())

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """Asks `n` times, each with its own seed: not every provider gives several completions at once.

        Raises:
            SamplerError: any of them failed, after Inspect's own retries.
        """
        seeds = range(settings.seed or 0, (settings.seed or 0) + n)
        asked = [_ask(messages, settings.model_copy(update={"seed": seed})) for seed in seeds]
        return SampleGroup(samples=tuple(await asyncio.gather(*asked)))

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """As the provider counts, or Inspect's estimate."""
        return await grader().count_tokens(chat(messages))

    async def ready(self) -> None:
        """Inspect tells what does not answer."""

    async def close(self) -> None:
        """Inspect closes its models."""


async def _ask(messages: Sequence[Message], settings: SamplingSettings) -> Sample:
    try:
        found = generation_of(await grader().generate(chat(messages), config=generate_config(settings)))
    except LimitExceededError:
        raise
    except Exception as error:  # each provider has its own
        raise SamplerError("engine", f"{type(error).__name__}: {error}") from error
    if found.failure:
        reason = "prompt_too_long" if found.failure == "model_length" else "bad_response"
        raise SamplerError(reason, f"the grader gave no answer: {found.failure}")
    return Sample(text=found.text, finish_reason="length" if found.is_cut else "stop")


def generate_config(settings: SamplingSettings) -> GenerateConfig:
    """How the grader is sampled."""
    named = settings.model_dump(include={"temperature", "max_tokens", "seed"})
    return GenerateConfig(**named, top_p=settings.top_p if settings.top_p < 1 else None)
