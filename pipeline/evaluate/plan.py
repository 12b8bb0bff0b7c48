"""What an evaluation is of, and what it takes: the job as asked for, items of its benchmarks, tokens, money.

The digest of a plan's part is the version of its Inspect task (`run.py`): what was made with other settings
or of other files is never taken for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from pydantic import Field, JsonValue

from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from reward.config import AuditConfig, LocalSamplerConfig, OpenAISamplerConfig, SamplingSettings, Settings
from reward.provenance import json_sha256, package_version
from reward.samplers import Message

RESULTS_FILE, ITEMS_FILE = "results.json", "items.jsonl"
# How model and judge are sampled: the paper's Table 6.
GENERATION = SamplingSettings(temperature=0.6, top_p=0.95, top_k=20, max_tokens=8192, seed=0)
NUM_GENERATIONS = 8
JUDGING = SamplingSettings(temperature=0, max_tokens=2048, seed=0)
JUDGE_RETRIES = 2
# What a dry run assumes: English, and some answers and verdicts.
CHARS_PER_TOKEN, ANSWER_TOKENS, VERDICT_TOKENS = 4, 300, 200
# The settings that decide what a stage makes.
GENERATING = ("weights_sha256", "engine", "generation", "num_generations")
_JUDGING = ("version", "judge", "audit", "audit_settings")  # rules are of a version


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
    num_generations: int = Field(default=NUM_GENERATIONS, ge=1, le=128, description="Inspect's epochs.")
    judging: SamplingSettings = JUDGING
    judge_retries: int = Field(default=JUDGE_RETRIES, ge=0, le=10, description="After an unreadable reply.")
    audit: AuditKind = AuditKind.LEXICAL
    audit_settings: AuditConfig = AuditConfig()
    limit: int | None = Field(default=None, ge=1, description="First items of each benchmark only.")
    concurrency: int = Field(
        default=16, ge=1, le=1024, description="Items at once; each is `num_generations` requests."
    )
    cache: bool = Field(default=True, description="Inspect keeps the judge's replies for equal questions.")
    logs: Path | None = Field(default=None, description="Inspect's logs; None: `logs` in `out`.")
    only: Stage | None = Field(default=None, description="This stage alone; the other one later.")

    @property
    def results_path(self) -> Path:
        """Written last."""
        return self.out / RESULTS_FILE

    def log_dir(self, stage: Stage) -> Path:
        return (self.logs or self.out / "logs") / stage.value

    def settings(self, *, is_judged: bool) -> dict[str, JsonValue]:
        """Everything that can change a figure: not where a model runs, nor how many requests run at once."""
        named = (*GENERATING, "judging", "judge_retries", "audit", "audit_settings", "limit")
        kept = self.model_dump(mode="json", include=set(named))
        judging = {name: kept.pop(name) for name in ("judging", "judge_retries")}
        is_asked = is_judged or self.audit is AuditKind.MODEL
        judge = {"model": self.judge.model, **judging} if self.judge and is_asked else None
        # Of an engine here, where it was chosen; else it is the machine's, or the server's.
        engine = self.model.model_dump(include={"dtype", "max_model_len"}, exclude_none=True) or None
        made_by: dict[str, JsonValue] = {"version": package_version(), "model": self.model.model}
        return {**made_by, "judge": judge, "engine": engine, **kept}


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
    def is_judged(self) -> bool:
        """Whether a judge is asked; else rules read all of it."""
        return self.benchmark.verdict is not None

    @property
    def num_answers(self) -> int:
        """Of the items that take part, given ones too."""
        each = 1 if self.benchmark.is_given else self.job.num_generations
        return len(self.asked) * len(self.benchmark.prompts(self.items[0], self.style)) * each

    def sha256(self, items: Sequence[Item]) -> str:
        """Of items and the benchmark's prompts."""
        return json_sha256(
            [self.benchmark.card.prompt_digest, [item.model_dump(mode="json") for item in items]]
        )

    def version(self, stage: Stage) -> str:
        """Digest of everything but the limit that decides what a stage makes of it."""
        settings = self.job.settings(is_judged=self.is_judged)
        names = GENERATING if stage is Stage.GENERATE else (*GENERATING, *_JUDGING)
        model = self.job.weights_sha256 or self.job.model.model
        made_by = {name: settings[name] for name in names}
        return json_sha256([model, self.style.value, self.sha256(self.items), made_by])


def make_plan(
    job: EvaluationJob,
    *,
    option: str = "--judge",
    fix: str = "give --judge and --judge-model, or --only generate",
) -> list[PlannedBenchmark]:
    """Reads the items of every benchmark, and demands a judge where one is needed.

    `option` is the one by which a user gives a judge, and `fix` what else a user can do.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a benchmark is not known, cannot be asked in this style or lacks a judge; or a bad row.
    """
    planned = []
    for name, path in job.benchmarks.items():
        benchmark = make_benchmark(name)
        style = benchmark.style_of(job.style)
        planned.append(PlannedBenchmark(job, name, path, benchmark, style, benchmark.read_items(path)))
    judged = [one.name for one in planned if one.is_judged or job.audit is AuditKind.MODEL]
    if judged and job.judge is None and job.only is not Stage.GENERATE:
        raise ValueError(f"{option}: missing; a model judges {', '.join(judged)}; {fix}")
    return planned


@dataclass(frozen=True)
class Requests:
    """What is asked of one server, retries apart, and the tokens that it takes."""

    number: int
    num_read: int
    num_written: int


def expect(one: PlannedBenchmark) -> tuple[Requests, Requests]:
    """What a whole evaluation asks of model and judge for a benchmark; nothing is asked now."""
    prompts = [(item, prompt) for item in one.asked for prompt in one.benchmark.prompts(item, one.style)]
    read = fmean(_tokens(prompt.messages) for _, prompt in prompts)
    judged = fmean(_tokens(one.benchmark.judge_request(*asked, asked[1].given or "")) for asked in prompts)
    num_answers, judged = (0, judged) if one.benchmark.is_given else (one.num_answers, judged + ANSWER_TOKENS)
    num_verdicts = one.num_answers if one.is_judged else 0
    by_model = one.job.audit is AuditKind.MODEL and one.benchmark.has_answers
    num_audits = num_answers * (1 + one.job.audit_settings.voters) if by_model else 0  # Proposer and voters
    num_asked, num_read = num_verdicts + num_audits, num_verdicts * judged + num_audits * read
    return (
        Requests(num_answers, round(num_answers * read), num_answers * ANSWER_TOKENS),
        Requests(num_asked, round(num_read), num_asked * VERDICT_TOKENS),
    )


def _tokens(chat: Sequence[Message]) -> float:
    return sum(len(message["content"]) for message in chat) / CHARS_PER_TOKEN
