"""Between records and token ids: chat messages to a prompt's ids, vLLM's `RequestOutput` to a `SampleGroup`.

Ids are exact on both sides, because trajectories are trained on: `prompt_token_ids` is what the model saw
and `token_ids` is what it sampled, the end token included. Only the text leaves special tokens out.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from reward.config import SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.special import neutralise, pattern_of
from reward.types import Sample, SampleGroup, TokenUse

MIN_COMPLETION_TOKENS = 16  # a prompt that leaves fewer is refused, not answered with a fragment


def prompt_token_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The ids (P,) of the rendered chat; the template writes its own special tokens, so none are added.

    Those that a message's content spells out are broken up: what a response or a document says opens no turn.
    """
    if pattern := _special_pattern(tokenizer):
        messages = [
            Message(role=one["role"], content=neutralise(one["content"], pattern)) for one in messages
        ]
    text = render_chat(tokenizer, messages)
    return [int(token) for token in tokenizer(text, add_special_tokens=False)["input_ids"]]


def render_chat(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The text before a completion, by the tokenizer's chat template.

    Raises:
        ValueError: the template refuses a message.
    """
    try:
        return str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
    except TemplateError as error:
        roles = ", ".join(message["role"] for message in messages)
        fix = "use prompts whose system texts are empty, or another model"
        raise ValueError(f"model: its chat template refuses the roles {roles} ({error}); {fix}") from error


@functools.lru_cache(maxsize=8)
def _special_pattern(tokenizer: Any) -> re.Pattern[str] | None:
    """Finds the spellings of the tokenizer's special tokens, those added to it as such included."""
    added = (token.content for token in tokenizer.added_tokens_decoder.values() if token.special)
    return pattern_of([*tokenizer.all_special_tokens, *added])


def completion_budget(num_prompt: int, *, max_tokens: int, max_model_len: int) -> int:
    """Most tokens of a completion: as asked, or what the prompt leaves (`finish_reason` is then "length").

    Raises:
        SamplerError: `prompt_too_long` when fewer than `MIN_COMPLETION_TOKENS` are left of those asked for.
    """
    num_left = max_model_len - num_prompt
    if num_left < min(max_tokens, MIN_COMPLETION_TOKENS):
        raise SamplerError(
            "prompt_too_long",
            f"{num_prompt} prompt tokens leave {max(num_left, 0)} of max_model_len {max_model_len}; "
            "shorten the documents or raise max_model_len",
        )
    return min(max_tokens, num_left)


def sampling_params(
    settings: SamplingSettings, *, n: int, max_tokens: int, pattern: str | None = None
) -> Any:
    """One request for n samples; for one at temperature 0, where all are the same and vLLM refuses more.

    With a seed, the samples of one request draw from the seeds that follow it.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    return SamplingParams(
        n=1 if settings.temperature == 0 else n,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k or 0,  # 0: all
        max_tokens=max_tokens,
        seed=settings.seed if settings.temperature else None,  # nothing is drawn at 0
        structured_outputs=None if pattern is None else StructuredOutputsParams(regex=pattern),
        logprobs=0,  # of the sampled token alone
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,  # the streamed kind need not hold all n in its last output
    )


def sample_group(
    output: Any, tokenizer: Any, *, n: int, params: Any, weights_version: int | None
) -> SampleGroup:
    """A `RequestOutput` as a record of n samples; the one of a greedy request is used for all."""
    completions = list(output.outputs) if output is not None else []
    if len(completions) != params.n:
        raise SamplerError("bad_response", f"the engine gave {len(completions)} of {params.n} completions")
    samples = tuple(_sample(completion, tokenizer) for completion in completions)
    return SampleGroup(
        samples=samples * (n // params.n),
        prompt_token_ids=tuple(output.prompt_token_ids),
        weights_version=weights_version,
        use=TokenUse(
            num_prompt=len(output.prompt_token_ids),
            num_completion=sum(len(completion.token_ids) for completion in completions),
            num_cached=output.num_cached_tokens,
        ),
    )


def _sample(completion: Any, tokenizer: Any) -> Sample:
    token_ids = tuple(int(token) for token in completion.token_ids)
    if completion.finish_reason not in ("stop", "length") or not token_ids:
        detail = f"a completion of {len(token_ids)} tokens ended by {completion.finish_reason!r}"
        raise SamplerError("engine", detail)
    # No stop strings are used, so "stop" means that the last token is the end token.
    shown = token_ids[:-1] if completion.finish_reason == "stop" else token_ids
    return Sample(
        text=tokenizer.decode(shown, skip_special_tokens=True),
        finish_reason=completion.finish_reason,
        token_ids=token_ids,
        logprobs=tuple(
            float(at[token].logprob) for token, at in zip(token_ids, completion.logprobs, strict=True)
        ),
    )


def require_tokenizer_files(name: str, *, field: str) -> None:
    """Demands that a folder is one and holds a tokenizer, which takes no library and no time.

    Raises:
        ValueError: it does not; a name of the Hugging Face Hub, OWNER/NAME, is not looked for.
    """
    folder = Path(name)
    if folder.is_dir():
        if not any(file.name.startswith(("tokenizer", "vocab")) for file in folder.iterdir()):
            raise ValueError(
                f"{field}: no tokenizer in {name!r}; save the model's tokenizer beside its weights"
            )
    elif name.startswith((".", "/", "~")) or "/" not in name:
        raise ValueError(
            f"{field}: {name!r} is not a folder; give the folder or a Hugging Face model's name, OWNER/NAME"
        )


def load_tokenizer(name: str, *, field: str) -> Any:
    from transformers import AutoTokenizer

    require_tokenizer_files(name, field=field)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ValueError(f"{field}: no tokenizer in {name!r} ({str(error).splitlines()[0]})") from error
    if not tokenizer.chat_template:
        raise ValueError(
            f"{field}: the tokenizer of {name!r} has no chat template; add chat_template.jinja to it"
        )
    return tokenizer
