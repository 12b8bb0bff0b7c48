"""The work on one row that needs no other row: check, render, count tokens, hash its texts.

It runs in as many processes as there are cores, and gives the same for a row wherever it runs. What comes
back is the line to write and what is kept of the row; an overlong one comes back without its line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from pipeline.data.bioasq import Distractors
from pipeline.data.duplicates import Reason, fingerprint
from pipeline.data.rows import MultiHopRow, parse_row
from pipeline.data.sources import SOURCES, Source
from pipeline.data.values import RawRow
from reward.offline.excerpt import printable
from reward.roles.prompts import PromptSet, load_prompts
from reward.samplers.token_ids import load_tokenizer, prompt_token_ids
from reward.types import RagQuery, Record

if TYPE_CHECKING:
    from rensa import RMinHash


class Choices(Record):
    """What was asked of a preparation beside its prompts."""

    near_duplicates: float | None = None
    max_shared_documents: int = 0
    noise: float | None = Field(default=None, description="Share of distractors asked for; BioASQ only.")
    unanswerable: float | None = Field(default=None, description="Share of rows made so on purpose.")
    limit: int | None = Field(default=None, description="First rows of each input.")
    sample: int | None = Field(default=None, description="Rows drawn of each input.")
    seed: int = 0
    accepted_licences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Input:
    source: Source
    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read; two files where the source has two."""
        return self.source.model.files(self.path)

    def rows(self) -> Iterator[RawRow]:
        return self.source.model.raw_rows(self.path)


@dataclass(frozen=True)
class PrepareJob:
    inputs: tuple[Input, ...]
    out: Path
    choices: Choices
    prompts: str = "full"
    tokenizer_path: str | None = None
    max_prompt_tokens: int | None = None
    evaluation_sets: tuple[Path, ...] = ()
    num_workers: int = 1  # processes beside this one; 0: all in this one

    def __post_init__(self) -> None:
        if (self.tokenizer_path is None) != (self.max_prompt_tokens is None):
            raise ValueError(
                f"max_prompt_tokens: {self.max_prompt_tokens} with tokenizer: {self.tokenizer_path}; "
                "give both or neither"
            )
        if self.evaluation_sets and self.choices.near_duplicates is None:
            raise ValueError("--exclude-overlap: needs --near-duplicates above 0; 1 compares words exactly")
        sources = [given.source for given in self.inputs]
        silent = [source.name for source in sources if not issubclass(source.model, MultiHopRow)]
        if self.choices.unanswerable and silent:
            raise ValueError(
                f"--unanswerable: {self.choices.unanswerable} with {silent[0]}, whose rows do not say which "
                "documents answer; leave it out, and prepare the others by themselves"
            )


@dataclass(frozen=True)
class Batch:
    """Rows of one source that are worked on together."""

    source: str
    rows: tuple[RawRow, ...]


@dataclass(frozen=True)
class WorkedRow:
    source: str
    place: str
    id: str
    content: bytes = b""  # digest of what the Solver sees
    lengths: dict[str, int] = field(default_factory=dict)  # by the fields of `SourceStatistics`
    unanswerable: bool = False  # as its file says, or because what answers it was taken away
    num_irrelevant: int | None = None  # documents; None where the source does not tell
    unused_keys: tuple[str, ...] = ()
    num_tokens: int | None = None  # of the prompt, if they are counted
    removed: Reason | None = None
    keys: tuple[bytes, ...] = ()  # of the question and the documents
    hashes: tuple[RMinHash, ...] = ()  # of the same texts
    line: str = ""


class RowWork:
    """The work, with what it needs loaded once; raises `ValueError` when that cannot be used."""

    def __init__(
        self, job: PrepareJob, distractors: Distractors | None = None, *, prompts: PromptSet | None = None
    ) -> None:
        name = job.tokenizer_path
        self._job, self._distractors = job, distractors
        self._prompts = prompts or load_prompts(job.prompts)
        self._tokenizer = load_tokenizer(name, field="tokenizer") if name else None

    def batch(self, batch: Batch) -> list[WorkedRow]:
        """Works on each row of a batch, in order; raises `ValueError` when one is not of the format."""
        source = SOURCES[batch.source]
        return [row for raw in batch.rows for row in self._raw(source, raw)]

    def query(
        self, query: RagQuery, source: str, *, place: str = "", num_irrelevant: int | None = None
    ) -> WorkedRow:
        row = WorkedRow(source, place, query.id, _content_digest(query), _lengths(query))
        row = replace(row, num_irrelevant=num_irrelevant, unanswerable=query.unanswerable)
        threshold, limit = self._job.choices.near_duplicates, self._job.max_prompt_tokens
        if threshold is not None:
            keys, found = fingerprint(query)
            row = replace(row, keys=keys, hashes=found)
        messages = self._prompts.solver(query)
        if self._tokenizer and limit is not None:
            num_tokens = len(prompt_token_ids(self._tokenizer, messages))
            row = replace(row, num_tokens=num_tokens)
            if num_tokens > limit:
                return replace(row, removed=Reason.OVERLONG)
        written = {"input": messages, "label": query.model_dump_json(), "datasource": source}
        return replace(row, line=json.dumps(written, ensure_ascii=False) + "\n")

    def _raw(self, source: Source, raw: RawRow) -> Iterator[WorkedRow]:
        parsed = parse_row(raw, source.model)
        queries = parsed.queries(raw.place)
        irrelevant = parsed.irrelevant()
        num_irrelevant = None if irrelevant is None else len(irrelevant)
        unused = tuple(printable(" ".join(key.split())) for key in parsed.model_extra or ())
        if not queries:
            name = str(getattr(parsed, "id", "")) or raw.place
            yield WorkedRow(source.name, raw.place, name, removed=Reason.NO_DOCUMENTS, unused_keys=unused)
        for query in queries:
            if source.name == "bioasq" and self._distractors is not None:
                query, num_irrelevant = self._distractors.add_to(query)
            if irrelevant and num_irrelevant != len(query.documents) and self._takes_away(query):
                left = tuple(query.documents[place] for place in irrelevant)
                query = query.model_copy(update={"documents": left, "unanswerable": True})
            row = self.query(query, source.name, place=raw.place, num_irrelevant=num_irrelevant)
            yield replace(row, unused_keys=unused)

    def _takes_away(self, query: RagQuery) -> bool:
        """Whether a row is among the share that shall be unanswerable; the same for the same seed."""
        choices = self._job.choices
        drawn = hashlib.sha256(f"unanswerable:{choices.seed}:{query.id}".encode()).digest()
        return int.from_bytes(drawn[:4]) < (choices.unanswerable or 0.0) * 2**32


def _content_digest(query: RagQuery) -> bytes:
    """Of what the Solver sees; ids of rows and documents may differ between copies."""
    content = [query.query, [(document.title, document.text) for document in query.documents]]
    return hashlib.sha256(json.dumps(content).encode()).digest()[:16]


def _lengths(query: RagQuery) -> dict[str, int]:
    texts = [document.text for document in query.documents]
    return {
        "query_words": len(query.query.split()),
        "num_documents": len(texts),
        "document_words": sum(len(text.split()) for text in texts),
        "document_chars": sum(map(len, texts)),
    }
