"""The model under test answers: each prompt of an item once an epoch, each epoch with another seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inspect_ai.log import EvalSample
from inspect_ai.model import ChatCompletionChoice, ChatMessage, ChatMessageUser, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from pipeline.evaluate.sampling import GENERATION
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import asked_of, chat
from reward.samplers import SamplerError

_TAKES_TOP_K = ("vllm", "sglang")  # as a field of the body; Inspect itself sends none to such servers


@solver(name="march/answers")
@of_march
def answers(seed: int | None = 0) -> Solver:
    """Asks every prompt of an item.

    Args:
        seed: Of the first epoch; each further one has the next. None: of none.
    """

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


@dataclass(frozen=True)
class Answered:
    """The samples of an earlier log in which the model answered, by item and epoch."""

    samples: Mapping[tuple[str, int], EvalSample]
    name: str = "the log of the answers"  # what Inspect's log says of this argument


@solver(name="march/answered")
@of_march
def answered(log: Answered) -> Solver:
    """Takes the answers of an earlier log: they are judged apart from the model that gave them."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        found = log.samples.get((str(state.sample_id), state.epoch))
        if found is None:
            raise SamplerError("no_response", "the model has given no answer")
        state.messages, state.output = found.messages, found.output
        return state

    return solve
