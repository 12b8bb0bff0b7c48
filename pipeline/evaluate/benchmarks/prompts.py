"""What is asked of a model, and which part of its reply is the answer.

The prompts are Jinja templates, a YAML file a protocol (`pipeline/evaluate/benchmarks/prompts/`), with chats
by name, each a `system` and a `user` template: the Solver's by style, and the judge's. They are rendered like
the roles' prompts (reward/roles/prompts.py): in a sandbox, an unknown variable is an error, and what reads
like a special token is broken up, whoever wrote it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from pipeline.data.plain import PlainRow
from reward.offline.rows import read_records
from reward.provenance import json_sha256
from reward.roles.prompts import RolePrompt, prompt_environment
from reward.samplers import Message
from reward.types import Document

_FOLDER = Path(__file__).parent
_SHOTS = _FOLDER / "shots" / "2wikimultihopqa_train.jsonl"  # more than are shown: some may be left out
NUM_SHOTS, TEN_SHOT = 10, "10-shot"
ANSWER = "answer"
REASONED_ANSWER = "reasoned answer"  # of the CoT style: notes come first, and are no part of the answer
START_OF_THOUGHT, END_OF_THOUGHT = "<think>", "</think>"
_ANSWER_LINE = re.compile(r"^[ \t]*\*{0,2}answer(?::\*{0,2}|\*{2}:)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class PromptTexts:
    chats: Mapping[str, RolePrompt]
    digest: str  # SHA-256 (hex) of the templates and shots; comments and layout of the file do not change it

    def render(self, name: str, **values: object) -> tuple[Message, ...]:
        """The messages of one chat; an empty system text gives no system message."""
        messages = self.chats[name].render(**values)
        return tuple(Message(role=one["role"], content=one["content"].strip()) for one in messages)


@cache
def load_texts(name: str) -> PromptTexts:
    """Loads the shipped texts of a protocol, such as `multihop_qa`."""
    source = yaml.safe_load((_FOLDER / "prompts" / f"{name}.yaml").read_text(encoding="utf-8"))
    environment = prompt_environment(trim_blocks=True, lstrip_blocks=True)
    chats = {
        chat: RolePrompt(**{part: environment.from_string(text) for part, text in texts.items()})
        for chat, texts in source.items()
    }
    digest = json_sha256(source)
    if TEN_SHOT in chats:
        shots = hashlib.sha256(_SHOTS.read_bytes()).hexdigest()
        digest = hashlib.sha256(f"{digest}{shots}".encode()).hexdigest()
    return PromptTexts(chats, digest)


@cache
def load_shots() -> tuple[PlainRow, ...]:
    """The shipped examples, each with the paragraphs that it needs."""
    return tuple(shot for _, shot in read_records(_SHOTS, PlainRow))


def pick_shots(question: str, documents: Sequence[Document]) -> tuple[PlainRow, ...]:
    """The first ten examples that share neither the question nor a document's title or text with an item."""

    def texts(question: str, documents: Sequence[Document]) -> set[str]:
        parts = (part for one in documents for part in (one.title, one.text))
        return {" ".join(text.casefold().split()) for text in (question, *parts)}

    known = texts(question, documents)
    shots = [shot for shot in load_shots() if known.isdisjoint(texts(shot.question, shot.to_documents()))]
    assert len(shots) >= NUM_SHOTS, f"{len(shots)} shots are left; ship more of them"
    return tuple(shots[:NUM_SHOTS])


def judged_text(prompt: str, generation: str) -> str:
    """The part of a generation that is an answer: what is judged, and audited.

    Args:
        prompt: The prompt's name. After `REASONED_ANSWER` the answer begins at the last line that starts
            with "Answer:"; without one it is all of the generation: leaving the mark out gains nothing.
        generation: What the model wrote; thought that ends with "</think>" is cut off, as FaithJudge does.
    """
    text = generation.rpartition(END_OF_THOUGHT)[2].strip()
    return (last_answer(text) or text) if prompt == REASONED_ANSWER else text


def last_answer(text: str) -> str | None:
    """What follows the last line that starts with "Answer:"; None without one, or with nothing behind it."""
    places = [match.end() for match in _ANSWER_LINE.finditer(text)]
    return (text[places[-1] :].strip() or None) if places else None
