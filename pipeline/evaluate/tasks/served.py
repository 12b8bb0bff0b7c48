"""Models of `reward.samplers` as Inspect's: vLLM in this process, or servers with failover.

It sends what Inspect's own providers do not send everywhere (top-k, a JSON schema), warns of a server that
refuses one, and stops asking a server that is down: five failures after another end the stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from pipeline.evaluate.tasks.samples import of_march
from pipeline.redaction import one_line
from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings
from reward.provenance import json_sha256
from reward.samplers import Message, Sampler, SamplerError
from reward.samplers.make import make_sampler
from reward.types import TokenUse

ROLE = "grader"
_MOST_IN_A_ROW = 5  # prompts that fail; one may be at fault, five after another are the server's
_READY_ATTEMPTS = 6  # each has a limit of seconds, and a server that loads may need more
_OPEN: list[ServedModel] = []  # those that hold connections or an engine


class ServerDownError(ValueError):
    """A server failed too often; what was done is kept."""


class ServedModel(ModelAPI):
    """One model; nothing is connected or started before it is first asked.

    `who` is "model" or "judge", for messages; `on_answer` is called with each answer. `num_tokens` is what
    was paid, and `down` why nothing is asked any more.
    """

    def __init__(
        self,
        config: OpenAISamplerConfig | LocalSamplerConfig,
        who: str,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        folder = Path(config.model)  # which may be moved: its content is in the task's version
        super().__init__(folder.name if folder.is_dir() else config.model)
        self.num_tokens = 0
        self.down: ServerDownError | None = None
        self._config, self._who, self._on_answer = config, who, on_answer
        self._sampler: Sampler | None = None
        self._failed = set[str]()  # prompts since the last answer
        self._starting = asyncio.Lock()

    async def sampler(self) -> Sampler:
        """The sampler, when it answers; raises `ServerDownError` when it does not, or cannot be started."""
        async with self._starting:
            if self.down is not None:  # a new error each time: one that is raised again has all tracebacks
                raise ServerDownError(str(self.down))
            if self._sampler is None:
                try:
                    self._sampler = make_sampler(self._config)
                    _OPEN.append(self)
                    _close_at_the_end()
                    await self._require_ready(self._sampler)
                except ServerDownError:
                    raise
                except Exception as error:  # an engine that does not start fails for all alike
                    line = f"{error}".removeprefix("sampler.model: ") or type(error).__name__
                    raise self._goes_down(one_line(line)) from error
            return self._sampler

    async def _require_ready(self, sampler: Sampler) -> None:
        for attempt in range(1, _READY_ATTEMPTS + 1):
            try:
                return await sampler.ready()
            except SamplerError as error:
                if error.reason != "timeout" or attempt == _READY_ATTEMPTS:
                    raise self._goes_down(error.detail) from error

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """One completion.

        Raises:
            ServerDownError: the server failed too often.
            SamplerError: the request failed; a prompt that does not fit is an output instead.
        """
        sampler = await self.sampler()
        messages = [Message(role=one.role, content=one.text) for one in input]
        named = config.model_dump(include=set(SamplingSettings.model_fields), exclude_none=True)
        bound: dict[str, Any] = {}
        if config.response_schema is not None:  # of a judge, which is a server
            schema = config.response_schema.json_schema
            bound["json_schema"] = schema.model_dump(exclude_none=True, by_alias=True)
        try:
            settings = SamplingSettings.model_validate(named)
            group = await sampler.sample(messages, n=1, settings=settings, **bound)
        except SamplerError as error:
            if error.reason == "prompt_too_long":
                return self._output("", "model_length")
            self._failed.add(json_sha256(messages))
            if len(self._failed) < _MOST_IN_A_ROW:
                raise
            kept = "what is done is kept, and the same command goes on"
            raise self._goes_down(f"{error.detail}; {kept}") from error
        self._failed.clear()
        (sample,) = group.samples
        reason: StopReason = "max_tokens" if sample.finish_reason == "length" else "stop"
        return self._output(sample.text, reason, group.use)

    async def aclose(self) -> None:
        """Frees connections, or the engine."""
        if self._sampler is not None:
            await self._sampler.close()
            self._sampler = None

    def _goes_down(self, detail: str) -> ServerDownError:
        self.down = ServerDownError(f"{self._who}: {detail}")
        return self.down

    def _output(self, text: str, reason: StopReason, use: TokenUse | None = None) -> ModelOutput:
        output = ModelOutput.from_content(self.model_name, text, stop_reason=reason)
        # Without a usage, Inspect would fetch a tokenizer.
        read, written = (use.num_prompt, use.num_completion) if use else (0, 0)
        output.usage = ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)
        self.num_tokens += read + written
        self._on_answer()
        return output


async def require_answer(config: OpenAISamplerConfig, who: str) -> None:
    """Raises `ServerDownError` when a server does not answer now."""
    model = ServedModel(config, who)
    try:
        await model.sampler()
    finally:
        await model.aclose()


# Makes one that Inspect knows as `march/NAME`.
served_model: Callable[..., ServedModel] = modelapi(name="march")(of_march(ServedModel))  # type: ignore[assignment]


@cache
def _close_at_the_end() -> None:
    """Not at import: Inspect tells every user of a hook that is in its registry when it starts."""
    hooks(name="march/served", description="Lets the models go when their run ends.")(_Closing)


class _Closing(Hooks):
    """In the event loop of the run, which an engine of this process is bound to."""

    async def on_run_end(self, data: RunEnd) -> None:
        while _OPEN:
            await _OPEN.pop().aclose()


async def grader_sampler() -> Sampler:
    """The grader as `reward.auditor` samples its roles.

    Raises:
        ServerDownError: it does not answer.
        TypeError: it is a model of one of Inspect's own providers.
    """
    api = get_model(role=ROLE, required=True).api
    if not isinstance(api, ServedModel):
        raise TypeError("an audit by a model takes `march evaluate --audit model`")
    return await api.sampler()
