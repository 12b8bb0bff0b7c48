"""One preparation from files to rows: reads the inputs, indexes evaluation sets, works in processes, writes.

    inputs -> (limit, sample) -> batches -> work in processes -> sieve -> train.jsonl, removed.jsonl, manifest

Only the counts of a row stay in memory; texts are in flight for a few batches a process.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from pipeline.data.bioasq import BioasqRow
from pipeline.data.distractors import NOISE, Distractors, make_distractors
from pipeline.data.evaluation_sets import evaluation_queries
from pipeline.data.overlap import IndexedSet, write_index
from pipeline.data.parallel import in_order
from pipeline.data.prepare import Choices, InputFile, Manifest, write_worked
from pipeline.data.rows import parse_row
from pipeline.data.sources import Source, require_terms
from pipeline.data.values import RawRow
from pipeline.data.work import Batch, WorkedRow, WorkSettings, load_work, start_process, work_on
from reward.offline.files import file_sha256
from reward.offline.rows import require_file
from reward.roles.prompts import load_prompts

DEFAULT_CHOICES = Choices(near_duplicates=0.8, noise=NOISE)
_BATCH_ROWS = 32

Advance = Callable[[int, int], None]  # characters read, rows read


@dataclass(frozen=True)
class Input:
    """A file of a source."""

    source: Source
    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read; two files where the source has two."""
        return self.source.model.files(self.path)

    def rows(self) -> Iterator[RawRow]:
        """The rows of the files, not yet checked."""
        return self.source.model.raw_rows(self.path)


@dataclass(frozen=True)
class PrepareJob:
    """A preparation."""

    inputs: tuple[Input, ...]
    out: Path
    prompts: str = "full"
    tokenizer_path: str | None = None
    max_prompt_tokens: int | None = None
    evaluation_sets: tuple[Path, ...] = ()
    choices: Choices = DEFAULT_CHOICES
    num_workers: int = 1  # processes beside this one; 0: all in this one


def run_job(job: PrepareJob, advance: Advance = lambda chars, rows: None) -> Manifest:
    """Prepares rows.

    Args:
        job: What is wanted.
        advance: Told of the characters and rows that were worked on, batch by batch.

    Raises:
        FileNotFoundError: an input or an evaluation set is not there.
        ValueError: a licence is not accepted, a row is not of its format, an id stands for two queries, no
            row is left, or a setting cannot be.
    """
    require_terms([given.source for given in job.inputs], job.choices.accepted_licences)
    given = _manifest(job)
    with tempfile.TemporaryDirectory(prefix="march-evaluation-sets-") as folder:
        index = Path(folder) / "evaluation_sets.sqlite"
        indexed = _index(job, index)
        settings = WorkSettings(
            prompts=job.prompts,
            tokenizer_path=job.tokenizer_path,
            max_prompt_tokens=job.max_prompt_tokens,
            near_duplicates=job.choices.near_duplicates,
            index=index if indexed else None,
            max_shared_documents=job.choices.max_shared_documents,
            distractors=_distractors(job),
        )
        given = given.model_copy(update={"evaluation_sets": tuple(indexed)})
        return write_worked(_worked(job, settings, advance), job.out, given)


def _manifest(job: PrepareJob) -> Manifest:
    """The manifest but for what the rows tell."""
    inputs = tuple(
        InputFile(
            source=given.source.name,
            name=file.name,
            sha256=_sha256(file),
            licence=given.source.licence,
        )
        for given in job.inputs
        for file in given.files
    )
    sources = dict.fromkeys(given.source.name for given in job.inputs)
    has_distractors = any(given.source.name == "bioasq" for given in job.inputs)
    return Manifest(
        source=", ".join(sources),
        source_sha256=inputs[0].sha256 if len(inputs) == 1 else None,
        num_read=0,
        num_duplicates=0,
        num_overlong=0,
        num_rows=0,
        prompt_digest=load_prompts(job.prompts).digest,
        tokenizer=job.tokenizer_path,
        max_prompt_tokens=job.max_prompt_tokens,
        rows_sha256="",
        inputs=inputs,
        choices=job.choices if has_distractors else job.choices.model_copy(update={"noise": None}),
    )


def _sha256(path: Path) -> str:
    require_file(path)
    return file_sha256(path)


def _index(job: PrepareJob, path: Path) -> list[IndexedSet]:
    """Writes the index of the evaluation sets; nothing where there are none."""
    if not job.evaluation_sets:
        return []
    if job.choices.near_duplicates is None:
        raise ValueError("--exclude-overlap: needs --near-duplicates; 1 compares words exactly")
    return write_index(
        path,
        (
            (given.name, None if given.is_dir() else _sha256(given), evaluation_queries(given))
            for given in job.evaluation_sets
        ),
    )


def _distractors(job: PrepareJob) -> Distractors | None:
    """Reads the documents of all BioASQ inputs, to draw from."""
    noise = job.choices.noise
    inputs = [given for given in job.inputs if given.source.name == "bioasq"]
    if not inputs or not noise:
        return None
    rows = (parse_row(raw, BioasqRow) for given in inputs for raw in given.rows())
    documents = chain.from_iterable(row.to_documents() for row in rows)
    return make_distractors(documents, noise=noise, seed=job.choices.seed)


def _worked(job: PrepareJob, settings: WorkSettings, advance: Advance) -> Iterator[WorkedRow]:
    batches = chain.from_iterable(_batches(given, job.choices) for given in job.inputs)
    if job.num_workers:
        start = functools.partial(start_process, settings)
        results = in_order(work_on, batches, num_workers=job.num_workers, start=start)
    else:
        work = load_work(settings)
        results = ((batch, work.batch(batch)) for batch in batches)
    for batch, rows in results:
        yield from rows
        advance(sum(len(raw.text) for raw in batch.rows), len(batch.rows))


def _batches(given: Input, choices: Choices) -> Iterator[Batch]:
    rows = _chosen(given, choices)
    while batch := tuple(islice(rows, _BATCH_ROWS)):
        yield Batch(given.source.name, batch)


def _chosen(given: Input, choices: Choices) -> Iterator[RawRow]:
    """The first rows, or a sample in the file's order; the same for the same seed."""
    if choices.sample is None:
        return islice(given.rows(), choices.limit)
    keyed = (
        (hashlib.sha256(f"{choices.seed}:{place}".encode()).digest(), place)
        for place, _ in enumerate(islice(given.rows(), choices.limit))
    )
    drawn = {place for _, place in heapq.nsmallest(choices.sample, keyed)}
    return (row for place, row in enumerate(given.rows()) if place in drawn)
