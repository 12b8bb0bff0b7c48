"""The offline audit: rows of a file in, one verdict a row out.

    OUT.jsonl          one verdict a row, appended as soon as it is made; in the order of the input in the end
    OUT.summary.json   last, by rename: settings, digests and figures; an output without it is not whole

The input is read twice: first to check every row, so that a bad one is found before anything is spent, then
to audit. The same command resumes an interrupted audit, tries rows that could not be scored again, and
changes nothing when all is done (`reward/offline/resume.py`). Without a model each number is looked up in the
documents (`reward/lexical/`); with one, the model proposes, checks and votes (`reward/auditor.py`).
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import Field, JsonValue

from reward.auditor import audit
from reward.config import AuditConfig, LocalSamplerConfig, SamplerConfig, Settings
from reward.offline import files
from reward.offline.figures import Figures, count_figures
from reward.offline.files import file_sha256, only_writer, replace_file, weights_sha256
from reward.offline.inputs import RowFormat, format_of, read_rows
from reward.offline.ragtruth import RESPONSES, SOURCES
from reward.offline.resume import AuditedRow, Output
from reward.offline.rows import AuditRow
from reward.provenance import json_sha256, package_version
from reward.roles.prompts import load_prompts
from reward.samplers import Sampler, SamplerError
from reward.samplers.make import make_sampler
from reward.types import Record, Verdict

# Where and how a model is reached: no part of what it says.
_TRANSPORT = {"kind", "base_urls", "api_key_env", "timeout_s", "max_retries", "cool_down_s"}


class AuditJob(Settings):
    """One offline audit."""

    input: Path
    output: Path
    row_format: RowFormat | None = Field(default=None, description="What the input is; by its name if None.")
    audit: AuditConfig = AuditConfig()
    sampler: SamplerConfig | None = Field(
        default=None, discriminator="kind", description="The model that audits; none looks numbers up."
    )
    limit: int | None = Field(default=None, ge=1, description="First rows only.")
    concurrency: int = Field(default=16, ge=1, le=1024, description="Audits under way at once, with a model.")
    overwrite: bool = Field(default=False, description="Start again instead of resuming.")

    @property
    def summary_path(self) -> Path:
        """Where the summary of the output is: OUT.summary.json for OUT.jsonl."""
        return self.output.with_name(f"{self.output.name.removesuffix('.jsonl')}.summary.json")

    @property
    def input_format(self) -> RowFormat:
        """What the input is; raises `ValueError` when nothing says it."""
        return self.row_format or format_of(self.input)


@dataclass(frozen=True)
class Plan:
    """A job whose every row was read once."""

    digests: Mapping[str, str]  # of each row, by id, in order
    labels_sha256: str
    excluded: Counter[str]
    unused_keys: Counter[str]
    settings: dict[str, JsonValue]

    @property
    def input_sha256(self) -> str:
        return hashlib.sha256("".join(self.digests.values()).encode()).hexdigest()

    @property
    def settings_sha256(self) -> str:
        return json_sha256(self.settings)


def make_plan(job: AuditJob) -> Plan:
    """Reads and checks every row once.

    Raises:
        FileNotFoundError: the input is not there.
        ValueError: a row, its id or a setting cannot be used.
    """
    excluded, unused_keys = Counter[str](), Counter[str]()
    digests: dict[str, str] = {}
    labels = hashlib.sha256()
    for row in take_rows(job, excluded):
        row_id = row.query.id
        if row_id in digests:
            first = next(one.place for one in take_rows(job) if one.query.id == row_id)
            raise ValueError(f"{row.place}: id: {row_id!r} is used at {first} already; give each row its own")
        digests[row_id] = row.digest
        labels.update(row.labels_digest.encode())
        unused_keys.update(row.unused_keys)
    if not digests:
        raise ValueError(f"{job.input}: holds no row to audit; give at least one")
    return Plan(digests, labels.hexdigest(), excluded, unused_keys, _settings(job))


def take_rows(job: AuditJob, excluded: Counter[str] | None = None) -> Iterator[AuditRow]:
    """Yields the rows that take part, in order; the others are counted in `excluded` by their reason."""
    num_rows = 0
    for row in read_rows(job.input, job.input_format):
        if row.excluded:
            if excluded is not None:
                excluded[row.excluded] += 1
            continue
        yield row
        num_rows += 1
        if num_rows == job.limit:
            return


def _settings(job: AuditJob) -> dict[str, JsonValue]:
    """Everything that can change a verdict: not where the model runs, nor how many audits run at once."""
    settings: dict[str, JsonValue] = {
        "auditor": "model" if job.sampler else "lexical",
        "audit": job.audit.model_dump(mode="json", exclude={"prompts"}),
        "version": package_version(),
    }
    if job.sampler:
        settings["prompt_digest"] = load_prompts(job.audit.prompts).digest
        settings["sampler"] = job.sampler.model_dump(mode="json", exclude=_TRANSPORT)
        if isinstance(job.sampler, LocalSamplerConfig) and (folder := Path(job.sampler.model)).is_dir():
            settings["weights_sha256"] = weights_sha256(folder)  # the same path may hold others tomorrow
    return settings


class Summary(Record):
    """The manifest of an output, and its figures."""

    input: str
    input_sha256: str = Field(description="Digest over the digests of all audited rows, in order.")
    labels_sha256: str = Field(
        default="", description="Digest of what figures alone need: marks of people, parts, sources."
    )
    output_sha256: str
    settings: dict[str, JsonValue] = Field(description="Everything that can change a verdict.")
    settings_sha256: str
    num_excluded: dict[str, int] = Field(description="Rows of the input that take no part, by reason.")
    unused_keys: dict[str, int] = Field(
        default_factory=dict, description="Keys or columns that are not read, to rows that have them."
    )
    num_audited: int = Field(description="Rows audited by the run that wrote this.")
    audit_s: float = Field(description="Wall time of those audits, in seconds; without the model's start.")
    figures: Figures

    @property
    def rows_per_s(self) -> float | None:
        """Speed of the run that wrote this; None when it audited nothing."""
        return self.num_audited / self.audit_s if self.num_audited and self.audit_s else None


class Progress(Protocol):
    """Watches an audit."""

    def start(self, total: int, done: int) -> None:
        """Called once: rows in all, and how many of them earlier runs audited."""

    def advance(self, verdict: Verdict) -> None:
        """Called after each new verdict was written."""


def run_audit(job: AuditJob, progress: Progress, *, sampler: Sampler | None = None) -> tuple[Summary, bool]:
    """Audits a file, or goes on with it; returns the summary and whether anything was changed.

    A `sampler` is used in place of the one that `job.sampler` describes.

    Raises:
        FileNotFoundError: the input is not there.
        ValueError: a row or a setting cannot be used, the output belongs to another audit, or the model
            cannot be reached.
    """
    plan = make_plan(job)
    for written in (job.output, job.summary_path):
        refuse_inputs(written, job)
    with only_writer(job.output) as file:
        earlier = None if job.overwrite else Output(job.output, file, plan.digests, plan.settings_sha256)
        kept = earlier.kept(retry_unscored=job.sampler is not None) if earlier else set()
        is_whole = len(kept) == len(plan.digests)
        finished = _finished(job, plan) if is_whole else None
        if finished is not None:
            return finished, False

        def begin() -> Output:
            """When the model answers: until then all that an earlier audit made stays."""
            job.summary_path.unlink(missing_ok=True)
            if earlier is not None:
                return earlier
            file.truncate(0)
            return Output(job.output, file, plan.digests, plan.settings_sha256)

        if earlier is not None and is_whole:  # labels have changed, or the summary is gone
            output, audit_s = earlier, 0.0
        else:
            output, audit_s = asyncio.run(_audit(job, plan, kept, begin, progress, sampler))
        with output.in_order():
            summary = Summary(
                input=str(job.input),
                input_sha256=plan.input_sha256,
                labels_sha256=plan.labels_sha256,
                output_sha256=file_sha256(job.output),
                settings=plan.settings,
                settings_sha256=plan.settings_sha256,
                num_excluded=dict(plan.excluded),
                unused_keys=dict(sorted(plan.unused_keys.items())),
                num_audited=len(plan.digests) - len(kept),
                audit_s=audit_s,
                figures=count_figures(audited_rows(job)),
            )
            replace_file(job.summary_path, summary.model_dump_json(indent=2) + "\n")
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
        async with _model(job, sampler) as chosen:
            return (await audit(row.query, row.response, sampler=chosen, config=job.audit)).verdict

    return asyncio.run(alone())


def refuse_inputs(path: Path, job: AuditJob) -> None:
    """Raises `ValueError` when a file to write is one that the job reads."""
    folder = job.input if job.input.is_dir() else job.input.parent
    inputs = [folder / RESPONSES, folder / SOURCES] if job.input_format is RowFormat.RAGTRUTH else [job.input]
    files.refuse_inputs(path, inputs)


def _finished(job: AuditJob, plan: Plan) -> Summary | None:
    """The summary that is there, if it is of these rows, these settings and this output."""
    try:
        summary = Summary.model_validate_json(job.summary_path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None  # missing, torn or of another version: made again
    found = (summary.input_sha256, summary.labels_sha256, summary.settings_sha256, summary.output_sha256)
    wanted = (plan.input_sha256, plan.labels_sha256, plan.settings_sha256, file_sha256(job.output))
    return summary if found == wanted else None


async def _audit(
    job: AuditJob,
    plan: Plan,
    kept: Set[str],
    begin: Callable[[], Output],
    progress: Progress,
    sampler: Sampler | None,
) -> tuple[Output, float]:
    """Audits the rows that are not kept; returns what it wrote, and the seconds after the model was ready."""
    rows, missing = (row for row in take_rows(job) if row.query.id not in kept), plan.digests.keys() - kept
    async with _model(job, sampler) as chosen:
        output = begin()
        start = time.monotonic()
        progress.start(len(plan.digests), len(kept))

        async def work() -> None:
            for row in rows:  # all workers take from it
                if plan.digests.get(row.query.id) != row.digest:
                    fix = "start the same command again"
                    raise ValueError(f"{row.place}: has changed while it was read; {fix}")
                missing.discard(row.query.id)
                result = await audit(row.query, row.response, sampler=chosen, config=job.audit)
                output.append(row, result.verdict)
                progress.advance(result.verdict)
                await asyncio.sleep(0)  # where Ctrl-C takes effect: a lookup never waits

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(job.concurrency):
                    workers.create_task(work())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        if missing:
            line = f"{job.input}: {len(missing)} rows are gone since it was read first; start again"
            raise ValueError(line)
        return output, time.monotonic() - start


@asynccontextmanager
async def _model(job: AuditJob, sampler: Sampler | None) -> AsyncIterator[Sampler | None]:
    """The job's model, once it answers; None where numbers are looked up."""
    if job.sampler is None:
        yield None
        return
    chosen = sampler or make_sampler(job.sampler)
    try:
        await chosen.ready()
        yield chosen
    except SamplerError as error:  # an audit makes its own errors part of the verdict
        raise ValueError(f"model: {error.detail}") from error
    finally:
        await chosen.close()
