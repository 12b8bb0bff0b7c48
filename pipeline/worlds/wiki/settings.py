"""Settings of the world of real text; imports nothing heavy, since every recipe reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from reward.config import Settings

Kind = Literal["number", "name", "date"]


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
