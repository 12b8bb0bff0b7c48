"""Between an OpenAI-compatible server's answers and records: completions read strictly, failures named."""

from __future__ import annotations

import re
import uuid

import openai
from openai.types.chat import ChatCompletion
from openai.types.chat.chat_completion import Choice

from reward.samplers import SamplerError
from reward.types import Sample, SampleGroup, TokenUse

REQUEST_ID_HEADER = "X-Request-Id"  # vLLM names the completion after it: chatcmpl-march-...
_REQUEST_ID = re.compile(r"march-[0-9a-f]{32}")
_TOO_LONG_MARKS = ("context length", "context_length", "context window", "too long", "max_model_len")


def new_request_id() -> str:
    """Names one request, so that another's answer is recognised."""
    return f"march-{uuid.uuid4().hex}"


def named_failure(error: openai.OpenAIError, base_url: str) -> SamplerError:
    """Gives a failure of the `openai` package its reason."""
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return SamplerError(
            "connection",
            f"{base_url} cannot be reached: {str(cause) or type(cause).__name__}; start it or fix base_urls",
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


def read_completion(completion: ChatCompletion, *, num_asked: int, n: int, request_id: str) -> SampleGroup:
    """A chat completion as a record of `n` samples; the one of a greedy request is used for all.

    Args:
        completion: What the `openai` package made of the answer.
        num_asked: Completions asked for.
        n: Samples wanted, a multiple of `num_asked`.
        request_id: As it was sent; an answer that names another one of ours is not this request's.

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
    num_cached = getattr(completion.usage.prompt_tokens_details, "cached_tokens", None)
    is_known = type(num_cached) is int and 0 <= num_cached <= num_prompt
    return TokenUse(
        num_prompt=num_prompt, num_completion=num_completion, num_cached=num_cached if is_known else None
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
