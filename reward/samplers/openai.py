"""Completions from an OpenAI-compatible server, such as `vllm serve`.

For audits, and for training with a frozen verifier. Retries, back-off and timeouts are the `openai`
package's. vLLM is asked for the exact token ids (`return_token_ids`); a server that ignores or refuses the
key still serves audits, only without trajectories. Log-probabilities are left out: the trainer computes its
own.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.chat.chat_completion import Choice

from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.types import Sample, SampleGroup

logger = logging.getLogger(__name__)

_READY_TIMEOUT_S = 5.0
_TOO_LONG_MARKS = ("context length", "context_length", "context window", "too long", "max_model_len")
_TOKEN_IDS_KEY = "return_token_ids"


class OpenAISampler:
    """Samples one model of one server; at most `max_in_flight` requests are under way at once."""

    def __init__(self, config: OpenAISamplerConfig) -> None:
        self._config = config
        self._client = openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=os.environ.get(config.api_key_env) or "none",
            timeout=config.timeout_s,
            max_retries=config.max_retries,
        )
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._ask_token_ids = True

    async def sample(self, messages: Sequence[Message], *, n: int, settings: SamplingSettings) -> SampleGroup:
        """Returns `n` independent completions of one prompt, in one request.

        At temperature 0 all completions are the same and vLLM refuses n > 1: one is asked for and repeated.

        Raises:
            SamplerError: with reason `timeout`, `connection`, `prompt_too_long`, `bad_response` or `engine`.
        """
        num_asked = 1 if settings.temperature == 0 else n
        async with self._slots:
            try:
                completion = await self._complete(messages, n=num_asked, settings=settings)
            except openai.OpenAIError as error:
                raise self._named(error, timeout_s=self._config.timeout_s) from error
        return _sample_group(completion, num_asked=num_asked, n=n)

    async def ready(self) -> None:
        """Returns when the server answers and serves the model; raises `SamplerError` when it does not."""
        try:
            listed = await self._client.with_options(max_retries=0, timeout=_READY_TIMEOUT_S).models.list()
        except openai.OpenAIError as error:
            raise self._named(error, timeout_s=_READY_TIMEOUT_S) from error
        served = [model.id for model in listed.data or ()]
        if served and self._config.model not in served:
            raise SamplerError(
                "bad_response",
                f"sampler.model: {self._config.model!r} is not among {served} of {self._config.base_url}",
            )

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _complete(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings
    ) -> ChatCompletion:
        asked_token_ids = self._ask_token_ids
        try:
            return await self._client.chat.completions.create(
                model=self._config.model,
                messages=cast(list[ChatCompletionMessageParam], list(messages)),
                n=n,
                temperature=settings.temperature,
                top_p=settings.top_p,
                max_tokens=settings.max_tokens,
                extra_body={_TOKEN_IDS_KEY: True} if asked_token_ids else None,
            )
        except openai.BadRequestError as error:
            if not asked_token_ids or _TOKEN_IDS_KEY not in str(error):
                raise
            logger.warning("%s refuses %s: no token ids", self._config.base_url, _TOKEN_IDS_KEY)
            self._ask_token_ids = False
            return await self._complete(messages, n=n, settings=settings)

    def _named(self, error: openai.OpenAIError, *, timeout_s: float) -> SamplerError:
        """Gives a failure of the `openai` package its reason."""
        base_url = self._config.base_url
        if isinstance(error, openai.APITimeoutError):
            return SamplerError("timeout", f"{base_url} did not answer in {timeout_s:g} s")
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            return SamplerError(
                "connection", f"{base_url} cannot be reached: {cause}; start it or mend base_url"
            )
        if not isinstance(error, openai.APIStatusError):
            return SamplerError("bad_response", f"{base_url}: {error}")
        detail = f"{base_url} answered {error.status_code}: {error.message}"
        if error.status_code in (400, 413, 422) and any(
            mark in error.message.lower() for mark in _TOO_LONG_MARKS
        ):
            return SamplerError("prompt_too_long", detail)
        if error.status_code in (408, 409, 429) or error.status_code >= 500:
            return SamplerError("engine", detail)
        return SamplerError("bad_response", detail)


def _sample_group(completion: ChatCompletion, *, num_asked: int, n: int) -> SampleGroup:
    if not isinstance(completion, ChatCompletion):  # the package hands on a page that is not JSON as its text
        raise SamplerError("bad_response", f"not a chat completion: {str(completion)[:80]!r}")
    choices = completion.choices or []
    if len(choices) != num_asked:
        raise SamplerError("bad_response", f"{len(choices)} of {num_asked} completions came back")
    samples = tuple(_sample(choice) for choice in choices)
    return SampleGroup(
        samples=samples * (n // num_asked),
        prompt_token_ids=_token_ids(getattr(completion, "prompt_token_ids", None)),
    )


def _sample(choice: Choice) -> Sample:
    text, finish_reason = choice.message.content, choice.finish_reason
    if text is None:
        raise SamplerError("bad_response", f"a completion has no content (finish_reason {finish_reason!r})")
    if finish_reason not in ("stop", "length"):
        raise SamplerError("bad_response", f"a completion ended with finish_reason {finish_reason!r}")
    token_ids = _token_ids(getattr(choice, "token_ids", None))
    return Sample(text=text, finish_reason=finish_reason, token_ids=token_ids)


def _token_ids(value: object) -> tuple[int, ...] | None:
    """vLLM's extra key, if it is there and is what it should be: a non-empty list of ids."""
    if isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    return None
