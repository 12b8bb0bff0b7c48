"""What a benchmark is: items to ask, a judge's question for each answer, and scores an item.

Everything here is pure: a benchmark reads files and values and knows no network, so that the runner can be
killed and resumed, and the scores be worked out again from what was kept. One item takes this way:

    item -> prompts (one, or both orders of a pair) -> `n` generations of each
         -> each generation judged by itself (a judge's reply, or the generation's own text by rule)
         -> majority of the judgements of a prompt, and means of what rules measure -> scores of the item

A reply that cannot be read is no judgement: it is asked for again, then counted apart, and never guessed.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pipeline.evaluate.benchmarks.prompts import (
    ANSWER,
    REASONED_ANSWER,
    JudgeVerdict,
    judged_text,
    load_texts,
    pick_shots,
    read_json,
    shots_digest,
)
from pipeline.evaluate.majority import Judgement, majority_scores
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.types import RagQuery, Record


class PromptStyle(StrEnum):
    """How the Solver is asked (paper, Table 4)."""

    PLAIN = "plain"
    COT = "cot"  # it reasons first, then answers
    TEN_SHOT = "10-shot"  # ten solved examples stand before the question


class BenchmarkCard(Record):
    """What a report says about a benchmark."""

    name: str = Field(description="As the command line names it, e.g. `ragtruth`.")
    title: str
    url: str
    licence: str = Field(description="SPDX identifier, or what is known of it.")
    primary: str = Field(description="Name of the score that is in tables and averages.")
    higher_is_better: bool = True
    scored_by: str = Field(description="Judge or rule, and whose scorer it equals.")
    styles: tuple[PromptStyle, ...] = Field(description="How it can be asked.")
    prompt_digest: str = Field(description="SHA-256 of all its prompt texts, the judge's too, and its shots.")
    has_answers: bool = Field(
        default=True, description="Generations answer from documents, so that their numbers can be audited."
    )


class LabelledResponse(Record):
    """A given answer, with what people said of it."""

    id: str
    text: str
    consistent: bool = Field(default=True, description="People's label, where there is one.")
    notes: tuple[str, ...] = Field(default=(), description="Spans and remarks of the annotators.")


class Item(Record):
    """One thing to ask. Neither references nor labelled responses are ever shown to the Solver."""

    id: str
    slice: str = Field(description="Task or split; figures are also given per slice.")
    cluster: str = Field(description="What intervals resample: items of one document belong together.")
    query: RagQuery
    instruction: str | None = Field(default=None, description="A system instruction of the item itself.")
    references: tuple[str, ...] = Field(default=(), description="Official answers and their aliases.")
    responses: tuple[LabelledResponse, ...] = Field(default=(), description="Of pairs, and for calibration.")


class Prompt(Record):
    """One chat that the model under test answers, or a response that is given and only judged."""

    name: str = Field(description="What is asked for, or which response of a pair comes first.")
    messages: tuple[Message, ...] = ()
    given: str | None = Field(default=None, description="The one generation, where the model is not asked.")


class JudgeRequest(Record):
    """One question to the judge, and whose JSON its reply must be."""

    messages: tuple[Message, ...]
    verdict: type[JudgeVerdict]


class Benchmark(ABC):
    """One benchmark: a subclass says where items come from and who judges; most ask and count alike."""

    # What its card says; see `BenchmarkCard`.
    name: ClassVar[str]
    title: ClassVar[str]
    url: ClassVar[str]
    licence: ClassVar[str]
    primary: ClassVar[str]
    scored_by: ClassVar[str]
    styles: ClassVar[tuple[PromptStyle, ...]] = (PromptStyle.PLAIN, PromptStyle.COT)
    has_answers: ClassVar[bool] = True

    texts: ClassVar[str] = ""  # its chats, `benchmarks/prompts/TEXTS.yaml`
    prompt_set: ClassVar[str] = ""  # in place of them the Solver's prompt of this set, as in training
    verdict: ClassVar[type[JudgeVerdict] | None] = None  # of a judge; None: a rule reads the generation
    judge_chat: ClassVar[str] = "judge"
    is_given: ClassVar[bool] = False  # answers are given: it measures the judge, and nothing is asked

    @cached_property
    def card(self) -> BenchmarkCard:
        """What a report says about it."""
        digest = load_prompts(self.prompt_set).digest if self.prompt_set else load_texts(self.texts).digest
        if PromptStyle.TEN_SHOT in self.styles:
            digest = hashlib.sha256(f"{digest}{shots_digest()}".encode()).hexdigest()
        about = {key: getattr(self, key) for key in BenchmarkCard.model_fields if hasattr(type(self), key)}
        return BenchmarkCard.model_validate({**about, "prompt_digest": digest})

    @abstractmethod
    def items(self, source: Path) -> Iterator[Item]:
        """Yields the items of the official files, in order.

        Raises:
            FileNotFoundError: a file is not there; says where it is published.
            ValueError: a row is not of the format; names file, line, field and fix.
        """

    def published(self, source: Path, *names: str) -> list[Path]:
        """The given file, or those of a folder, in the order of their published names (as `Path.glob`)."""
        if source.is_file():
            return [source]
        found = [file for name in names for file in sorted(source.glob(name))]
        if not found:
            where = f"{source}:" if source.exists() else f"{source}: no such file, and so it"
            raise FileNotFoundError(f"{where} holds none of {', '.join(names)}; get them from {self.url}")
        return found

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The chats to ask of the model under test, in one of the card's styles."""
        if self.prompt_set:
            chat = load_prompts(self.prompt_set).solver(item.query)
            return (Prompt(name=style.value, messages=tuple(chat)),)
        values: dict[str, object] = {"task": item.slice, "instruction": item.instruction or ""}
        if style is PromptStyle.TEN_SHOT:
            values["shots"] = pick_shots(item.query.query, item.query.documents)
        name = REASONED_ANSWER if style is PromptStyle.COT else ANSWER
        return (Prompt(name=name, messages=self.chat(style.value, item, **values)),)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest | None:
        """What to ask the judge of one generation; None where a rule reads the generation itself."""
        if self.verdict is None:
            return None
        response = judged_text(prompt.name, generation)
        shown = {"response": response, **self.shown_to_judge(item, response)}
        return JudgeRequest(messages=self.chat(self.judge_chat, item, **shown), verdict=self.verdict)

    def shown_to_judge(self, item: Item, response: str) -> Mapping[str, object]:
        """What the judge's chat names beside query, documents, references and response."""
        return {}

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the judge's reply, or the generation where there is no judge; None when it cannot be read."""
        found = read_json(reply, self.verdict) if self.verdict is not None else None
        return None if found is None else found.judgement

    def chat(self, name: str, item: Item, **values: object) -> tuple[Message, ...]:
        """Renders one of the benchmark's chats."""
        query = item.query
        known = {"query": query.query, "documents": query.documents, "references": item.references}
        return load_texts(self.texts).render(name, **known, **values)

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Mapping[str, float | None]:
        """Scores of one item, each in [0, 1], from the judgements of each prompt's generations.

        None where nothing could be judged. The primary score is the majority's verdict over the generations.
        """
        (generations,) = judged.values()
        return majority_scores(generations, self.card.primary)

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """What a rule measures of one generation beside its judgement, in [0, 1]; an item has the means."""
        return {}

    def style_of(self, asked: PromptStyle) -> PromptStyle:
        """The asked style, or the only one; raises `ValueError` where the benchmark is not asked in it."""
        if asked in self.styles or len(self.styles) == 1:
            return asked if asked in self.styles else self.styles[0]
        raise ValueError(f"--style {asked}: {self.name} is asked as {', '.join(self.styles)}; choose one")

    def read_items(self, path: Path, limit: int | None = None) -> list[Item]:
        """Reads the first items, and checks them before anything is asked of a model.

        Raises:
            FileNotFoundError: a file is not there.
            ValueError: there is no item, one occurs twice, or a row is not of the format.
        """
        items = list(islice(self.items(path), limit))
        if not items:
            raise ValueError(f"{path}: holds no item of {self.name}; give its official files")
        twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
        if twice:
            raise ValueError(f"{path}: item {twice[0]!r} occurs twice; remove one of the rows")
        return items
