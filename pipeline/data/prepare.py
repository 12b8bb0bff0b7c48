"""Rows of benchmarks to the rows that OpenRLHF trains on, with a list of what was left out and a manifest.

    train.jsonl     {"input": [{"role", "content"}, ...], "label": "<RagQuery as JSON>", "datasource": "..."}
    removed.jsonl   one line a row that was left out: why, and what it is too much like
    manifest.json   last, by rename: counts, settings, statistics, digests; a folder without it is not whole

`input` is the Solver's prompt, `label` what the audit needs: the query and its documents, carried beside the
prompt and never cut back out of it. A `RagQuery` holds no reference answer, so none can leak. Prompts over
the limit are left out: OpenRLHF would cut them, and the Solver would not have seen documents that it is
audited against. Rows are written in the order in which they are read, and are the same whatever the number
of processes.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TextIO

from pydantic import Field

from pipeline.data.duplicates import RowsBefore
from pipeline.data.overlap import IndexedSet
from pipeline.data.removals import REMOVED_FILE, Match, Reason, Removal
from pipeline.data.statistics import RunningStatistics, SourceStatistics, Spread
from pipeline.data.tokenizer_digest import tokenizer_sha256
from pipeline.data.work import RowWork, WorkedRow, WorkSettings
from pipeline.record.checkpoints import write_atomically
from reward.offline.files import file_sha256
from reward.roles.prompts import PromptSet
from reward.types import RagQuery, Record

ROWS_FILE, MANIFEST_FILE = "train.jsonl", "manifest.json"


class InputFile(Record):
    """One file that was read."""

    source: str
    name: str
    sha256: str
    licence: str


class Choices(Record):
    """What was asked of a preparation beside its prompts."""

    near_duplicates: float | None = None
    max_shared_documents: int = 0
    noise: float | None = Field(default=None, description="Share of distractors asked for; BioASQ only.")
    limit: int | None = Field(default=None, description="First rows of each input.")
    sample: int | None = Field(default=None, description="Rows drawn of each input.")
    seed: int = 0
    accepted_licences: tuple[str, ...] = ()


class Manifest(Record):
    """What a folder of rows was made from, and how many rows it holds."""

    source: str
    source_sha256: str | None = Field(default=None, description="Of the file that was read, if it was one.")
    num_read: int
    num_duplicates: int = Field(description="Rows whose question and documents stood before; left out.")
    num_overlong: int = Field(description="Rows over max_prompt_tokens; left out.")
    num_near_duplicates: int = Field(default=0, description="Rows nearly equal to one before; left out.")
    num_overlap_question: int = Field(default=0, description="Rows that an evaluation set asks; left out.")
    num_overlap_document: int = Field(default=0, description="Rows with an evaluation set's documents.")
    num_no_documents: int = Field(default=0, description="Rows that ask nothing of any document; left out.")
    num_rows: int = Field(description="Rows written.")
    longest_prompt_tokens: int | None = Field(default=None, description="Of the rows written, if counted.")
    mean_prompt_tokens: float | None = Field(default=None, description="Of the rows written, if counted.")
    prompt_digest: str
    tokenizer: str | None = Field(default=None, description="Folder or name of the one that counted.")
    tokenizer_sha256: str | None = Field(
        default=None, description="Of its vocabulary and chat template (`pipeline.data.tokenizer_digest`)."
    )
    max_prompt_tokens: int | None = None
    rows_sha256: str = Field(description="Of train.jsonl.")
    removed_sha256: str | None = Field(default=None, description="Of removed.jsonl.")
    inputs: tuple[InputFile, ...] = ()
    evaluation_sets: tuple[IndexedSet, ...] = Field(default=(), description="What overlap was looked for in.")
    choices: Choices = Choices()
    statistics: tuple[SourceStatistics, ...] = Field(default=(), description="By source, in their order.")

    @property
    def removed(self) -> dict[Reason, int]:
        """Rows that were left out, by reason."""
        return {reason: getattr(self, field) for reason, field in _COUNTED_IN.items()}


_COUNTED_IN = {
    Reason.NO_DOCUMENTS: "num_no_documents",
    Reason.OVERLAP_QUESTION: "num_overlap_question",
    Reason.OVERLAP_DOCUMENT: "num_overlap_document",
    Reason.DUPLICATE: "num_duplicates",
    Reason.NEAR_DUPLICATE: "num_near_duplicates",
    Reason.OVERLONG: "num_overlong",
}


def write_rows(
    queries: Iterable[RagQuery],
    out_dir: Path,
    *,
    prompts: PromptSet,
    tokenizer_path: str | None,
    max_prompt_tokens: int | None,
    source: str,
    source_sha256: str | None = None,
) -> Manifest:
    """Writes queries as rows, in this process; equal ones once, and none over the limit.

    Args:
        queries: What to train on.
        out_dir: Made if needed; what it held of an earlier preparation is replaced.
        prompts: The set whose Solver prompt is rendered.
        tokenizer_path: Folder or name of the policy's tokenizer, whose chat template counts.
        max_prompt_tokens: Longest rendered prompt; together with `tokenizer_path` or not at all.
        source: Goes into every row's `datasource` and the manifest.
        source_sha256: Of the file that was read.

    Raises:
        ValueError: only one of tokenizer and limit is given, the tokenizer cannot be used, one id stands for
            two different queries, or no row is left.
    """
    work = RowWork(WorkSettings("", tokenizer_path, max_prompt_tokens), prompts)
    worked = (work.query(query, source) for query in queries)
    given = Manifest(
        source=source,
        source_sha256=source_sha256,
        num_read=0,
        num_duplicates=0,
        num_overlong=0,
        num_rows=0,
        prompt_digest=prompts.digest,
        tokenizer=tokenizer_path,
        max_prompt_tokens=max_prompt_tokens,
        rows_sha256="",
    )
    return write_worked(worked, out_dir, given)


def write_worked(worked: Iterable[WorkedRow], out_dir: Path, given: Manifest) -> Manifest:
    """Writes the rows that are left, the list of the others, and the manifest.

    Args:
        worked: Rows with the work done, in the order in which they shall stand.
        out_dir: Made if needed; what it held of an earlier preparation is replaced when all is written.
        given: The manifest but for what the rows tell.

    Raises:
        ValueError: one id stands for two different queries, or no row is left.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".preparing-", dir=out_dir) as name:
        folder = Path(name)
        sieve = _Sieve(given.choices.near_duplicates)
        with (
            closing(RowsBefore(folder / "before.sqlite")) as before,
            (folder / ROWS_FILE).open("w", encoding="utf-8", newline="") as rows,
            (folder / REMOVED_FILE).open("w", encoding="utf-8", newline="") as removed,
        ):
            sieve.write(worked, before, rows, removed)
        digests = {
            # Looked for now, when whoever counted has fetched it.
            "tokenizer_sha256": tokenizer_sha256(given.tokenizer) if given.tokenizer else None,
            "rows_sha256": file_sha256(folder / ROWS_FILE),
            "removed_sha256": file_sha256(folder / REMOVED_FILE),
        }
        manifest = given.model_copy(update=sieve.figures() | digests)
        if not manifest.num_rows:
            raise ValueError(_nothing_left(manifest))
        (out_dir / MANIFEST_FILE).unlink(missing_ok=True)
        for name in (ROWS_FILE, REMOVED_FILE):
            os.replace(folder / name, out_dir / name)
    write_atomically(out_dir / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def read_manifest(folder: Path | None) -> Manifest | None:
    """Returns the manifest of prepared rows, if it is there."""
    path = folder / MANIFEST_FILE if folder else None
    return Manifest.model_validate_json(path.read_text()) if path and path.is_file() else None


def _nothing_left(manifest: Manifest) -> str:
    found = ", ".join(
        f"{num:,} {reason.replace('_', ' ')}" for reason, num in manifest.removed.items() if num
    )
    return (
        f"{manifest.source}: none of {manifest.num_read:,} rows is left ({found or 'no row was read'}; "
        f"limit {manifest.max_prompt_tokens} prompt tokens); give other rows or mend the settings"
    )


class _Sieve:
    """Rows on their way into the files; what is kept of them in memory are counts."""

    def __init__(self, near_duplicates: float | None) -> None:
        self._near_duplicates = near_duplicates
        self._statistics: dict[str, RunningStatistics] = {}
        self._num_removed: Counter[Reason] = Counter()
        self._num_read = 0

    def write(self, worked: Iterable[WorkedRow], before: RowsBefore, rows: TextIO, removed: TextIO) -> None:
        for row in worked:
            self._num_read += 1
            statistics = self._statistics.setdefault(row.source, RunningStatistics(row.source))
            statistics.saw(row)
            reason, match = self._verdict(row, before)
            if reason is None:
                rows.write(row.line)
                statistics.add(row)
            else:
                self._num_removed[reason] += 1
                removed.write(_removal(row, reason, match).model_dump_json(exclude_none=True) + "\n")

    def figures(self) -> dict[str, object]:
        """The fields of the manifest that the rows tell."""
        statistics = tuple(one.result() for one in self._statistics.values())
        tokens: Counter[int] = sum((one.tokens for one in self._statistics.values()), Counter())
        prompts = Spread.of(tokens) if tokens else None
        return {
            "num_read": self._num_read,
            "num_rows": sum(one.num_rows for one in statistics),
            **{field: self._num_removed[reason] for reason, field in _COUNTED_IN.items()},
            "longest_prompt_tokens": prompts and prompts.max,
            "mean_prompt_tokens": prompts and prompts.mean,
            "statistics": statistics,
        }

    def _verdict(self, row: WorkedRow, before: RowsBefore) -> tuple[Reason | None, Match | None]:
        if row.removed not in (None, Reason.OVERLONG):
            return row.removed, row.match
        first = before.add(row.id, row.source, row.content)
        if first is not None:
            return Reason.DUPLICATE, first
        if row.removed is None and self._near_duplicates is not None:
            assert row.keys is not None and row.signatures is not None
            near = before.add_kept(row.id, row.source, row.keys, row.signatures, self._near_duplicates)
            return (Reason.NEAR_DUPLICATE, near) if near else (None, None)
        return row.removed, None


def _removal(row: WorkedRow, reason: Reason, match: Match | None) -> Removal:
    return Removal(
        id=row.id,
        source=row.source,
        place=row.place.rpartition("/")[2],
        reason=reason,
        match=match,
        num_prompt_tokens=row.num_tokens if reason is Reason.OVERLONG else None,
    )
