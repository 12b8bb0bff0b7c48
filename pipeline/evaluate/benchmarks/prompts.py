"""What is asked of a model, and what is read out of its reply: the answer, or a judge's JSON.

The prompts are Jinja templates, a YAML file a protocol (`pipeline/evaluate/benchmarks/prompts/`), with chats
by name, each a `system` and a `user` template: the Solver's by style, and the judge's. They are rendered like
the roles' prompts (reward/roles/prompts.py): in a sandbox, an unknown variable is an error, and what reads
like a special token is broken up, whoever wrote it.

Replies are untrusted: an answer is cut out by fixed marks only, and a judge's reply is JSON of its schema or
no judgement.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field, ValidationError

from pipeline.evaluate.majority import Judgement
from reward.offline.rows import read_records
from reward.roles.prompts import RolePrompt
from reward.samplers import Message
from reward.types import Document, Record

_FOLDER = Path(__file__).parent
_SHOTS = _FOLDER / "shots" / "2wikimultihopqa_train.jsonl"
NUM_SHOTS = 10
ANSWER = "answer"
REASONED_ANSWER = "reasoned answer"  # of the CoT style: notes come first, and are no part of the answer
_END_OF_THOUGHT = "</think>"
_ANSWER_LINE = re.compile(r"^[ \t]*\*{0,2}answer(?::\*{0,2}|\*{2}:)", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


@dataclass(frozen=True)
class PromptTexts:
    """The chats of one protocol."""

    chats: Mapping[str, RolePrompt]
    digest: str  # SHA-256 (hex) of the templates; comments and layout of the file do not change it

    def render(self, name: str, **values: object) -> tuple[Message, ...]:
        """The messages of one chat; an empty system text gives no system message."""
        messages = self.chats[name].render(**values)
        return tuple(Message(role=one["role"], content=one["content"].strip()) for one in messages)


class Shot(Record):
    """A solved example: a question with the paragraphs that it needs."""

    id: str = Field(description="Of the training row.")
    question: str
    answer: str
    documents: tuple[Document, ...]


@cache
def load_texts(name: str) -> PromptTexts:
    """Loads the shipped texts of a protocol, such as `multihop_qa`."""
    source = yaml.safe_load((_FOLDER / "prompts" / f"{name}.yaml").read_text(encoding="utf-8"))
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.clear()
    chats = {
        chat: RolePrompt(**{part: environment.from_string(text) for part, text in texts.items()})
        for chat, texts in source.items()
    }
    return PromptTexts(chats, hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest())


@cache
def load_shots() -> tuple[Shot, ...]:
    """The shipped examples, more than are shown, so that some can be left out."""
    return tuple(shot for _, shot in read_records(_SHOTS, Shot))


def pick_shots(question: str, documents: Sequence[Document]) -> tuple[Shot, ...]:
    """The first ten examples that share neither the question nor a document's title or text with an item."""
    known = {_folded(question), *(_folded(text) for one in documents for text in (one.title, one.text))}
    shots = [
        shot
        for shot in load_shots()
        if _folded(shot.question) not in known
        and not any({_folded(one.title), _folded(one.text)} & known for one in shot.documents)
    ]
    assert len(shots) >= NUM_SHOTS, f"{len(shots)} shots are left; ship more of them"
    return tuple(shots[:NUM_SHOTS])


def shots_digest() -> str:
    """SHA-256 of the shipped examples."""
    return hashlib.sha256(_SHOTS.read_bytes()).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


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
    """A judge's reply, without thought and code fence, as a verdict; None when it is anything else."""
    text = reply.rpartition(_END_OF_THOUGHT)[2].strip()
    fenced = _FENCE.match(text)
    try:
        return model.model_validate_json(fenced[1] if fenced else text)
    except ValidationError:
        return None
