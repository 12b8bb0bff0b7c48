"""Completions from OpenAI-compatible servers, such as `vllm serve`: one, or several of the same model.

For audits, evaluations, and training with a frozen verifier. The least busy server is asked, and the others
when it fails (`pool.py`). vLLM is asked for the exact token ids (`return_token_ids`) and can be bound to
a pattern (`structured_outputs`), many a server to a JSON schema (`response_format`); one that refuses such a
key is warned about once and asked without it. A server that does not know them and does not mind still serves
audits, only without trajectories. Each request bears an id of its own, and vLLM's answer names it: an answer
that names another one is an error. A server is trusted with prompts and no further: it cannot send us on to
another address, nor fill the memory or a verdict with what it answers.
"""

import asyncio
import base64
import logging
import os
import re
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast
from urllib.parse import quote, urljoin

import httpx
import openai
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice
from pydantic import JsonValue

from reward import telemetry
from reward.config import OpenAISamplerConfig, SamplingSettings, bare_url
from reward.samplers import Message, SamplerError
from reward.samplers.pool import Engine, Pool, is_of_engine
from reward.types import Sample, SampleGroup, TokenUse

logger = logging.getLogger(__name__)

_READY_TIMEOUT_S = 5.0
# Connecting takes milliseconds or fails; all else is bounded by the sampler, over all servers together.
_TIMEOUT = openai.Timeout(None, connect=5.0)
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
_REQUEST_ID_HEADER = "X-Request-Id"  # vLLM names the completion after it: chatcmpl-march-...
_REQUEST_ID = re.compile(r"march-[0-9a-f]{32}")
_TOO_LONG_MARKS = ("context length", "context_length", "context window", "too long", "max_model_len")

_MAX_ANSWER_BYTES = 32 * 1024**2  # 15 completions of 131,072 tokens with their ids have some 25
_MOST_SAID_CHARS = 500  # of a server's own words in a failure

_T = TypeVar("_T")


class _Client(openai.DefaultAsyncHttpxClient):
    """Follows no redirects, and reads no more of an answer than it may have, nor a compressed one, which may
    swell.
    """

    def __init__(self) -> None:
        super().__init__(follow_redirects=False, headers={"Accept-Encoding": "identity"})

    async def send(self, request: Any, **options: Any) -> Any:
        answer, read = await super().send(request, **{**options, "stream": True}), bytearray()
        async with aclosing(answer):
            if (coding := answer.headers.get("content-encoding", "identity")) != "identity":
                raise openai.OpenAIError(f"an answer came as {coding!r:.60}, though unasked")
            async for part in answer.aiter_raw():
                read += part
                if len(read) > _MAX_ANSWER_BYTES:
                    raise openai.OpenAIError(f"an answer has over {_MAX_ANSWER_BYTES} bytes")
        return type(answer)(answer.status_code, headers=answer.headers, content=bytes(read), request=request)


class Server:
    """A client of one server. Credentials in its address are sent as such, and are no part of its name."""

    def __init__(self, base_url: str, api_key: str) -> None:
        url = httpx.URL(base_url)
        self.name = bare_url(base_url)
        basic = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        self.client = openai.AsyncOpenAI(
            base_url=self.name,
            api_key=api_key,
            timeout=_TIMEOUT,
            max_retries=0,
            default_query=dict(url.params),
            default_headers={"Authorization": f"Basic {basic}"} if url.userinfo else None,
            http_client=_Client(),
        )
        values = {api_key, url.password, basic, *url.params.values()}
        self.secrets = frozenset(one for one in values | {quote(v, safe="") for v in values} if len(one) > 4)
        self.refused_keys: set[str] = set()  # of a request's body
        self.counts_tokens = True  # until it says that it has no /tokenize
        self.has_counted = False


class OpenAISampler:
    """Samples one model of one or several servers."""

    def __init__(self, config: OpenAISamplerConfig) -> None:
        self._config = config
        api_key = os.environ.get(config.api_key_env, "").strip() or "none"
        servers = [Server(url, api_key) for url in config.base_urls]
        self._secrets = frozenset().union(*(server.secrets for server in servers))
        self._pool: Pool[Server] = Pool(cool_down_s=config.cool_down_s, named=self._named)
        self._pool.hold(Engine(one.name, one, telemetry.address_of(one.name)) for one in servers)

    @property
    def model(self) -> str:
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
        """
        num_asked = 1 if settings.temperature == 0 else n
        request: dict[str, Any] = {
            "model": self._config.model,
            "messages": list(messages),
            "n": num_asked,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "seed": openai.omit if settings.seed is None else settings.seed,
        }
        extra = _extra_body(settings, pattern, json_schema)

        async def send(engine: Engine[Server]) -> SampleGroup:
            request_id = f"march-{uuid.uuid4().hex}"  # so that another's answer is recognised
            completion = await _complete(engine.handle, request, extra, request_id)
            return _read_completion(completion, num_asked=num_asked, n=n, request_id=request_id)

        return await self._ask(send)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt by vLLM's /tokenize, or an upper bound for a server that has none.

        The bound is the bytes of the messages in UTF-8 and 16 tokens a message; English has a quarter of it.
        """

        async def send(engine: Engine[Server]) -> int:
            return await self._count(engine.handle, messages)

        return await self._ask(send)

    async def ready(self) -> None:
        """Returns when a server answers and every one that does serves the model.

        Raises:
            SamplerError: no server answers, or one of them serves other models.
        """
        failures = await asyncio.gather(*(self._not_ready(one.handle) for one in self._pool.engines))
        found = [failure for failure in failures if failure is not None]
        for failure in found:
            if not is_of_engine(failure):
                raise failure
        if len(found) == len(failures):
            raise SamplerError(found[-1].reason, "; ".join(failure.detail for failure in found))

    async def close(self) -> None:
        for engine in self._pool.engines:
            await engine.handle.client.close()

    async def _ask(self, send: Callable[[Engine[Server]], Awaitable[_T]]) -> _T:
        config = self._config
        return await self._pool.ask(send, timeout_s=config.timeout_s, max_retries=config.max_retries)

    def _named(self, error: Exception, name: str) -> SamplerError | None:
        """The failure that an error of a server is; what it quotes of our credentials is left out."""
        if isinstance(error, openai.OpenAIError):
            return _named_failure(error, name, self._secrets)
        if isinstance(error, ValueError):  # what calls itself JSON and is none reaches us as json's error
            return SamplerError("bad_response", f"{name}: {_shown(str(error), self._secrets)}")
        return None

    async def _count(self, server: Server, messages: Sequence[Message]) -> int:
        if server.counts_tokens:
            body = {"model": self._config.model, "messages": list(messages)}
            # Beside the version, where vLLM keeps what OpenAI's interface lacks.
            url = urljoin(f"{server.name}/", "../tokenize")
            try:
                answer = await server.client.post(url, cast_to=object, body=body)
            except openai.APIStatusError as error:
                is_passing = error.status_code != 501 and is_of_engine(_named_failure(error, server.name))
                if is_passing or server.has_counted:  # then it is no matter of what the server can do
                    raise
                answer = None
            num_tokens = answer.get("count") if isinstance(answer, dict) else None
            if type(num_tokens) is int and num_tokens > 0:
                server.has_counted = True
                return num_tokens
            logger.info("%s has no /tokenize: prompts are measured in bytes", server.name)
            server.counts_tokens = False
        return sum(len(message["content"].encode()) + _TOKENS_AROUND_MESSAGE for message in messages)

    async def _not_ready(self, server: Server) -> SamplerError | None:
        """Why a server cannot be used now; None when it can."""
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                listed = await server.client.models.list()
        except TimeoutError:
            return SamplerError("timeout", f"{server.name} did not answer in {_READY_TIMEOUT_S:g} s")
        except (openai.OpenAIError, ValueError) as error:
            return self._named(error, server.name)
        served = [model.id for model in listed.data or ()]
        if served and self._config.model not in served:
            shown = _shown(str(served))
            detail = f"sampler.model: {self._config.model!r} is not among {shown} of {server.name}"
            return SamplerError("bad_response", detail)
        return None


async def _complete(
    server: Server, request: Mapping[str, Any], wanted: Mapping[str, Any], request_id: str
) -> ChatCompletion:
    """A completion, without those of the wanted keys that the server refuses."""
    extra = {key: value for key, value in wanted.items() if key not in server.refused_keys}
    headers = telemetry.inject({_REQUEST_ID_HEADER: request_id})  # vLLM continues the trace
    try:
        completion = await server.client.chat.completions.create(
            **request, extra_body=extra, extra_headers=headers
        )
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        refused = _refused_keys(error, extra)
        if not refused:
            raise
        left = {key: value for key, value in extra.items() if key not in refused}
        completion = await _complete(server, request, left, request_id)
        # Only now are the keys known to be the cause: an error may quote a text that names one.
        for key in refused - server.refused_keys:
            logger.warning("%s refuses %s: %s", server.name, key, _CONSEQUENCES[key])
        server.refused_keys |= refused
    return cast(ChatCompletion, completion)


def _refused_keys(error: Exception, sent: Collection[str]) -> set[str]:
    """The keys of a request that a refusal names, as whole words ("top_k" is no part of "top_k_returned")."""
    said = str(error)
    names = {key: "|".join(map(re.escape, (key, *_OTHER_NAMES.get(key, ())))) for key in sent}
    return {key for key, either in names.items() if re.search(rf"(?<!\w)(?:{either})(?!\w)", said)}


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


def _shown(said: str, secrets: Collection[str] = ()) -> str:
    """A server's words, without our credentials and then cut, so that no half of one is left."""
    for secret in sorted(secrets, key=len, reverse=True):
        said = said.replace(secret, "***")
    return said if len(said) <= _MOST_SAID_CHARS else f"{said[:_MOST_SAID_CHARS]}..."


def _named_failure(error: openai.OpenAIError, base_url: str, secrets: Collection[str] = ()) -> SamplerError:
    """Gives a failure of the `openai` package its reason."""
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        said = _shown(str(cause) or type(cause).__name__, secrets)
        return SamplerError("connection", f"{base_url} cannot be reached: {said}; start it, or fix it")
    if not isinstance(error, openai.APIStatusError):
        return SamplerError("bad_response", f"{base_url}: {_shown(str(error), secrets)}")
    status, said = error.status_code, error.message
    detail = f"{base_url} answered {status}: {_shown(said, secrets)}"
    if status in (400, 413, 422) and any(mark in said.lower() for mark in _TOO_LONG_MARKS):
        return SamplerError("prompt_too_long", detail)
    is_engine = status in (408, 409, 429) or status >= 500
    return SamplerError("engine" if is_engine else "bad_response", detail)


def _read_completion(completion: ChatCompletion, *, num_asked: int, n: int, request_id: str) -> SampleGroup:
    """A chat completion as a record of `n` samples; the one of a greedy request is used for all.

    Raises:
        SamplerError: `bad_response` when anything asked for is missing, or another request's answer came.
    """
    if not isinstance(completion, ChatCompletion):  # the package hands on a page that is not JSON as its text
        raise SamplerError("bad_response", f"not a chat completion: {str(completion)[:80]!r}")
    named = _REQUEST_ID.search(str(completion.id))
    if named is not None and named.group() != request_id:
        raise SamplerError("bad_response", "the answer to another request came back")
    choices = completion.choices or []
    if len(choices) != num_asked:
        raise SamplerError("bad_response", f"{len(choices)} of {num_asked} completions came back")
    samples = tuple(map(_sample, choices))
    return SampleGroup(
        samples=samples * (n // num_asked),
        prompt_token_ids=_token_ids(getattr(completion, "prompt_token_ids", None)),
        use=_use(completion),
    )


def _use(completion: ChatCompletion) -> TokenUse | None:
    """The tokens that a server reports; vLLM says what was cached with --enable-prompt-tokens-details."""
    num_prompt = getattr(completion.usage, "prompt_tokens", None)
    num_completion = getattr(completion.usage, "completion_tokens", None)
    if type(num_prompt) is not int or type(num_completion) is not int or min(num_prompt, num_completion) < 0:
        return None
    details = getattr(completion.usage, "prompt_tokens_details", None)
    num_cached = getattr(details, "cached_tokens", None)
    is_known = type(num_cached) is int and 0 <= num_cached <= num_prompt
    return TokenUse(
        num_prompt=num_prompt, num_completion=num_completion, num_cached=num_cached if is_known else None
    )


def _sample(choice: Choice) -> Sample:
    text, finish_reason = choice.message.content, choice.finish_reason
    if text is None:
        raise SamplerError(
            "bad_response", f"a completion has no content (finish_reason {finish_reason!r:.60})"
        )
    if finish_reason not in ("stop", "length"):
        raise SamplerError("bad_response", f"a completion ended with finish_reason {finish_reason!r:.60}")
    token_ids = _token_ids(getattr(choice, "token_ids", None))
    return Sample(text=text, finish_reason=finish_reason, token_ids=token_ids)


def _token_ids(value: object) -> tuple[int, ...] | None:
    """vLLM's extra key, if it is there and is what it should be: a non-empty list of ids."""
    if isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    return None
