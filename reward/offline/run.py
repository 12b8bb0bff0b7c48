"""The offline audit: rows of a file in, one verdict a row out, in the order of the input.

    OUT.jsonl          one verdict a row, appended as soon as it is its turn
    OUT.summary.json   last, by rename: settings, digests and figures; an output without it is not whole

The input is read twice: first to check every row, so that a bad one is found before anything is spent, then
to audit. The same command resumes an interrupted audit, tries rows that could not be scored again, and
changes nothing when all is done (`reward/offline/resume.py`). Without a model each number is looked up in the
documents (`reward/lexical/`); with one, the model proposes, checks and votes (`reward/auditor.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from pydantic import Field, JsonValue

from reward.auditor import audit
from reward.lexical import lexical_audit
from reward.offline.figures import Figures, count_figures
from reward.offline.files import file_sha256, only_writer, replace_file
from reward.offline.inputs import RowFormat
from reward.offline.plan import AuditJob, Plan, make_plan, take_rows
from reward.offline.ragtruth import RESPONSES, SOURCES
from reward.offline.resume import AuditedRow, Standing, kept_path, take_stock
from reward.offline.rows import AuditRow
from reward.roles.asking import Turn
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler, SamplerError, make_sampler
from reward.types import Record, Verdict

_LOOKAHEAD = 4  # rows begun beyond the slowest one, as a multiple of the audits under way

AuditOne = Callable[[AuditRow], Awaitable[Verdict]]


class Summary(Record):
    """The manifest of an output, and its figures."""

    input: str
    input_sha256: str = Field(description="Digest over the digests of all audited rows, in order.")
    output_sha256: str
    settings: dict[str, JsonValue] = Field(description="Everything that can change a verdict.")
    settings_sha256: str
    num_excluded: dict[str, int] = Field(description="Rows of the input that take no part, by reason.")
    num_audited: int = Field(description="Rows audited by the run that wrote this.")
    audit_s: float = Field(description="Wall time of those audits, in seconds; without the model's start.")
    prefix_cache_hit_rate: float | None = Field(
        default=None, description="Of that run's prompt tokens; None where the engine does not tell."
    )
    figures: Figures

    @property
    def rows_per_s(self) -> float | None:
        """Speed of the run that wrote this; None when it audited nothing."""
        return self.num_audited / self.audit_s if self.num_audited and self.audit_s else None


class PrefixUse:
    """How much of the prompts the engine's prefix cache held, of those of which somebody tells."""

    def __init__(self) -> None:
        self._num_prompt = self._num_cached = 0

    def turn_ended(self, turn: Turn) -> None:
        """Counts a request to the sampler."""
        group = turn.group
        if group and group.num_prompt_tokens is not None and group.num_cached_tokens is not None:
            self._num_prompt += group.num_prompt_tokens
            self._num_cached += group.num_cached_tokens

    @property
    def hit_rate(self) -> float | None:
        """Share of the tokens that were cached; None when nobody told."""
        return self._num_cached / self._num_prompt if self._num_prompt else None


class Progress(Protocol):
    """Watches an audit."""

    def start(self, total: int, done: int) -> None:
        """Called once: rows in all, and how many of them stand from earlier runs."""

    def advance(self, verdict: Verdict) -> None:
        """Called after each new verdict was written."""


def run_audit(job: AuditJob, progress: Progress, *, sampler: Sampler | None = None) -> tuple[Summary, bool]:
    """Audits a file, or goes on with it; returns the summary and whether anything was changed.

    Args:
        job: What to audit, and how.
        progress: Told of every new verdict.
        sampler: In place of the one that `job.sampler` describes.

    Raises:
        FileNotFoundError: the input is not there.
        ValueError: a row or a setting cannot be used, the output belongs to another audit, or the model
            cannot be reached.
    """
    plan = make_plan(job)
    refuse_inputs(job.output, job)
    with only_writer(job.output) as out:
        if job.overwrite:
            _remove(job.summary_path, kept_path(job.output))
            out.truncate(0)
        standing = take_stock(
            job.output,
            plan.rows,
            settings_sha256=plan.settings_sha256,
            retry_unscored=job.sampler is not None,
        )
        finished = _finished(job, plan, standing)
        if finished is not None:
            return finished, False
        prefix = PrefixUse()
        audit_s = asyncio.run(_write(job, plan, standing, out, progress, sampler, prefix))
        summary = _summarise(job, plan, standing, audit_s=audit_s, hit_rate=prefix.hit_rate)
        replace_file(job.summary_path, summary.model_dump_json(indent=2) + "\n")
        _remove(kept_path(job.output))
        return summary, True


def audited_rows(job: AuditJob) -> Iterator[tuple[AuditRow, AuditedRow]]:
    """Yields the rows of a whole output beside what they were made from."""
    with job.output.open("rb") as verdicts:
        for row, line in zip(take_rows(job), verdicts, strict=True):
            yield row, AuditedRow.model_validate_json(line)


def audit_row(job: AuditJob, row: AuditRow, *, sampler: Sampler | None = None) -> Verdict:
    """Audits one row as the job says and writes nothing.

    Raises:
        ValueError: the model cannot be reached, or a setting cannot be used.
    """

    async def alone() -> Verdict:
        async with _auditor(job, sampler, PrefixUse()) as audit_one:
            return await audit_one(row)

    return asyncio.run(alone())


def refuse_inputs(path: Path, job: AuditJob) -> None:
    """Raises `ValueError` when a file to write is one that the job reads."""
    folder = job.input if job.input.is_dir() else job.input.parent
    inputs = [folder / RESPONSES, folder / SOURCES] if job.input_format is RowFormat.RAGTRUTH else [job.input]
    if any(path.exists() and one.exists() and path.samefile(one) for one in inputs):
        raise ValueError(f"{path}: is an input; write to another file")


def _finished(job: AuditJob, plan: Plan, standing: Standing) -> Summary | None:
    """The summary that lies there, if it is of these rows and settings and of an output that is whole."""
    whole = standing.num_prefix == len(plan.rows) and job.output.stat().st_size == standing.prefix_size
    if not whole or not job.summary_path.exists():
        return None
    try:
        summary = Summary.model_validate_json(job.summary_path.read_bytes())
    except ValueError:
        return None  # torn or of another version: made afresh
    found = (summary.input_sha256, summary.settings_sha256, summary.output_sha256)
    return summary if found == (plan.input_sha256, plan.settings_sha256, file_sha256(job.output)) else None


async def _write(
    job: AuditJob,
    plan: Plan,
    standing: Standing,
    out: BinaryIO,
    progress: Progress,
    sampler: Sampler | None,
    prefix: PrefixUse,
) -> float:
    """Appends what the output lacks, each row in its turn; returns the seconds after the model was ready."""
    todo = (row for place, row in enumerate(take_rows(job)) if place >= standing.num_prefix)
    async with _auditor(job, sampler, prefix) as audit_one:

        async def line_of(row: AuditRow) -> tuple[bytes, Verdict | None]:
            if row.query.id in standing.aside:
                return standing.aside[row.query.id].read(), None
            verdict = await audit_one(row)
            return AuditedRow.line(verdict, row.digest, plan.settings_sha256), verdict

        _remove(job.summary_path)
        out.truncate(standing.prefix_size)
        start = time.monotonic()
        progress.start(len(plan.rows), standing.num_rows)
        async with aclosing(_in_order(todo, line_of, job.concurrency)) as lines:
            async for line, verdict in lines:
                out.write(line)
                out.flush()
                if verdict is not None:
                    progress.advance(verdict)
        os.fsync(out.fileno())
        return time.monotonic() - start


async def _in_order(
    rows: Iterable[AuditRow],
    line_of: Callable[[AuditRow], Awaitable[tuple[bytes, Verdict | None]]],
    concurrency: int,
) -> AsyncGenerator[tuple[bytes, Verdict | None]]:
    """Works on `concurrency` rows at once and yields in the order of the rows; memory stays bounded."""
    slots = asyncio.Semaphore(concurrency)
    begun: deque[asyncio.Task[tuple[bytes, Verdict | None]]] = deque()

    async def bounded(row: AuditRow) -> tuple[bytes, Verdict | None]:
        async with slots:
            return await line_of(row)

    try:
        for row in rows:
            begun.append(asyncio.create_task(bounded(row)))
            if len(begun) > concurrency * _LOOKAHEAD:
                yield await begun.popleft()
        while begun:
            yield await begun.popleft()
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)


@asynccontextmanager
async def _auditor(job: AuditJob, sampler: Sampler | None, prefix: PrefixUse) -> AsyncIterator[AuditOne]:
    """The audit of one row: a model's if the job has one and it answers, else the lexical one."""
    if job.sampler is None:

        async def look_up(row: AuditRow) -> Verdict:
            return lexical_audit(row.query, row.response, job.audit)

        yield look_up
        return
    prompts = load_prompts(job.audit.prompts)
    chosen = sampler or make_sampler(job.sampler)

    async def ask(row: AuditRow) -> Verdict:
        result = await audit(
            row.query,
            row.response,
            sampler=chosen,
            prompts=prompts,
            config=job.audit,
            observer=prefix.turn_ended,
        )
        return result.verdict

    try:
        try:
            await chosen.ready()
        except SamplerError as error:
            raise ValueError(f"model: {error.detail}") from error
        yield ask
    finally:
        await chosen.close()


def _summarise(
    job: AuditJob, plan: Plan, standing: Standing, *, audit_s: float, hit_rate: float | None
) -> Summary:
    return Summary(
        input=str(job.input),
        input_sha256=plan.input_sha256,
        output_sha256=file_sha256(job.output),
        settings=plan.settings,
        settings_sha256=plan.settings_sha256,
        num_excluded=dict(plan.excluded),
        num_audited=len(plan.rows) - standing.num_rows,
        audit_s=audit_s,
        prefix_cache_hit_rate=hit_rate,
        figures=count_figures(audited_rows(job)),
    )


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
