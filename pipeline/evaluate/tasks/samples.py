"""A benchmark's items as Inspect's samples, and back.

The item stands in the sample's metadata, so that a log can be scored again (`inspect score`) without the
benchmark's files. Neither references nor people's labels are ever in what the model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ModelOutput,
)
from inspect_ai.solver import TaskState

from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from reward.samplers import Message

_GENERATIONS = "generations"  # in the sample's store, where an item has several prompts
NO_RESPONSE = "no_response"
_NO_ANSWER = ("content_filter", "model_length")  # the text is then the provider's or cut short, not an answer


@dataclass(frozen=True)
class Asked:
    """What a sample is of."""

    benchmark: Benchmark
    item: Item
    prompts: tuple[Prompt, ...]

    @property
    def about(self) -> dict[str, str]:
        """What every score says of its item, for figures by slice and by document."""
        return {"benchmark": self.benchmark.card.name, "slice": self.item.slice, "cluster": self.item.cluster}


@dataclass(frozen=True)
class Generation:
    """What the model wrote to one prompt."""

    text: str
    failure: str = ""  # why there is no answer: then the text is none, and is never scored
    is_cut: bool = False  # at the most tokens


def make_samples(benchmark: Benchmark, items: Iterable[Item], style: PromptStyle) -> list[Sample]:
    """One sample an item; its input is the chat of the first prompt."""
    return [_sample(benchmark, item, style) for item in items]


def asked_of(state: TaskState | EvalSample) -> Asked:
    """What a sample is of, by its metadata."""
    benchmark = make_benchmark(state.metadata["benchmark"])
    item = Item.model_validate(state.metadata["item"])
    return Asked(benchmark, item, benchmark.prompts(item, PromptStyle(state.metadata["style"])))


def chat(messages: Iterable[Message]) -> list[ChatMessage]:
    """A chat as Inspect has it."""
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return [kinds[one["role"]](content=one["content"]) for one in messages]


def keep_output(state: TaskState, prompt: Prompt) -> None:
    """Keeps the output to one of several prompts."""
    kept: dict[str, dict[str, Any]] = state.store.get(_GENERATIONS, {})
    state.store.set(_GENERATIONS, {**kept, prompt.name: asdict(generation_of(state.output))})


def generations_of(state: TaskState | EvalSample, prompts: Sequence[Prompt]) -> dict[str, Generation]:
    """What the model wrote, by prompt."""
    if len(prompts) == 1:
        return {prompts[0].name: generation_of(state.output)}
    kept: dict[str, dict[str, Any]] = state.store.get(_GENERATIONS, {})
    nothing = {"text": "", "failure": NO_RESPONSE}
    return {prompt.name: Generation(**kept.get(prompt.name, nothing)) for prompt in prompts}


def generation_of(output: ModelOutput) -> Generation:
    """An output's text; or why it is no answer, as with a prompt that does not fit the model."""
    if output.empty:
        return Generation("", NO_RESPONSE)
    if output.error or output.stop_reason in _NO_ANSWER:
        return Generation("", output.stop_reason)
    return Generation(output.completion, is_cut=output.stop_reason == "max_tokens")


def _sample(benchmark: Benchmark, item: Item, style: PromptStyle) -> Sample:
    first = benchmark.prompts(item, style)[0]
    asked = chat(first.messages) or [ChatMessageUser(content=item.query.query)]
    about = Asked(benchmark, item, ()).about
    return Sample(
        id=item.id,
        input=asked,
        target=list(item.references),
        metadata={**about, "style": style.value, "item": item.model_dump(mode="json")},
    )
