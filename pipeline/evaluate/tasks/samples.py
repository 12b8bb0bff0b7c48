"""A benchmark's items as Inspect's samples, and back.

The item is in the sample's metadata, so that a log can be scored again (`inspect score`) without the
benchmark's files. Neither references nor people's labels are ever in what the model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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

NO_RESPONSE = "no_response"
_NO_ANSWER = ("content_filter", "model_length")  # the text is then the provider's or cut short, not an answer
_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


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


def make_sample(benchmark: Benchmark, item: Item, style: PromptStyle) -> Sample:
    """An item's sample; its input is the chat of the first prompt."""
    asked = Asked(benchmark, item, benchmark.prompts(item, style))
    return Sample(
        id=item.id,
        input=chat(asked.prompts[0].messages) or [ChatMessageUser(content=item.query.query)],
        target=list(item.references),
        metadata={**asked.about, "style": style.value, "item": item.model_dump(mode="json")},
    )


def asked_of(state: TaskState | EvalSample) -> Asked:
    """What a sample is of, by its metadata."""
    benchmark = make_benchmark(state.metadata["benchmark"])
    item = Item.model_validate(state.metadata["item"])
    return Asked(benchmark, item, benchmark.prompts(item, PromptStyle(state.metadata["style"])))


def chat(messages: Iterable[Message]) -> list[ChatMessage]:
    """A chat as Inspect has it."""
    return [_MESSAGES[one["role"]](content=one["content"]) for one in messages]


def generations_of(state: TaskState | EvalSample, prompts: Sequence[Prompt]) -> dict[str, Generation]:
    """What the model wrote, by prompt: the output has a choice for each."""
    return {prompt.name: generation_of(state.output, place) for place, prompt in enumerate(prompts)}


def generation_of(output: ModelOutput, place: int = 0) -> Generation:
    """A choice's text; or why it is no answer, as with a prompt that does not fit the model."""
    if place >= len(output.choices):
        return Generation("", NO_RESPONSE)
    choice = output.choices[place]
    if output.error or choice.stop_reason in _NO_ANSWER:
        return Generation("", choice.stop_reason)
    return Generation(choice.message.text, is_cut=choice.stop_reason == "max_tokens")
