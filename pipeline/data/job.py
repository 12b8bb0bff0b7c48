"""One preparation from files to rows: reads the inputs, indexes evaluation sets, works in processes, writes.

    inputs -> (limit, sample) -> batches -> work in processes -> sieve -> rows, removed, card, manifest

Only counts and digests of a row stay in memory; texts are in flight for a few batches a process.
"""

import functools
import hashlib
import heapq
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import chain, islice

from pipeline.data.bioasq import BioasqRow, Distractors, make_distractors
from pipeline.data.card import render_card
from pipeline.data.evaluation_sets import OverlapIndex
from pipeline.data.prepare import (
    CARD_FILE,
    MANIFEST_FILE,
    REMOVED_FILE,
    ROWS_FILE,
    InputFile,
    Manifest,
    write_worked,
)
from pipeline.data.rows import parse_row
from pipeline.data.sources import require_terms
from pipeline.data.values import RawRow
from pipeline.data.work import Batch, Choices, Input, PrepareJob, RowWork, WorkedRow
from reward.offline.files import file_sha256, refuse_inputs
from reward.offline.rows import BadRowError, require_file
from reward.roles.prompts import load_prompts

_BATCH_ROWS = 32
_AHEAD = 3  # batches a process that wait or are done
_MAX_NAMED = 5  # bad rows

Advance = Callable[[int, int], None]  # characters read, rows read


def run_job(job: PrepareJob, advance: Advance = lambda chars, rows: None) -> Manifest:
    """Prepares rows; `advance` is called with what was worked on, batch by batch.

    Raises:
        FileNotFoundError: an input or an evaluation set is not there.
        ValueError: a licence is not accepted, rows are not of their format, an id stands for two queries, no
            row is left, or a setting cannot be.
    """
    require_terms([given.source for given in job.inputs], job.choices.accepted_licences)
    sources = dict.fromkeys(given.source.name for given in job.inputs)
    if "bioasq" not in sources:
        job = replace(job, choices=job.choices.model_copy(update={"noise": None}))
    files = [file for given in job.inputs for file in given.files]
    for file in files:
        require_file(file)
    for name in (ROWS_FILE, REMOVED_FILE, CARD_FILE, MANIFEST_FILE):
        refuse_inputs(job.out / name, files)
    inputs = tuple(
        InputFile(
            source=given.source.name, name=file.name, sha256=file_sha256(file), licence=given.source.licence
        )
        for given in job.inputs
        for file in given.files
    )
    prompt_digest = load_prompts(job.prompts).digest
    overlaps = OverlapIndex(job.evaluation_sets) if job.evaluation_sets else None
    try:
        load = functools.partial(RowWork, job, _distractors(job))
        return write_worked(
            _worked(job, load, advance),
            job,
            source=", ".join(sources),
            prompt_digest=prompt_digest,
            inputs=inputs,
            overlaps=overlaps,
            card=render_card,
        )
    except BadRowError as error:  # perhaps of a row beyond the limit, which only distractors are drawn from
        raise ValueError(_bad_rows(job) or str(error)) from None


def _bad_rows(job: PrepareJob) -> str:
    """What is wrong with the first bad rows, and how many more there are; all are read again for it."""
    named: list[str] = []
    num_more = 0
    for given in job.inputs:
        for raw in _chosen(given, job.choices):
            try:
                parse_row(raw, given.source.model).queries(raw.place)
            except BadRowError as error:
                if len(named) < _MAX_NAMED:
                    named.append(str(error))
                else:
                    num_more += 1
    return "; ".join(named) + (f"; bad rows beside these: {num_more:,}" if num_more else "")


def _distractors(job: PrepareJob) -> Distractors | None:
    """Reads the documents of all BioASQ inputs, to draw from."""
    if not job.choices.noise:
        return None
    inputs = (given for given in job.inputs if given.source.name == "bioasq")
    rows = (parse_row(raw, BioasqRow) for given in inputs for raw in given.rows())
    documents = chain.from_iterable(row.to_documents() for row in rows)
    return make_distractors(documents, noise=job.choices.noise, seed=job.choices.seed)


def _worked(job: PrepareJob, load: Callable[[], RowWork], advance: Advance) -> Iterator[WorkedRow]:
    batches = chain.from_iterable(_batches(given, job.choices) for given in job.inputs)
    if job.num_workers:
        results = work_in_processes(load, batches, num_workers=job.num_workers)
    else:
        work = load()
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


_work: Callable[[], RowWork]  # of this process, if it is one that works on batches


def _start_process(load: Callable[[], RowWork]) -> None:
    """Tells a new process what is wanted; nothing is loaded yet, since errors here would have no name."""
    global _work
    _work = functools.cache(load)
    # Transformers would load torch, half a gigabyte a process, which no tokenizer needs, and say that it did
    # not; and that a prompt is long, which is what is counted here.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def _work_on(batch: Batch) -> list[WorkedRow]:
    return _work().batch(batch)


def work_in_processes(
    load: Callable[[], RowWork], batches: Iterable[Batch], *, num_workers: int
) -> Iterator[tuple[Batch, list[WorkedRow]]]:
    """Yields each batch with its rows, in the order of the batches, read only a few ahead of what is done.

    Raises:
        ChildProcessError: a process died.
        Exception: what the work on the first failed batch raised.
    """
    executor = ProcessPoolExecutor(
        num_workers, multiprocessing.get_context("spawn"), initializer=_start_process, initargs=(load,)
    )
    under_way: deque[tuple[Batch, Future[list[WorkedRow]]]] = deque()
    left = iter(batches)
    try:
        while True:
            for batch in islice(left, num_workers * _AHEAD - len(under_way)):
                under_way.append((batch, executor.submit(_work_on, batch)))
            if not under_way:
                return
            batch, rows = under_way.popleft()
            yield batch, rows.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process ended before its work was done (killed for memory?); free memory, or use fewer "
            "cores: taskset -c 0 march prepare ..."
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
