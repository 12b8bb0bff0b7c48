"""What an evaluation is of: the job as asked for, the items of its benchmarks, and digests of what decides.

The digest of a plan's part is the version of its Inspect task (`run.py`): what was made with other settings
or of other files is never taken for it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue, model_validator

from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.sampling import GENERATION, JUDGE_RETRIES, JUDGING, MOST_UNREAD, NUM_GENERATIONS
from reward.config import AuditConfig, LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings, Settings
from reward.offline.files import file_sha256
from reward.provenance import package_version

RESULTS_FILE, ITEMS_FILE = "results.json", "items.jsonl"


class Stage(StrEnum):
    """A part of the work that can be done by itself, so that model and judge need not run together."""

    GENERATE = "generate"
    JUDGE = "judge"


class AuditKind(StrEnum):
    """How the numbers of the answers are audited."""

    LEXICAL = "lexical"  # looked up in the documents
    MODEL = "model"  # the judge's model proposes, checks and votes
    NONE = "none"


class BenchmarkSource(Settings):
    """A benchmark and where its official files are."""

    name: str
    path: Path


class EvaluationJob(Settings):
    """One evaluation of one model. Defaults are the paper's (Table 6) where it names them."""

    out: Path
    benchmarks: tuple[BenchmarkSource, ...] = Field(min_length=1)
    model: OpenAISamplerConfig | LocalSamplerConfig = Field(
        discriminator="kind", description="The model under test."
    )
    weights_sha256: str | None = Field(default=None, description="Of a local model; a server's are its own.")
    judge: OpenAISamplerConfig | None = Field(default=None, description="None: rules judge, or nobody yet.")
    style: PromptStyle = PromptStyle.PLAIN
    generation: SamplingSettings = GENERATION
    num_generations: int = Field(
        default=NUM_GENERATIONS, ge=1, le=128, description="Of each prompt: Inspect's epochs."
    )
    judging: SamplingSettings = JUDGING
    judge_retries: int = Field(
        default=JUDGE_RETRIES, ge=0, le=10, description="Further questions after a useless reply."
    )
    most_unread: float = Field(
        default=MOST_UNREAD, gt=0, le=1, description="Share of useless replies at which judging stops."
    )
    audit: AuditKind = AuditKind.LEXICAL
    audit_settings: AuditConfig = AuditConfig()
    limit: int | None = Field(default=None, ge=1, description="First items of each benchmark only.")
    concurrency: int = Field(default=16, ge=1, le=1024, description="Requests at once, to model and judge.")
    cache: bool = Field(default=True, description="Inspect keeps the judge's replies for equal questions.")
    logs: Path | None = Field(default=None, description="Inspect's logs; None: `logs` in `out`.")
    only: Stage | None = Field(default=None, description="This stage alone; the other one later.")
    overwrite: bool = False

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        twice = [name for name, count in Counter(one.name for one in self.benchmarks).items() if count > 1]
        if twice:
            raise ValueError(f"benchmarks: {twice[0]!r} is given twice; leave it out once")
        if self.audit is AuditKind.MODEL and self.judge is None and self.only is not Stage.GENERATE:
            raise ValueError("audit: model needs a judge, whose model audits; give one or use lexical")
        return self

    @property
    def results_path(self) -> Path:
        """Written last."""
        return self.out / RESULTS_FILE

    def log_dir(self, stage: Stage) -> Path:
        """Where Inspect keeps a stage's logs."""
        return (self.logs or self.out / "logs") / stage.value


@dataclass(frozen=True)
class PlannedBenchmark:
    """A benchmark whose items were read and checked."""

    source: BenchmarkSource
    benchmark: Benchmark
    style: PromptStyle
    items: Sequence[Item]  # all of the file: a limit decides at the end
    limit: int | None

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def asked(self) -> Sequence[Item]:
        """The items that take part."""
        return self.items[: self.limit]

    @property
    def sha256(self) -> str:
        """Of the items that take part and the benchmark's prompts."""
        return _items_digest(self.benchmark, self.asked)

    @property
    def source_sha256(self) -> str | None:
        """Digest of the benchmark's file; None of a folder, whose items' digest says it."""
        return file_sha256(self.source.path) if self.source.path.is_file() else None

    @property
    def is_given(self) -> bool:
        """Whether answers are given, so that it measures the judge and nothing is asked of the model."""
        return self.prompts(self.items[0])[0].given is not None

    @property
    def is_judged(self) -> bool:
        """Whether a judge is asked of any generation, or rules read all of them."""
        item = self.items[0]
        return self.benchmark.judge_request(item, self.prompts(item)[0], "") is not None

    def prompts(self, item: Item) -> Sequence[Prompt]:
        """The chats of an item."""
        return self.benchmark.prompts(item, self.style)


@dataclass(frozen=True)
class Plan:
    """A job whose every item was read."""

    job: EvaluationJob
    benchmarks: Sequence[PlannedBenchmark]

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that can change a figure: not where a model runs, nor how many requests run at once."""
        job = self.job
        return {
            "version": package_version(),
            "model": job.model.model,
            **self._generating(),
            "judge": self._judge() if any(one.is_judged for one in self.benchmarks) else None,
            "audit": job.audit.value,
            "audit_settings": job.audit_settings.model_dump(mode="json"),
            "limit": job.limit,
        }

    def version(self, one: PlannedBenchmark, stage: Stage) -> str:
        """Digest of everything but the limit that decides what a stage makes of a benchmark."""
        job, style = self.job, one.style.value
        model = job.weights_sha256 or job.model.model
        made = digest(model, style, self._generating(), _items_digest(one.benchmark, one.items))
        if stage is Stage.GENERATE:
            return made
        audits: list[JsonValue] = [job.audit.value, job.audit_settings.model_dump(mode="json")]
        return digest(made, self._judge() if one.is_judged else None, audits)

    def _generating(self) -> dict[str, JsonValue]:
        job = self.job
        return {
            "weights_sha256": job.weights_sha256,
            "generation": job.generation.model_dump(mode="json"),
            "num_generations": job.num_generations,
        }

    def _judge(self) -> dict[str, JsonValue] | None:
        job = self.job
        if job.judge is None:
            return None
        return {
            "model": job.judge.model,
            "judging": job.judging.model_dump(mode="json"),
            "judge_retries": job.judge_retries,
        }


def make_plan(job: EvaluationJob) -> Plan:
    """Reads the items of every benchmark.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a benchmark is not known, cannot be asked in this style or lacks a judge; or a bad row.
    """
    plan = Plan(job, [_planned(job, source) for source in job.benchmarks])
    judged = [one.name for one in plan.benchmarks if one.is_judged]
    if judged and job.judge is None and job.only is not Stage.GENERATE:
        fix = "give --judge and --judge-model, or --only generate"
        raise ValueError(f"--judge: missing; a model judges {', '.join(judged)}; {fix}")
    return plan


def digest(*parts: JsonValue) -> str:
    """SHA-256 of values, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _planned(job: EvaluationJob, source: BenchmarkSource) -> PlannedBenchmark:
    benchmark = make_benchmark(source.name)
    style = benchmark.style_of(job.style)
    items = benchmark.read_items(source.path)
    return PlannedBenchmark(source=source, benchmark=benchmark, style=style, items=items, limit=job.limit)


def _items_digest(benchmark: Benchmark, items: Sequence[Item]) -> str:
    content: list[JsonValue] = [item.model_dump(mode="json") for item in items]
    return digest(benchmark.card.prompt_digest, content)
