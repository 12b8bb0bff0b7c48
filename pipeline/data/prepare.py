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

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from pipeline.data.duplicates import RowsBefore
from pipeline.data.overlap import IndexedSet
from pipeline.data.removals import REMOVED_FILE, Match, Reason, Removal
from pipeline.data.statistics import RunningStatistics, SourceStatistics
from pipeline.data.tokenizer_digest import tokenizer_sha256
from pipeline.data.work import RowWork, WorkedRow, WorkSettings, token_counter
from pipeline.record.checkpoints import write_atomically
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
        return {
            Reason.NO_DOCUMENTS: self.num_no_documents,
            Reason.OVERLAP_QUESTION: self.num_overlap_question,
            Reason.OVERLAP_DOCUMENT: self.num_overlap_document,
            Reason.DUPLICATE: self.num_duplicates,
            Reason.NEAR_DUPLICATE: self.num_near_duplicates,
            Reason.OVERLONG: self.num_overlong,
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
    settings = WorkSettings("", tokenizer_path, max_prompt_tokens)
    require_both(tokenizer_path, max_prompt_tokens)
    work = RowWork(settings, prompts, token_counter(tokenizer_path) if tokenizer_path else None)
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


def require_both(tokenizer_path: str | None, max_prompt_tokens: int | None) -> None:
    """Raises `ValueError` when only one of tokenizer and limit is given."""
    if (tokenizer_path is None) != (max_prompt_tokens is None):
        raise ValueError(
            f"max_prompt_tokens: {max_prompt_tokens} with tokenizer: {tokenizer_path}; give both or neither"
        )


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
    with tempfile.TemporaryDirectory(prefix=".preparing-", dir=out_dir) as folder:
        sieve = _Sieve(Path(folder), given.choices.near_duplicates)
        try:
            sieve.write(worked)
        finally:
            sieve.close()
        counted_by = tokenizer_sha256(given.tokenizer) if given.tokenizer else None  # it is here by now
        manifest = given.model_copy(update={**sieve.figures(), "tokenizer_sha256": counted_by})
        if not manifest.num_rows:
            raise ValueError(_nothing_left(manifest))
        (out_dir / MANIFEST_FILE).unlink(missing_ok=True)
        for name in (ROWS_FILE, REMOVED_FILE):
            os.replace(Path(folder) / name, out_dir / name)
    write_atomically(out_dir / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def read_manifest(folder: Path | None) -> Manifest | None:
    """Returns the manifest of prepared rows, if it is there."""
    path = folder / MANIFEST_FILE if folder else None
    return Manifest.model_validate_json(path.read_text()) if path and path.is_file() else None


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nothing_left(manifest: Manifest) -> str:
    found = ", ".join(
        f"{num:,} {reason.replace('_', ' ')}" for reason, num in manifest.removed.items() if num
    )
    return (
        f"{manifest.source}: none of {manifest.num_read:,} rows is left ({found or 'no row was read'}; "
        f"limit {manifest.max_prompt_tokens} prompt tokens); give other rows or mend the settings"
    )


class _HashedFile:
    """A file that is written once, and its SHA-256."""

    def __init__(self, path: Path) -> None:
        self._file, self._digest = path.open("wb"), hashlib.sha256()

    def write(self, text: str) -> None:
        data = text.encode()
        self._digest.update(data)
        self._file.write(data)

    def close(self) -> str:
        self._file.close()
        return self._digest.hexdigest()


class _Sieve:
    """Rows on their way into the files; what is kept of them in memory are counts."""

    def __init__(self, folder: Path, near_duplicates: float | None) -> None:
        self._near_duplicates = near_duplicates
        self._before = RowsBefore(folder / "before.sqlite")
        self._rows, self._removed = _HashedFile(folder / ROWS_FILE), _HashedFile(folder / REMOVED_FILE)
        self._statistics: dict[str, RunningStatistics] = {}
        self._num_removed = dict.fromkeys(Reason, 0)
        self._num_read = self._num_tokens = self._longest = 0
        self._digests: tuple[str, str] | None = None

    def close(self) -> None:
        self._before.close()
        self._digests = self._rows.close(), self._removed.close()

    def write(self, worked: Iterable[WorkedRow]) -> None:
        for row in worked:
            self._num_read += 1
            statistics = self._statistics.setdefault(row.source, RunningStatistics(row.source))
            statistics.saw(row)
            reason, match = self._verdict(row)
            if reason is not None:
                self._remove(row, reason, match)
                continue
            self._rows.write(row.line)
            statistics.add(row)
            self._num_tokens += row.num_tokens or 0
            self._longest = max(self._longest, row.num_tokens or 0)

    def figures(self) -> dict[str, object]:
        """The fields of the manifest that the rows tell."""
        assert self._digests is not None
        num_rows = sum(statistics.num_rows for statistics in self._statistics.values())
        return {
            "num_read": self._num_read,
            "num_rows": num_rows,
            **{f"num_{reason}{_PLURALS.get(reason, '')}": num for reason, num in self._num_removed.items()},
            "longest_prompt_tokens": self._longest or None,
            "mean_prompt_tokens": self._num_tokens / num_rows if self._num_tokens else None,
            "rows_sha256": self._digests[0],
            "removed_sha256": self._digests[1],
            "statistics": tuple(statistics.result() for statistics in self._statistics.values()),
        }

    def _verdict(self, row: WorkedRow) -> tuple[Reason | None, Match | None]:
        if row.removed in (Reason.NO_DOCUMENTS, Reason.OVERLAP_QUESTION, Reason.OVERLAP_DOCUMENT):
            return row.removed, row.match
        before = self._before.add(row.id, row.source, row.content)
        if before is not None:
            return Reason.DUPLICATE, before
        if row.removed is None and self._near_duplicates is not None:
            assert row.keys is not None and row.signatures is not None
            before = self._before.add_kept(
                row.id, row.source, row.keys, row.signatures, self._near_duplicates
            )
            return (Reason.NEAR_DUPLICATE, before) if before else (None, None)
        return row.removed, None

    def _remove(self, row: WorkedRow, reason: Reason, match: Match | None) -> None:
        self._num_removed[reason] += 1
        removal = Removal(
            id=row.id,
            source=row.source,
            place=row.place.rpartition("/")[2],
            reason=reason,
            match=match,
            num_prompt_tokens=row.num_tokens if reason is Reason.OVERLONG else None,
        )
        self._removed.write(removal.model_dump_json(exclude_none=True) + "\n")


_PLURALS = {Reason.DUPLICATE: "s", Reason.NEAR_DUPLICATE: "s"}
