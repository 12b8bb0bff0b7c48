"""Completions from OpenAI-compatible servers, such as `vllm serve`: one, or several of the same model.

For audits, evaluations, and training with a frozen verifier. The least busy server is asked, and the others
when it fails (`failover.py`). vLLM is asked for the exact token ids (`return_token_ids`) and can be bound to
a pattern (`structured_outputs`), many a server to a JSON schema (`response_format`); one that refuses such a
key is warned about once and asked without it. A server that does not know them and does not mind still serves
audits, only without trajectories. Each request bears an id of its own, and vLLM's answer names it: an answer
that names another one is not believed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from pydantic import JsonValue

from reward import telemetry
from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import EngineStatus, Message, SamplerError
from reward.samplers.completions import (
    REQUEST_ID_HEADER,
    named_failure,
    new_request_id,
    read_completion,
)
from reward.samplers.failover import ask, is_of_server
from reward.samplers.servers import Server, ServerPool
from reward.types import SampleGroup

logger = logging.getLogger(__name__)

_READY_TIMEOUT_S = 5.0
_TOKEN_IDS_KEY, _PATTERN_KEY = "return_token_ids", "structured_outputs"
_SCHEMA_KEY, _TOP_K_KEY = "response_format", "top_k"
_CONSEQUENCES = {
    _TOKEN_IDS_KEY: "its samples have no token ids",
    _PATTERN_KEY: "its completions are not bound to a pattern",
    _SCHEMA_KEY: "its completions are not bound to a schema",
    _TOP_K_KEY: "its samples are of all tokens",
}
_OTHER_NAMES = {_SCHEMA_KEY: ("json_schema",)}  # by which a server may refuse a key
# A token is one byte of a text at least, and templates write a handful of tokens around a message.
_TOKENS_AROUND_MESSAGE = 16


class OpenAISampler:
    """Samples one model of one or several servers; each has at most `max_in_flight` requests under way."""

    def __init__(self, config: OpenAISamplerConfig) -> None:
        self._config = config
        self._pool = ServerPool(
            config.base_urls,
            api_key=os.environ.get(config.api_key_env) or "none",
            max_in_flight=config.max_in_flight,
            cool_down_s=config.cool_down_s,
        )

    @property
    def model(self) -> str:
        """The model's name on the servers."""
        return self._config.model

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
        json_schema: Mapping[str, JsonValue] | None = None,
    ) -> SampleGroup:
        """Returns `n` independent completions of one prompt, in one request.

        At temperature 0 all completions are the same and vLLM refuses n > 1: one is asked for and repeated.
        A pattern does without look-around and word borders, which no grammar of vLLM knows, and holds for
        completions that ended by themselves: those that are cut at `max_tokens` match its beginning. A JSON
        schema, which a caller gives in place of a pattern, does what the server makes of it.

        Raises:
            SamplerError: with reason `timeout`, `connection`, `prompt_too_long`, `bad_response` or `engine`.
        """
        num_asked = 1 if settings.temperature == 0 else n
        wanted = _extra_body(settings, pattern, json_schema)

        async def send(server: Server) -> SampleGroup:
            request_id = new_request_id()
            completion = await self._complete(
                server, messages, n=num_asked, settings=settings, wanted=wanted, request_id=request_id
            )
            logprobs = self._config.logprobs
            return read_completion(
                completion, num_asked=num_asked, n=n, logprobs=logprobs, request_id=request_id
            )

        return await ask(
            self._pool, send, timeout_s=self._config.timeout_s, max_retries=self._config.max_retries
        )

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt by vLLM's /tokenize, or an upper bound for a server that has none.

        The bound is the bytes of the messages in UTF-8 and 16 tokens a message; English has a quarter of it.

        Raises:
            SamplerError: as `sample`.
        """

        async def send(server: Server) -> int:
            return await self._count(server, messages)

        return await ask(
            self._pool, send, timeout_s=self._config.timeout_s, max_retries=self._config.max_retries
        )

    async def ready(self) -> None:
        """Returns when a server answers and every one that does serves the model.

        Raises:
            SamplerError: no server answers, or one of them serves other models.
        """
        failures = await asyncio.gather(*(self._not_ready(server) for server in self._pool.servers))
        for server, failure in zip(self._pool.servers, failures, strict=True):
            server.is_up = failure is None
        found = [failure for failure in failures if failure is not None]
        for failure in found:
            if not is_of_server(failure):
                raise failure
        if len(found) == len(failures):
            raise SamplerError(found[-1].reason, "; ".join(failure.detail for failure in found))

    def engines(self) -> tuple[EngineStatus, ...]:
        """The servers, as the latest requests found them."""
        return self._pool.statuses()

    async def close(self) -> None:
        """Closes the connections."""
        await self._pool.close()

    async def _complete(
        self,
        server: Server,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        wanted: Mapping[str, Any],
        request_id: str,
    ) -> ChatCompletion:
        extra = {key: value for key, value in wanted.items() if key not in server.refused_keys}
        try:
            return await server.client.chat.completions.create(
                model=self._config.model,
                messages=cast(list[ChatCompletionMessageParam], list(messages)),
                n=n,
                temperature=settings.temperature,
                top_p=settings.top_p,
                max_tokens=settings.max_tokens,
                seed=openai.omit if settings.seed is None else settings.seed,
                logprobs=True if self._config.logprobs else openai.omit,
                extra_body=extra,
                # vLLM goes on with the trace
                extra_headers=telemetry.inject({REQUEST_ID_HEADER: request_id}),
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            said = str(error)
            refused = [
                key for key in extra if any(name in said for name in (key, *_OTHER_NAMES.get(key, ())))
            ]
            if not refused:
                raise
            for key in refused:
                logger.warning("%s refuses %s: %s", server.base_url, key, _CONSEQUENCES[key])
            server.refused_keys.update(refused)
            return await self._complete(
                server, messages, n=n, settings=settings, wanted=wanted, request_id=request_id
            )

    async def _count(self, server: Server, messages: Sequence[Message]) -> int:
        if server.counts_tokens:
            body = {"model": self._config.model, "messages": list(messages)}
            try:
                answer = await server.client.post(server.tokenize_url, cast_to=object, body=body)
            except openai.APIStatusError as error:
                if error.status_code != 501 and is_of_server(named_failure(error, server.base_url)):
                    raise
                answer = None
            num_tokens = answer.get("count") if isinstance(answer, dict) else None
            if type(num_tokens) is int and num_tokens > 0:
                return num_tokens
            logger.info("%s has no /tokenize: prompts are measured in bytes", server.base_url)
            server.counts_tokens = False
        return sum(len(message["content"].encode()) + _TOKENS_AROUND_MESSAGE for message in messages)

    async def _not_ready(self, server: Server) -> SamplerError | None:
        """Why a server cannot be used now; None when it can."""
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                listed = await server.client.models.list()
        except TimeoutError:
            return SamplerError("timeout", f"{server.base_url} did not answer in {_READY_TIMEOUT_S:g} s")
        except openai.OpenAIError as error:
            return named_failure(error, server.base_url)
        served = [model.id for model in listed.data or ()]
        if served and self._config.model not in served:
            detail = f"sampler.model: {self._config.model!r} is not among {served} of {server.base_url}"
            return SamplerError("bad_response", detail)
        return None


def _extra_body(
    settings: SamplingSettings, pattern: str | None, json_schema: Mapping[str, JsonValue] | None
) -> dict[str, Any]:
    """The keys of a request that a server may refuse."""
    extra: dict[str, Any] = {_TOKEN_IDS_KEY: True}
    if settings.top_k is not None:
        extra[_TOP_K_KEY] = settings.top_k
    if pattern is not None:
        extra[_PATTERN_KEY] = {"regex": pattern}
    if json_schema is not None:
        named = {"name": "answer", "strict": True, "schema": dict(json_schema)}
        extra[_SCHEMA_KEY] = {"type": "json_schema", "json_schema": named}
    return extra
