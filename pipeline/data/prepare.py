"""Rows of benchmarks to the rows that OpenRLHF trains on, with a list of what was left out and a manifest.

    train.jsonl     {"input": [{"role", "content"}, ...], "label": "<RagQuery as JSON>", "datasource": "..."}
    removed.jsonl   one line a row that was left out: why, and what it is too much like
    data_card.md    of rows of files: what they are made of (`card.py`)
    manifest.json   last, by rename: counts, settings, statistics, digests; a folder without it is not whole

`input` is the Solver's prompt, `label` what the audit needs: the query and its documents, carried beside the
prompt and never cut back out of it. A `RagQuery` holds no reference answer, so none can leak. Prompts over
the limit are left out: OpenRLHF would cut them, and the Solver would not have seen documents that it is
audited against. Rows are written in the order in which they are read, and are the same whatever the number
of processes.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.data.duplicates import Match, Reason, RowsBefore
from pipeline.data.evaluation_sets import IndexedSet, Overlap, OverlapIndex
from pipeline.data.statistics import RunningStatistics, SourceStatistics, Spread
from pipeline.data.tokenizer_digest import tokenizer_sha256
from pipeline.data.work import Choices, PrepareJob, RowWork, WorkedRow
from reward.offline.files import file_sha256, naming, replace_file
from reward.roles.prompts import PromptSet
from reward.types import RagQuery, Record

ROWS_FILE, REMOVED_FILE, MANIFEST_FILE = "train.jsonl", "removed.jsonl", "manifest.json"
CARD_FILE = "data_card.md"


class Removal(Record):
    id: str
    source: str
    place: str = Field(description="FILE:LINE; the file's name alone.")
    reason: Reason
    match: Match | None = None
    num_prompt_tokens: int | None = Field(default=None, description="Of an overlong prompt.")


class InputFile(Record):
    source: str
    name: str
    sha256: str
    licence: str


class Manifest(Record):
    """What a folder of rows was made from, and how many rows it holds."""

    source: str
    source_sha256: str | None = Field(default=None, description="Of the file that was read, if it was one.")
    num_read: int
    num_duplicates: int = Field(description="Rows whose question and documents came earlier; left out.")
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
    tokenizer_sha256: str | None = Field(default=None, description="Of its vocabulary and chat template.")
    max_prompt_tokens: int | None = None
    rows_sha256: str = Field(description="Of train.jsonl.")
    removed_sha256: str | None = Field(default=None, description="Of removed.jsonl.")
    inputs: tuple[InputFile, ...] = ()
    evaluation_sets: tuple[IndexedSet, ...] = Field(default=(), description="What overlap was looked for in.")
    choices: Choices = Choices()
    statistics: tuple[SourceStatistics, ...] = Field(default=(), description="By source, in their order.")

    @property
    def removed(self) -> dict[Reason, int]:
        return {reason: getattr(self, _field(reason)) for reason in Reason}


def _field(reason: Reason) -> str:
    """Where the manifest counts the rows that were left out for a reason."""
    return f"num_{reason}s" if reason.endswith("duplicate") else f"num_{reason}"


def write_rows(
    queries: Iterable[RagQuery],
    out_dir: Path,
    *,
    prompts: PromptSet,
    tokenizer_path: str | None,
    max_prompt_tokens: int | None,
    source: str,
) -> Manifest:
    """Writes queries as rows, in this process; equal ones once, and none over the limit.

    Args:
        queries: What to train on.
        out_dir: Made if needed; what it held of an earlier preparation is replaced.
        prompts: The set whose Solver prompt is rendered.
        tokenizer_path: Folder or name of the policy's tokenizer, whose chat template counts.
        max_prompt_tokens: Longest rendered prompt; together with `tokenizer_path` or not at all.
        source: Goes into every row's `datasource` and the manifest.

    Raises:
        ValueError: only one of tokenizer and limit is given, the tokenizer cannot be used, one id stands for
            two different queries, or no row is left.
    """
    job = PrepareJob((), out_dir, Choices(), "", tokenizer_path, max_prompt_tokens)
    work = RowWork(job, prompts=prompts)
    worked = (work.query(query, source) for query in queries)
    return write_worked(worked, job, source=source, prompt_digest=prompts.digest)


def write_worked(
    worked: Iterable[WorkedRow],
    job: PrepareJob,
    *,
    source: str,
    prompt_digest: str,
    inputs: tuple[InputFile, ...] = (),
    overlaps: OverlapIndex | None = None,
    card: Callable[[Manifest], str] | None = None,
) -> Manifest:
    """Writes the rows that are left, the list of the others, the card if one is wanted, and the manifest.

    Args:
        worked: Rows with the work done, in the order in which they shall stand.
        job: What was wanted; what its folder held of an earlier preparation is replaced when all is written.
        source: What the rows are of; for the manifest, as are the following.
        prompt_digest: Of the set whose Solver prompt was rendered.
        inputs: The files that are read.
        overlaps: Of evaluation sets; rows that they have, too, are left out.
        card: Makes the text of the data card.

    Raises:
        ValueError: one id belongs to two different queries, or no row is left.
    """
    with _made(job.out), tempfile.TemporaryDirectory(prefix=".preparing-", dir=job.out) as name:
        folder = Path(name)
        statistics = _sift(worked, job.choices, overlaps, folder)
        manifest = Manifest(
            source=source,
            source_sha256=inputs[0].sha256 if len(inputs) == 1 else None,
            prompt_digest=prompt_digest,
            tokenizer=job.tokenizer_path,
            # Looked for now, when whoever counted has fetched it.
            tokenizer_sha256=tokenizer_sha256(job.tokenizer_path) if job.tokenizer_path else None,
            max_prompt_tokens=job.max_prompt_tokens,
            rows_sha256=file_sha256(folder / ROWS_FILE),
            removed_sha256=file_sha256(folder / REMOVED_FILE),
            inputs=inputs,
            evaluation_sets=overlaps.sets if overlaps else (),
            choices=job.choices,
            **_figures(statistics.values()),
        )
        if not manifest.num_rows:
            raise ValueError(_nothing_left(manifest))
        if card is not None:
            (folder / CARD_FILE).write_text(card(manifest), encoding="utf-8", newline="")
        (job.out / MANIFEST_FILE).unlink(missing_ok=True)
        for path in folder.iterdir():
            os.replace(path, job.out / path.name)
    replace_file(job.out / MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
    return manifest


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Makes a folder and its parents if needed; where the work fails, those that are empty go again."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with naming(folder):
            yield
    except BaseException:
        with suppress(OSError):  # somebody else has written there
            for one in new:
                one.rmdir()
        raise


def read_manifest(folder: Path | None) -> Manifest | None:
    path = folder / MANIFEST_FILE if folder else None
    return Manifest.model_validate_json(path.read_text()) if path and path.is_file() else None


def _nothing_left(manifest: Manifest) -> str:
    found = ", ".join(
        f"{num:,} {reason.replace('_', ' ')}" for reason, num in manifest.removed.items() if num
    )
    return (
        f"{manifest.source}: none of {manifest.num_read:,} rows is left ({found or 'no row was read'}; "
        f"limit {manifest.max_prompt_tokens} prompt tokens); give other rows or fix the settings"
    )


def _sift(
    worked: Iterable[WorkedRow], choices: Choices, overlaps: OverlapIndex | None, folder: Path
) -> dict[str, RunningStatistics]:
    """Writes each row to the file that it belongs in; returns the statistics by source."""
    statistics: dict[str, RunningStatistics] = {}
    before = RowsBefore()
    with (
        (folder / ROWS_FILE).open("w", encoding="utf-8", newline="") as rows,
        (folder / REMOVED_FILE).open("w", encoding="utf-8", newline="") as removed,
    ):
        for row in worked:
            overlap = _overlap(row, overlaps, choices)
            reason, match = overlap.reason, overlap.match
            if reason is None:
                reason, match = _verdict(row, before, choices.near_duplicates)
            of_source = statistics.setdefault(row.source, RunningStatistics(row.source))
            of_source.add(row, reason, num_shared=overlap.num_documents)
            if reason is None:
                rows.write(row.line)
            else:
                removed.write(_removal(row, reason, match).model_dump_json(exclude_none=True) + "\n")
    return statistics


def _overlap(row: WorkedRow, overlaps: OverlapIndex | None, choices: Choices) -> Overlap:
    if overlaps is None or not row.hashes or choices.near_duplicates is None:
        return Overlap(0)
    return overlaps.find(
        row.keys, row.hashes, choices.near_duplicates, max_shared_documents=choices.max_shared_documents
    )


def _figures(statistics: Iterable[RunningStatistics]) -> dict[str, Any]:
    """The fields of the manifest that the rows tell."""
    tokens, removed = Counter[int](), Counter[Reason]()
    for one in statistics:
        tokens += one.tokens
        removed += one.removed
    results = tuple(one.result() for one in statistics)
    num_rows = sum(one.num_rows for one in results)
    prompts = Spread.of(tokens) if tokens else None
    return {
        "num_read": num_rows + removed.total(),
        "num_rows": num_rows,
        **{_field(reason): removed[reason] for reason in Reason},
        "longest_prompt_tokens": prompts and prompts.max,
        "mean_prompt_tokens": prompts and prompts.mean,
        "statistics": results,
    }


def _verdict(
    row: WorkedRow, before: RowsBefore, near_duplicates: float | None
) -> tuple[Reason | None, Match | None]:
    """Why a row is left out, if it is, and what it is too much like."""
    if row.removed is Reason.NO_DOCUMENTS:
        return row.removed, None
    first = before.add(row.id, row.source, row.content, row.place, unanswerable=row.unanswerable)
    if first is not None:
        return Reason.DUPLICATE, first
    if row.removed is None and near_duplicates is not None:
        near = before.add_kept(row.id, row.source, row.keys, row.hashes, near_duplicates)
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
