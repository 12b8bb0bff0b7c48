"""What an offline audit is of: the job as asked for, its rows checked and its settings named.

The digests of rows and settings decide which verdicts of an earlier run are kept (`resume.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, JsonValue

from reward.config import AuditConfig, SamplerConfig, Settings
from reward.offline.inputs import RowFormat, format_of, read_rows
from reward.offline.rows import AuditRow
from reward.provenance import package_version
from reward.roles.prompts import load_prompts

# Where and how a model is reached: no part of what it says.
_TRANSPORT = {
    *("kind", "base_urls", "api_key_env", "timeout_s", "max_retries", "cool_down_s"),
}


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
    excluded: Counter[str]
    settings: dict[str, JsonValue]

    @property
    def input_sha256(self) -> str:
        return hashlib.sha256("".join(self.digests.values()).encode()).hexdigest()

    @property
    def settings_sha256(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()


def make_plan(job: AuditJob) -> Plan:
    """Reads and checks every row once.

    Raises:
        FileNotFoundError: the input is not there.
        ValueError: a row, its documents' size, its id or a setting cannot be used.
    """
    excluded: Counter[str] = Counter()
    digests: dict[str, str] = {}
    for row in take_rows(job, excluded):
        row_id = row.query.id
        if row_id in digests:
            first = next(one.place for one in take_rows(job) if one.query.id == row_id)
            raise ValueError(f"{row.place}: id: {row_id!r} is used at {first} already; give each row its own")
        _check_size(row, job.audit.max_documents_chars)
        digests[row_id] = row.digest
    if not digests:
        raise ValueError(f"{job.input}: holds no row to audit; give at least one")
    return Plan(digests, excluded, _settings(job))


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


def _check_size(row: AuditRow, max_chars: int) -> None:
    num_chars = sum(len(document.title) + len(document.text) for document in row.query.documents)
    if num_chars > max_chars:
        raise ValueError(
            f"{row.place}: row {row.query.id!r}: documents: {num_chars} characters, more than "
            f"max_documents_chars {max_chars}; retrieve less, or raise it by --set"
        )


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
    return settings
