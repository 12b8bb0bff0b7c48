"""What is read out of model output: the answer that follows reasoning, and a judge's JSON.

Model output is untrusted. An answer is cut out by fixed marks only; a judge's reply is JSON of its schema
or it is no judgement.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TypeVar

from pydantic import ValidationError

from pipeline.evaluate.majority import Judgement
from reward.types import Record

ANSWER = "answer"
REASONED_ANSWER = "reasoned answer"  # of the CoT style: notes come first, and are no part of the answer
_END_OF_THOUGHT = "</think>"
_ANSWER_LINE = re.compile(r"^[ \t]*\*{0,2}answer(?::\*{0,2}|\*{2}:)", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


class JudgeVerdict(Record, ABC):
    """What a judge's reply must be; its JSON schema is sent with the question."""

    @property
    @abstractmethod
    def judgement(self) -> Judgement:
        """What it comes to."""


_V = TypeVar("_V", bound=JudgeVerdict)


def judged_text(prompt: str, generation: str) -> str:
    """The part of a generation that is an answer: what is judged, and audited.

    Args:
        prompt: The prompt's name. After `REASONED_ANSWER` the answer begins at the last line that starts
            with "Answer:"; without one it is all of the generation: leaving the mark out gains nothing.
        generation: What the model wrote; thought that ends with "</think>" is cut off, as FaithJudge does.
    """
    text = generation.rpartition(_END_OF_THOUGHT)[2].strip()
    return (last_answer(text) or text) if prompt == REASONED_ANSWER else text


def last_answer(text: str) -> str | None:
    """What follows the last line that starts with "Answer:"; None without one, or with nothing behind it."""
    places = [match.end() for match in _ANSWER_LINE.finditer(text)]
    return (text[places[-1] :].strip() or None) if places else None


def read_json(reply: str, model: type[_V]) -> _V | None:
    """A judge's reply as a verdict; None when it is anything else, or has other keys."""
    try:
        return model.model_validate_json(without_fence(reply))
    except ValidationError:
        return None


def without_fence(reply: str) -> str:
    """A reply without thought before "</think>" and without a code fence around the rest."""
    text = reply.rpartition(_END_OF_THOUGHT)[2].strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text
