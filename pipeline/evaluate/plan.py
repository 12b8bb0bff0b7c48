"""What an evaluation is of: the job as asked for, the items of its benchmarks, and digests of what decides.

The digest of a plan's part is the version of its Inspect task (`run.py`): what was made with other settings
or of other files is never taken for it.
"""

from __future__ import annotations

import hashlib
import json
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
from reward.provenance import package_version

RESULTS_FILE, ITEMS_FILE = "results.json", "items.jsonl"
_GENERATING = ("weights_sha256", "generation", "num_generations")


class Stage(StrEnum):
    """A part of the work that can be done by itself, so that model and judge need not run together."""

    GENERATE = "generate"
    JUDGE = "judge"


class AuditKind(StrEnum):
    """How the numbers of the answers are audited."""

    LEXICAL = "lexical"  # looked up in the documents
    MODEL = "model"  # the judge's model proposes, checks and votes
    NONE = "none"


class EvaluationJob(Settings):
    """One evaluation of one model. Defaults are the paper's (Table 6) where it names them."""

    out: Path
    benchmarks: dict[str, Path] = Field(min_length=1, description="Where the official files of each are.")
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
    def _auditor_is_there(self) -> Self:
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

    def kept(self, *names: str) -> dict[str, JsonValue]:
        """Some settings, as results and digests have them."""
        return self.model_dump(mode="json", include=set(names))

    def judge_settings(self) -> dict[str, JsonValue] | None:
        """The same of the judge, if there is one."""
        return {"model": self.judge.model, **self.kept("judging", "judge_retries")} if self.judge else None


@dataclass(frozen=True)
class PlannedBenchmark:
    """A benchmark of a job whose items were read and checked."""

    job: EvaluationJob
    name: str
    path: Path  # of its official files
    benchmark: Benchmark
    style: PromptStyle
    items: Sequence[Item]  # all of the file: a limit decides at the end

    @property
    def asked(self) -> Sequence[Item]:
        """The items that take part."""
        return self.items[: self.job.limit]

    @property
    def prompts_each(self) -> int:
        """Prompts of an item, which is the same number for all."""
        return len(self.prompts(self.items[0]))

    @property
    def is_given(self) -> bool:
        """Whether answers are given, so that it measures the judge and nothing is asked of the model."""
        return self.prompts(self.items[0])[0].given is not None

    @property
    def num_answers(self) -> int:
        """Of the items that take part, given ones too."""
        each = self.prompts_each if self.is_given else self.prompts_each * self.job.num_generations
        return len(self.asked) * each

    @property
    def is_judged(self) -> bool:
        """Whether a judge is asked of any generation, or rules read all of them."""
        item = self.items[0]
        return self.benchmark.judge_request(item, self.prompts(item)[0], "") is not None

    def prompts(self, item: Item) -> Sequence[Prompt]:
        """The chats of an item."""
        return self.benchmark.prompts(item, self.style)

    def sha256(self, items: Sequence[Item]) -> str:
        """Of items and the benchmark's prompts."""
        content: list[JsonValue] = [item.model_dump(mode="json") for item in items]
        return digest(self.benchmark.card.prompt_digest, content)

    def version(self, stage: Stage) -> str:
        """Digest of everything but the limit that decides what a stage makes of it."""
        job = self.job
        model = job.weights_sha256 or job.model.model
        made = digest(model, self.style.value, job.kept(*_GENERATING), self.sha256(self.items))
        if stage is Stage.GENERATE:
            return made
        audits = list(job.kept("audit", "audit_settings").values())
        return digest(made, job.judge_settings() if self.is_judged else None, audits)


def settings_of(job: EvaluationJob, planned: Sequence[PlannedBenchmark]) -> dict[str, JsonValue]:
    """Everything that can change a figure: not where a model runs, nor how many requests run at once."""
    return {
        "version": package_version(),
        "model": job.model.model,
        **job.kept(*_GENERATING),
        "judge": job.judge_settings() if any(one.is_judged for one in planned) else None,
        **job.kept("audit", "audit_settings", "limit"),
    }


def make_plan(job: EvaluationJob) -> list[PlannedBenchmark]:
    """Reads the items of every benchmark, and demands a judge where one is needed.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a benchmark is not known, cannot be asked in this style or lacks a judge; or a bad row.
    """
    planned = read_benchmarks(job)
    if (judged := lacking_judge(planned)) and job.only is not Stage.GENERATE:
        fix = "give --judge and --judge-model, or --only generate"
        raise ValueError(f"--judge: missing; a model judges {', '.join(judged)}; {fix}")
    return planned


def read_benchmarks(job: EvaluationJob) -> list[PlannedBenchmark]:
    """Reads the items of every benchmark.

    Raises:
        FileNotFoundError, ValueError: as `make_plan`, which also demands a judge.
    """
    planned = []
    for name, path in job.benchmarks.items():
        benchmark = make_benchmark(name)
        style = benchmark.style_of(job.style)
        planned.append(PlannedBenchmark(job, name, path, benchmark, style, benchmark.read_items(path)))
    return planned


def lacking_judge(planned: Sequence[PlannedBenchmark]) -> list[str]:
    """Names of the benchmarks that a model must judge, where their job has none."""
    return [one.name for one in planned if one.is_judged and one.job.judge is None]


def digest(*parts: JsonValue) -> str:
    """SHA-256 of values, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
