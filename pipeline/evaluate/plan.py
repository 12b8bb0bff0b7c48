"""What an evaluation is of: the job as asked for, the items of its benchmarks, and digests of what decides.

A generation is decided by the model, how it is sampled and the chat; a judgement by the judge, how it is
sampled, its question and the benchmark's prompts. Their digests stand beside what is kept, so that nothing
that was made otherwise is ever taken for it (`store.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue, model_validator

from pipeline.evaluate.benchmark import Benchmark, Item, JudgeRequest, Prompt, PromptStyle
from pipeline.evaluate.items import read_items, style_of
from pipeline.evaluate.sampling import (
    GENERATION,
    JUDGE_RETRIES,
    JUDGING,
    NUM_GENERATIONS,
    RETRY_TEMPERATURE,
)
from reward.config import AuditConfig, LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings, Settings
from reward.offline.files import file_sha256
from reward.provenance import package_version

MANIFEST_FILE = "manifest.json"
MakeBenchmark = Callable[[str], Benchmark]


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
        default=NUM_GENERATIONS, ge=1, le=128, description="Of each prompt, in one request."
    )
    judging: SamplingSettings = JUDGING
    judge_retries: int = Field(
        default=JUDGE_RETRIES, ge=0, le=10, description="Further questions after a useless reply."
    )
    retry_temperature: float = Field(
        default=RETRY_TEMPERATURE,
        gt=0,
        le=2,
        description="Least temperature of a retry: at 0 the reply would be the same.",
    )
    most_unread: float = Field(
        default=0.5, gt=0, le=1, description="Share of useless replies at which a stage stops spending."
    )
    audit: AuditKind = AuditKind.LEXICAL
    audit_settings: AuditConfig = AuditConfig()
    limit: int | None = Field(default=None, ge=1, description="First items of each benchmark only.")
    concurrency: int = Field(default=16, ge=1, le=1024, description="Requests at once, to model and judge.")
    cache: Path | None = Field(default=None, description="Judge's replies, shared between evaluations.")
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
    def manifest_path(self) -> Path:
        """Written last."""
        return self.out / MANIFEST_FILE


@dataclass(frozen=True)
class PlannedBenchmark:
    """A benchmark whose items were read and checked."""

    source: BenchmarkSource
    benchmark: Benchmark
    style: PromptStyle
    items: Sequence[Item]
    prompts: Mapping[str, Sequence[Prompt]]  # by item
    sha256: str  # of its items and the benchmark's prompts

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def is_judged(self) -> bool:
        """Whether a judge is asked of any generation, or rules read all of them."""
        return any(
            self.benchmark.judge_request(item, prompt, prompt.given or "") is not None
            for item in self.items[:1]
            for prompt in self.prompts[item.id][:1]
        )


@dataclass(frozen=True)
class Plan:
    """A job whose every item was read."""

    job: EvaluationJob
    benchmarks: Sequence[PlannedBenchmark]

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that can change a figure: not where a model runs, nor how many requests run at once."""
        job = self.job
        judge = self._judge() if any(one.is_judged for one in self.benchmarks) else None
        return {
            "version": package_version(),
            "model": job.model.model,
            "weights_sha256": job.weights_sha256,
            "generation": job.generation.model_dump(mode="json"),
            "num_generations": job.num_generations,
            "judge": judge,
            "audit": job.audit.value,
            "audit_settings": job.audit_settings.model_dump(mode="json"),
            "limit": job.limit,
        }

    def _judge(self) -> dict[str, JsonValue] | None:
        job = self.job
        if job.judge is None:
            return None
        return {
            "model": job.judge.model,
            "judging": job.judging.model_dump(mode="json"),
            "judge_retries": job.judge_retries,
            "retry_temperature": job.retry_temperature,
        }


def make_plan(job: EvaluationJob, make: MakeBenchmark) -> Plan:
    """Reads the items of every benchmark.

    Args:
        job: What is asked for.
        make: A benchmark by its name; raises `ValueError` for one that is not known.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a benchmark is not known, cannot be asked in this style or lacks a judge; or a bad row.
    """
    plan = Plan(job, [_planned(job, source, make) for source in job.benchmarks])
    judged = [one.name for one in plan.benchmarks if one.is_judged]
    if judged and job.judge is None and job.only is not Stage.GENERATE:
        mend = "give --judge and --judge-model, or --only generate"
        raise ValueError(f"--judge: missing; a model judges {', '.join(judged)}; {mend}")
    return plan


def digest(*parts: JsonValue) -> str:
    """SHA-256 of values, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def generation_digest(job: EvaluationJob, prompt: Prompt) -> str:
    """Of everything that decides the generations of a prompt."""
    sampled = job.generation.model_dump(mode="json")
    model = job.weights_sha256 or job.model.model
    return digest(model, sampled, job.num_generations, prompt.model_dump(mode="json")["messages"])


def judge_digest(model: str, prompt_digest: str, settings: SamplingSettings, request: JudgeRequest) -> str:
    """Of everything that decides one reply of a judge; where the reply is kept for other evaluations."""
    return digest(model, prompt_digest, settings.model_dump(mode="json"), request.model_dump(mode="json"))


def _planned(job: EvaluationJob, source: BenchmarkSource, make: MakeBenchmark) -> PlannedBenchmark:
    benchmark = make(source.name)
    card = benchmark.card
    style = style_of(card, job.style)
    items = read_items(benchmark, source.path, job.limit)
    content: list[JsonValue] = [item.model_dump(mode="json") for item in items]
    return PlannedBenchmark(
        source=source,
        benchmark=benchmark,
        style=style,
        items=items,
        prompts={item.id: benchmark.prompts(item, style) for item in items},
        sha256=digest(card.prompt_digest, content),
    )


def source_sha256(source: BenchmarkSource) -> str | None:
    """Digest of a benchmark's file; None of a folder, whose items' digest says it."""
    return file_sha256(source.path) if source.path.is_file() else None
