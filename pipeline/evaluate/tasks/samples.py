"""A benchmark's items as Inspect's samples, and the solvers by which they are answered.

The item is in the sample's metadata, so that a log can be scored again (`inspect score`) without the
benchmark's files. Neither references nor people's labels are ever in what the model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatCompletionChoice, ChatMessage, ChatMessageUser, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter

from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.prompts import END_OF_THOUGHT, START_OF_THOUGHT
from pipeline.evaluate.plan import GENERATION
from reward.samplers import Message, SamplerError

NO_RESPONSE, UNFINISHED = "no_response", "unfinished_thought"
_NO_ANSWER = ("content_filter", "model_length")  # the text is then the provider's or cut short, not an answer
_CHAT = TypeAdapter(list[ChatMessage])
_TAKES_TOP_K = ("vllm", "sglang")  # as a field of the body; Inspect itself sends none to such servers
_F = TypeVar("_F", bound=Callable[..., object])


def of_march(function: _F) -> _F:
    """Keeps a name such as `march/ragtruth` in Inspect's registry; comes below Inspect's decorator.

    Inspect puts the top-level package of a function's module before its name (`pipeline/`), but only in a
    wheel and not in an editable install. A function of a module that does not exist keeps its name.
    """
    function.__module__ = "march"
    return function


@dataclass(frozen=True)
class Generation:
    text: str
    failure: str = ""  # why there is no answer: then the text is none, and is never scored


@dataclass(frozen=True)
class Asked:
    """What a sample is of."""

    benchmark: Benchmark
    item: Item
    prompts: tuple[Prompt, ...]

    def answers(self, output: ModelOutput) -> dict[str, Generation]:
        """What the model wrote, by prompt: the output has a choice for each."""
        return {prompt.name: generation_of(output, place) for place, prompt in enumerate(self.prompts)}


def make_sample(benchmark: Benchmark, item: Item, style: PromptStyle) -> Sample:
    """An item's sample; its input is the chat of the first prompt."""
    about = {"benchmark": benchmark.name, "slice": item.slice, "cluster": item.cluster, "style": style.value}
    return Sample(
        id=item.id,
        input=chat(benchmark.prompts(item, style)[0].messages) or [ChatMessageUser(content=item.query.query)],
        target=list(item.references),
        metadata={**about, "item": item.model_dump(mode="json")},
    )


def asked_of(state: TaskState | EvalSample) -> Asked:
    benchmark = make_benchmark(state.metadata["benchmark"])
    item = Item.model_validate(state.metadata["item"])
    return Asked(benchmark, item, benchmark.prompts(item, PromptStyle(state.metadata["style"])))


def chat(messages: Iterable[Message]) -> list[ChatMessage]:
    return _CHAT.validate_python(list(messages))


def generation_of(output: ModelOutput, place: int = 0) -> Generation:
    """A choice's text; or why it is no answer, as with a prompt that does not fit the model."""
    if place >= len(output.choices):
        return Generation("", NO_RESPONSE)
    choice = output.choices[place]
    if output.error or choice.stop_reason in _NO_ANSWER:
        return Generation("", choice.stop_reason)
    text = choice.message.text
    if text.lstrip().startswith(START_OF_THOUGHT) and END_OF_THOUGHT not in text:
        return Generation("", UNFINISHED)  # else a thought would be judged
    return Generation(text)


@solver(name="march/answers")
@of_march
def answers(seed: int | None = 0) -> Solver:
    """Asks the model every prompt of an item; the first epoch has this seed, each further one the next."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        body = {"top_k": GENERATION.top_k} if state.model.api in _TAKES_TOP_K else None
        shown, choices = list[ChatMessage](), list[ChatCompletionChoice]()
        for prompt in asked_of(state).prompts:
            if prompt.given is not None:  # only the judge is measured
                state.output = ModelOutput.from_content("given", prompt.given)
                state.messages = [ChatMessageUser(content=state.input_text), state.output.message]
            else:
                state.messages = chat(prompt.messages)
                epoch_seed = None if seed is None else seed + state.epoch - 1
                state = await generate(state, seed=epoch_seed, extra_body=body)
            shown += state.messages
            choices += state.output.choices
        state.messages, state.output.choices = shown, choices
        return state

    return solve


def answered(log: EvalLog) -> Solver:
    """Takes the answers of a log, by item and epoch: they are judged apart from the model."""
    samples = {(str(one.id), one.epoch): one for one in log.samples or () if one.error is None}

    @solver(name="march/answered")  # here, since a solver's arguments are written to the log
    @of_march
    def taken() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            found = samples.get((str(state.sample_id), state.epoch))
            if found is None:
                raise SamplerError(NO_RESPONSE, "the model has given no answer")
            state.messages, state.output = found.messages, found.output
            return state

        return solve

    return taken()
