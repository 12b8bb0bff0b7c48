"""What a benchmark is: items to ask, a judge's question for each answer, and scores an item.

Everything here is pure: a benchmark reads files and values and knows no network. One item takes this way:

    item -> prompts (one, or both orders of a pair) -> `n` generations of each
         -> each generation judged by itself (a judge's reply, or the generation's own text by rule)
         -> majority of the judgements of a prompt, and means of what rules measure -> scores of the item

A reply that cannot be read is no judgement: it is asked for again, then counted apart, and never guessed.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from pipeline.evaluate.benchmarks.prompts import (
    ANSWER,
    END_OF_THOUGHT,
    REASONED_ANSWER,
    TEN_SHOT,
    judged_text,
    load_texts,
    pick_shots,
)
from pipeline.evaluate.majority import Judgement, Scores, majority_scores
from pipeline.statistics import Estimate, ItemScores, estimates
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.types import RagQuery, Record

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


class PromptStyle(StrEnum):
    """How the Solver is asked (paper, Table 4)."""

    PLAIN = "plain"
    COT = "cot"  # it reasons first, then answers
    TEN_SHOT = TEN_SHOT  # ten solved examples stand before the question


class BenchmarkCard(Record):
    """What a report says about a benchmark."""

    name: str = Field(description="As the command line names it, e.g. `ragtruth`.")
    title: str
    url: str
    licence: str = Field(description="SPDX identifier, or what is known of it.")
    primary: str = Field(description="Name of the score that is in tables and averages.")
    scored_by: str = Field(description="Judge or rule, and whose scorer it equals.")
    prompt_digest: str = Field(description="SHA-256 of all its prompt texts, the judge's too, and its shots.")


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


class JudgeVerdict(Record, ABC):
    """What a judge's reply must be; its JSON schema is sent with the question."""

    @property
    @abstractmethod
    def judgement(self) -> Judgement:
        """What it comes to."""


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
    texts: ClassVar[str] = ""  # its chats, `benchmarks/prompts/TEXTS.yaml`
    prompt_set: ClassVar[str] = ""  # in place of them the Solver's prompt of this set, as in training
    verdict: ClassVar[type[JudgeVerdict] | None] = None  # of a judge; None: a rule reads the generation
    judge_chat: ClassVar[str] = "judge"
    official: ClassVar[str] = ""  # the score by which an unread verdict is wrong; a failed request is not
    has_answers: ClassVar[bool] = True  # generations answer from documents, so that they can be audited
    is_given: ClassVar[bool] = False  # answers are given: it measures the judge, and nothing is asked

    @cached_property
    def card(self) -> BenchmarkCard:
        digest = load_prompts(self.prompt_set).digest if self.prompt_set else load_texts(self.texts).digest
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
        """The chats to ask of the model under test, in one of the benchmark's styles."""
        if self.prompt_set:
            chat = load_prompts(self.prompt_set).solver(item.query)
            return (Prompt(name=style.value, messages=tuple(chat)),)
        values: dict[str, object] = {"task": item.slice, "instruction": item.instruction or ""}
        if style is PromptStyle.TEN_SHOT:
            values["shots"] = pick_shots(item.query.query, item.query.documents)
        name = REASONED_ANSWER if style is PromptStyle.COT else ANSWER
        return (Prompt(name=name, messages=self.chat(style.value, item, **values)),)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> tuple[Message, ...]:
        """What to ask the judge of one generation; nothing where a rule reads the generation itself."""
        if self.verdict is None:
            return ()
        response = judged_text(prompt.name, generation)
        return self.chat(self.judge_chat, item, response=response, **self.shown_to_judge(item, response))

    def shown_to_judge(self, item: Item, response: str) -> Mapping[str, object]:
        """What the judge's chat names beside query, documents, references and response."""
        return {}

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the judge's reply, or the generation where there is no judge; None when it cannot be read.

        A judge's reply is JSON of its schema, without thought and code fence, or no judgement.
        """
        assert self.verdict is not None, "a rule has a reader of its own"
        text = reply.rpartition(END_OF_THOUGHT)[2].strip()
        fenced = _FENCE.match(text)
        try:
            return self.verdict.model_validate_json(fenced[1] if fenced else text).judgement
        except ValidationError:
            return None

    def chat(self, name: str, item: Item, **values: object) -> tuple[Message, ...]:
        query = item.query
        known = {"query": query.query, "documents": query.documents, "references": item.references}
        return load_texts(self.texts).render(name, **known, **values)

    def by_majority(self, judged: Mapping[str, Sequence[Judgement | None]]) -> Scores:
        """Scores of one item, from the judgements of each prompt's generations."""
        (generations,) = judged.values()
        return majority_scores(generations, self.primary)

    def measured(self, item: Item, prompt: str, generation: str) -> Scores:
        """What a rule measures of one generation beside its judgement; an item has the means."""
        return {}

    def estimates(self, items: Iterable[ItemScores]) -> dict[str, Estimate]:
        """Every figure over items, by its name."""
        return estimates(items)

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
        name, count = Counter(item.id for item in items).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{path}: item {name!r} occurs twice; remove one of the rows")
        return items
