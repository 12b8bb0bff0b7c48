"""The rows of 2WikiMultihopQA that the world is made of: paragraphs, and triples about them.

The data set's texts have lost some spaces around brackets and quotation marks ("Wood( July 10, 1883"); they
are put back, since a model would otherwise have to copy what nobody writes.
"""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from pipeline.data.rows import parse_row
from pipeline.data.values import RawRow, raw_rows
from pipeline.worlds.wiki.relations import MONTH
from reward.offline.rows import InputRecord

_TIDIED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=[^\s(])\(", " ("),
        (r"\(\s+", "("),
        (r"\s+\)", ")"),
        (r"(?<=\w)- (?!and\b|or\b|to\b)(?=\w)", "-"),  # "Tamil- language"
        (r"(?<=\w)/ (?=\w)", "/"),
        (r"(?<=[\w,])\" ([^\"]{1,80}\")", r' "\1'),  # 'the novel" Fabiola" by'
        (r"(^|\()\" (?=\w)", r'\1"'),
        (rf"({MONTH} \d{{1,2}}),(?=\d{{4}})", r"\1, "),
    )
)
SHIPPED = Path(__file__).parent / "data" / "2wikimultihopqa.jsonl.gz"


class WikiRow(InputRecord):
    """One row of the data set; what it asks itself is not read."""

    id: str = Field(alias="_id", min_length=1)
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    evidences: tuple[tuple[str, str, str], ...] = ()
    split: Literal["train", "held_out"] | None = Field(default=None, description="In the shipped part.")

    @property
    def paragraphs(self) -> dict[str, tuple[str, ...]]:
        """The sentences of each paragraph by its title, tidied; empty ones left out."""
        found = {title: tuple(filter(None, map(tidy, sentences))) for title, sentences in self.context}
        return {title: sentences for title, sentences in found.items() if sentences}


def tidy(sentence: str) -> str:
    """A sentence with the spaces that the data set lost, and without those that it put in."""
    text = " ".join(sentence.split())
    for pattern, replacement in _TIDIED:
        text = pattern.sub(replacement, text)
    return text


def shipped() -> list[WikiRow]:
    """The rows that come with the package."""
    with gzip.open(SHIPPED, "rt", encoding="utf-8") as file:
        raw = [RawRow(f"{SHIPPED}:{number}", line) for number, line in enumerate(file, start=1)]
    return [parse_row(one, WikiRow) for one in raw]


def read(path: Path) -> Iterator[WikiRow]:
    """The rows of an official file, or of a part of it; errors as `raw_rows` and `parse_row`."""
    return (parse_row(one, WikiRow) for one in raw_rows(path))
