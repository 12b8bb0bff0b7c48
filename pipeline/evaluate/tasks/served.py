"""A model of `reward.samplers` as a provider of Inspect's: vLLM in this process, or servers with failover.

It sends what Inspect's own providers do not send everywhere (top-k, a JSON schema, a pattern), warns of a
server that refuses one, and stops asking a server that is down: five failures after another end the stage.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from pipeline.evaluate.tasks.naming import of_march
from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, Sampler, SamplerError, make_sampler
from reward.samplers.openai import OpenAISampler
from reward.types import SampleGroup, TokenUse

_MOST_IN_A_ROW = 5  # failures; one item may be at fault, five after another are the server's
_READY_ATTEMPTS = 6  # each has a limit of seconds, and a server that loads may need more
_NOTHING = TokenUse(num_prompt=0, num_completion=0)
_OPEN: set[ServedModel] = set()  # those that hold connections or an engine


class ServerDownError(ValueError):
    """A server failed too often; what was done is kept."""


@dataclass
class Spent:
    """What this run asked of a model and paid."""

    num_requests: int = 0
    num_prompt: int = 0  # tokens
    num_completion: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def use(self) -> TokenUse:
        """Its tokens."""
        return TokenUse(num_prompt=self.num_prompt, num_completion=self.num_completion)

    @property
    def num_tokens(self) -> int:
        """Prompts and completions together."""
        return self.num_prompt + self.num_completion


class ServedModel(ModelAPI):
    """One model; nothing is connected or started before it is first asked.

    Args:
        config: Where it runs.
        who: "model" or "judge", for messages.
        on_request: Called before each request.

    Attributes:
        spent: What was asked and paid.
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
        self.spent = Spent()
        self.down: ServerDownError | None = None
        self._config, self._who, self._on_request = config, who, on_request
        self._sampler: Sampler | None = None
        self._num_in_a_row = 0
        self._starting = asyncio.Lock()

    @property
    def as_model(self) -> Model:
        """As Inspect's functions take it. Where it runs is no argument, as that decides no figure."""
        return Model(self, GenerateConfig())

    async def sampler(self) -> Sampler:
        """The sampler, when it answers.

        Raises:
            ServerDownError: it does not.
        """
        async with self._starting:
            if self._sampler is None and self.down is None:
                self._sampler = make_sampler(self._config)
                _OPEN.add(self)
                _close_at_the_end()
                await self._require_ready(self._sampler)
            if self.down is not None or self._sampler is None:
                raise self.down or ServerDownError(self._who)
            return self._sampler

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
        reason: StopReason = "model_length"
        text, use = "", _NOTHING
        try:
            group = await self._sample(sampler, input, config)
        except SamplerError as error:
            self.spent.failures[error.reason] += 1
            if error.reason != "prompt_too_long":
                raise self._failed(error) from error
        else:
            self._num_in_a_row = 0
            (sample,) = group.samples
            text, use = sample.text, group.use or _NOTHING
            reason = "max_tokens" if sample.finish_reason == "length" else "stop"
            self.spent.num_requests += 1
            self.spent.num_prompt += use.num_prompt
            self.spent.num_completion += use.num_completion
        output = ModelOutput.from_content(self.model_name, text, stop_reason=reason)
        output.usage = ModelUsage(  # without one, Inspect would fetch a tokenizer
            input_tokens=use.num_prompt,
            output_tokens=use.num_completion,
            total_tokens=use.num_prompt + use.num_completion,
        )
        return output

    async def aclose(self) -> None:
        """Frees connections, or the engine."""
        _OPEN.discard(self)
        if self._sampler is not None:
            await self._sampler.close()
            self._sampler = None

    async def _require_ready(self, sampler: Sampler) -> None:
        for attempt in range(_READY_ATTEMPTS):
            try:
                return await sampler.ready()
            except SamplerError as error:
                if error.reason != "timeout" or attempt == _READY_ATTEMPTS - 1:
                    self.down = ServerDownError(f"{self._who}: {error.detail}")
                    return None

    async def _sample(
        self, sampler: Sampler, input: list[ChatMessage], config: GenerateConfig
    ) -> SampleGroup:
        chat = [Message(role=one.role, content=one.text) for one in input]
        named = config.model_dump(include=set(SamplingSettings.model_fields), exclude_none=True)
        settings = SamplingSettings.model_validate(named)
        schema = config.response_schema
        if schema is None or not isinstance(sampler, OpenAISampler):
            return await sampler.sample(chat, n=1, settings=settings)
        bound = schema.json_schema.model_dump(exclude_none=True, by_alias=True)
        return await sampler.sample(chat, n=1, settings=settings, json_schema=bound)

    def _failed(self, error: SamplerError) -> Exception:
        self._num_in_a_row += 1
        if self._num_in_a_row < _MOST_IN_A_ROW:
            return error
        detail = f"{self._who}: {error.detail}; what is done is kept, and the same command goes on"
        self.down = ServerDownError(detail)
        return self.down


# Makes one that Inspect knows as `march/NAME`.
served_model: Callable[..., ServedModel] = modelapi(name="march")(of_march(ServedModel))  # type: ignore[assignment]


@cache
def _close_at_the_end() -> None:
    """Not at import: Inspect tells every user of a hook that is in its registry when it starts."""
    hooks(name="march/served", description="Lets the models go when their run ends.")(_Closing)


class _Closing(Hooks):
    """In the event loop of the run, which an engine of this process is bound to."""

    async def on_run_end(self, data: RunEnd) -> None:
        for one in tuple(_OPEN):
            await one.aclose()
