"""An evaluation: two sets of Inspect's, first the model's answers, then their judgements and audits.

    OUT/logs/generate/*.eval       what the model answered
    OUT/logs/judge/*.eval          the same answers, judged: what `inspect view` shows
    OUT/BENCHMARK/items.jsonl      scores and judgements, in the order of the items (`results.py`)
    OUT/results.json               last, by rename: settings, digests, licences, figures

The model is let go before a judge is asked, so that both fit one GPU, and `--only` splits the two. Inspect
resumes what was interrupted and tries again what failed; when all is done, nothing is asked or changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog

from pipeline.evaluate.logs import answered_samples, ask_again, newest_logs, read_log
from pipeline.evaluate.plan import EvaluationJob, PlannedBenchmark, Stage, make_plan
from pipeline.evaluate.results import Manifest, write_results
from pipeline.evaluate.tasks import audits, benchmark_task
from pipeline.evaluate.tasks.samples import answered, answers
from pipeline.evaluate.tasks.scorers import verdict
from pipeline.evaluate.tasks.served import ROLE, ServedModel, as_model, served_model
from reward.offline.files import only_writer

_LOCK_FILE = ".lock"


@dataclass
class Outcome:
    """How a run ended."""

    manifest: Manifest | None = None  # None where the judge is still to be asked
    num_tokens: int = 0  # paid for in this run, to model and judge


def run_evaluation(
    job: EvaluationJob,
    *,
    tell: Callable[..., None] = lambda **_: None,
    display: str = "none",
    bundle: Path | None = None,
) -> Outcome:
    """Evaluates a model, or goes on with it.

    Args:
        job: What to evaluate, and how.
        tell: Called with every request: `label`, how many were `done` before it in this run, and `total`.
        display: How Inspect shows progress, such as "rich".
        bundle: Folder for the judged logs with Inspect's viewer, as a static site.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used, the folder is another evaluation's, or a server does
            not answer. What was done is kept.
    """
    planned, outcome = make_plan(job), Outcome()
    with only_writer(job.out / _LOCK_FILE, what="evaluation"):
        if job.overwrite:
            job.results_path.unlink(missing_ok=True)
            for stage in Stage:
                shutil.rmtree(job.log_dir(stage), ignore_errors=True)
        sets = _Sets(job, planned, tell, display)
        if job.only is not Stage.JUDGE:
            outcome.num_tokens += sets.generate()
        if job.only is not Stage.GENERATE:
            made = newest_logs(job, Stage.GENERATE)
            outcome.num_tokens += sets.judge(made, bundle)
            judged = newest_logs(job, Stage.JUDGE)
            found = {one.name: read_log(one, judged[one.name], made.get(one.name)) for one in planned}
            outcome.manifest = write_results(planned, found)
        return outcome


@dataclass(frozen=True)
class _Sets:
    """Inspect's two sets."""

    job: EvaluationJob
    planned: Sequence[PlannedBenchmark]
    tell: Callable[..., None]
    display: str

    def generate(self) -> int:
        """Has the model answer; returns the tokens."""
        job, asked = self.job, [one for one in self.planned if not one.benchmark.is_given]
        model = self._served(job.model, "model", "generating", asked)
        solver = answers(seed=job.generation.seed)
        tasks = [self._task(one, Stage.GENERATE, solver=solver) for one in asked]
        # One item's answers are as many requests, which a server reads the prompt of once.
        self._run(Stage.GENERATE, tasks, [model], job.concurrency * job.num_generations)
        return model.num_tokens

    def judge(self, made: Mapping[str, EvalLog], bundle: Path | None) -> int:
        """Has the answers of the model's logs judged and audited; returns the tokens."""
        job, tasks = self.job, []
        judging, audit = (part.model_dump(mode="json") for part in (job.judging, job.audit_settings))
        judge = verdict(retries=job.judge_retries, cache=job.cache, settings=judging)
        for one in self.planned:
            log = made.get(one.name)
            if log is None and not one.benchmark.is_given:
                where = job.log_dir(Stage.GENERATE)
                raise ValueError(f"{where}: holds no answers to {one.name}; generate first")
            solver = answers() if log is None else answered(answered_samples(log))
            scorers = [judge, *audits(one.benchmark, job.audit, audit)]
            tasks.append(self._task(one, Stage.JUDGE, solver=solver, scorer=scorers))
        models = [served_model(job.model, "model")]  # named in the logs, and not asked
        options: dict[str, Any] = {"bundle_dir": str(bundle), "bundle_overwrite": True} if bundle else {}
        if job.judge is not None:
            models.append(self._served(job.judge, "judge", "judging", self.planned))
            options["model_roles"] = {ROLE: as_model(models[1])}
        self._run(Stage.JUDGE, tasks, models, job.concurrency, **options)
        return models[-1].num_tokens  # the first has none

    def _task(self, one: PlannedBenchmark, stage: Stage, **options: Any) -> Task:
        return benchmark_task(
            one.benchmark,
            one.items,
            one.style,
            location=str(one.path),
            generation=self.job.generation,
            epochs=self.job.num_generations,
            name=one.name,
            version=one.version(stage),
            **options,
        )

    def _served(self, config: Any, who: str, label: str, planned: Sequence[PlannedBenchmark]) -> ServedModel:
        total = sum(one.num_answers for one in planned)

        def on_request() -> None:
            self.job.results_path.unlink(missing_ok=True)
            self.tell(label=label, done=served.num_requests, total=total)

        served = served_model(config, who, on_request)
        return served

    def _run(
        self, stage: Stage, tasks: list[Task], models: list[ServedModel], max_samples: int, **options: Any
    ) -> None:
        """Runs a set of Inspect's; the first model is the one under test."""
        if not tasks:
            return
        self._resume(stage)
        try:
            _, logs = eval_set(
                tasks,
                str(self.job.log_dir(stage)),
                model=as_model(models[0]),
                limit=self.job.limit,
                max_samples=max_samples,
                max_connections=max_samples,
                display=self.display,  # type: ignore[arg-type]
                # What failed is asked again by the next command, not at once.
                retry_attempts=1,
                retry_immediate=False,
                # A log recovered from the realtime buffer has the judge's replies in place of the answers.
                log_realtime=False,
                log_dir_allow_dirty=True,  # of benchmarks that are not asked now
                fail_on_error=True,
                continue_on_fail=True,
                **options,
            )
        except PrerequisiteError as error:
            raise ValueError(f"{self.job.log_dir(stage)}: {error}") from error
        if len(logs) < len(tasks):  # so it says that it was interrupted
            raise KeyboardInterrupt
        for one in models:
            if one.down is not None:
                raise one.down

    def _resume(self, stage: Stage) -> None:
        """Has what failed asked again; refuses what was made otherwise, as it was paid for."""
        planned = {one.name: one for one in self.planned}
        for name, log in newest_logs(self.job, stage).items():
            if (one := planned.get(name)) is not None:
                if log.eval.task_version != one.version(stage):
                    fix = "use another --out, or --overwrite to start again"
                    raise ValueError(f"{log.location}: was made with other settings or data; {fix}")
                asked = {item.id for item in one.asked}
                if extra := [sample.id for sample in log.samples or () if str(sample.id) not in asked]:
                    fix = "leave --limit out, or --overwrite"
                    raise ValueError(f"{log.location}: item {extra[0]!r} is beyond --limit; {fix}")
            if stage is Stage.JUDGE:  # an answer that failed is an error, and Inspect asks again by itself
                ask_again(log)
