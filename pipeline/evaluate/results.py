"""What an evaluation found, item by item: what gates and comparisons read, without Inspect.

OUT/BENCHMARK/items.jsonl    one item a line: its scores, its generations, their judgements and audits
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.statistics import ItemScores
from reward.types import Record, TokenUse, Verdict


class JudgedGeneration(Record):
    """One generation and everything that was said of it."""

    prompt: str = Field(description="Name of the prompt.")
    text: str
    is_cut: bool = Field(default=False, description="At the most tokens.")
    judgement: Judgement | None = None
    reply: str | None = Field(default=None, description="The judge's last; None where no judge was asked.")
    verdict: Verdict | None = Field(default=None, description="Of the audit of its numbers.")


class ItemResult(ItemScores):
    """One item's scores and what they rest on."""

    failure: str = Field(default="", description="Why a generation is missing.")
    generations: tuple[JudgedGeneration, ...] = ()


class Counts(Record):
    """What was asked of a benchmark's items, and what went wrong; nothing of it is a score."""

    num_items: int = 0
    num_generations: int = 0
    num_truncated: int = Field(default=0, description="Generations that were cut at max_tokens.")
    num_too_long: int = Field(default=0, description="Answers to prompts that do not fit the model.")
    num_failed: int = Field(default=0, description="Answers that failed: the same command asks again.")
    num_judgements: int = Field(default=0, description="Of the judge, or by rule.")
    num_unread: int = Field(default=0, description="Replies that could not be read, after all retries.")
    num_unjudged: int = Field(default=0, description="Generations that no judge has answered for.")
    num_retries: int = Field(default=0, description="Questions to the judge beyond the first.")
    num_unaudited: int = Field(default=0, description="Answers whose audit failed.")
    model_use: TokenUse | None = Field(default=None, description="None where the server does not tell.")
    judge_use: TokenUse | None = None


def read_results(path: Path) -> Iterator[ItemResult]:
    """Yields the results that an evaluation wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is no result.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give the folder of a whole evaluation")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield ItemResult.model_validate_json(line)
            except ValidationError as error:
                raise ValueError(f"{path}:{number}: is no result of this version; evaluate again") from error
