"""The settings of the worlds, whose rows have known answers: the tiny one, and the one of real text."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from reward.config import Settings

Kind = Literal["number", "name", "date"]


class WorldSettings(Settings):
    """How hard worlds are; the defaults are those of the tiny recipe and of its start's demonstrations."""

    num_asked: int | None = Field(
        default=None, ge=1, le=3, description="Items of a query; 1 to 3 by default."
    )
    p_duplicate: float = Field(
        default=0.8, ge=0, le=1, description="Chance that an asked fact gets near-duplicates."
    )
    num_duplicates: int = Field(
        default=1, ge=1, le=6, description="Near-duplicates of a fact that gets any, each off by one word."
    )
    unrelated: tuple[int, int] = Field(
        default=(0, 2), description="Fewest and most facts that nobody asks for; they make documents long."
    )
    kinds: tuple[Kind, ...] = Field(
        default=("number",), min_length=1, description="What the facts say; each is of one of these kinds."
    )
    unanswerable_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the queries whose asked facts are in no document; near-duplicates stay.",
    )

    @model_validator(mode="after")
    def _unrelated_is_a_range(self) -> Self:
        if not 0 <= self.unrelated[0] <= self.unrelated[1] <= 50:
            raise ValueError(
                f"unrelated: {list(self.unrelated)} is no range; write [fewest, most], 50 at most"
            )
        return self

    @model_validator(mode="after")
    def _kinds_differ(self) -> Self:
        if len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"kinds: {list(self.kinds)} names a kind twice; name each once")
        return self


PLAIN_WORLD = WorldSettings()


class WikiSettings(Settings):
    """How hard rows are; the defaults make prompts of some 250 tokens, for a small model on two cores."""

    train_file: Path | None = Field(
        default=None, description="Of 2WikiMultihopQA, in place of the part that comes with the package."
    )
    held_out_file: Path | None = Field(
        default=None, description="Likewise; every fifth row of train_file when left out."
    )
    max_file_rows: int = Field(
        default=5000, ge=1, description="Rows of each file that are read: its first; each gives some seven."
    )
    num_documents: int = Field(default=3, ge=1, le=10, description="Paragraphs of a row, at most.")
    max_document_chars: int = Field(
        default=320, ge=80, description="Paragraphs are cut behind a sentence; the asked fact stays."
    )
    kinds: tuple[Kind, ...] = Field(
        default=("number", "name", "date"), min_length=1, description="What is asked for."
    )
    num_asked: tuple[Literal[1, 2], ...] = Field(
        default=(1, 2), min_length=1, description="Facts of a query: one, two, or rows of both."
    )
    unanswerable_share: float = Field(
        default=0.1, ge=0, le=1, description="Of the queries for one fact: its paragraph is taken away."
    )
    warmup_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of the training rows that `march warmup` shows and a training leaves out.",
    )
