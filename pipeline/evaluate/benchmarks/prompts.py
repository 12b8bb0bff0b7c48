"""The benchmarks' prompt texts: Jinja templates from YAML files, one file a protocol, rendered from records.

A file (`pipeline/evaluate/benchmarks/prompts/`) holds chats by name, each with a `system` and a `user`
template: the Solver's by style, and the judge's. They are rendered like the roles' prompts
(reward/roles/prompts.py): in a sandbox, an unknown variable is an error, and what reads like a special
token is broken up, whoever wrote it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field

from reward.offline.rows import read_records
from reward.roles.prompts import RolePrompt
from reward.samplers import Message
from reward.types import Document, Record

_FOLDER = Path(__file__).parent
_SHOTS = _FOLDER / "shots" / "2wikimultihopqa_train.jsonl"
NUM_SHOTS = 10


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
