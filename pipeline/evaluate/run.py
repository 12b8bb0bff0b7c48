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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from inspect_ai import Task, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from pipeline.evaluate.logs import answered_samples, ask_again, is_answered, is_judged, read_log
from pipeline.evaluate.plan import EvaluationJob, PlannedBenchmark, Stage, make_plan
from pipeline.evaluate.results import Manifest, write_results
from pipeline.evaluate.tasks.build import benchmark_task, other_scorers
from pipeline.evaluate.tasks.grader import ROLE
from pipeline.evaluate.tasks.served import ServedModel, Spent, served_model
from pipeline.evaluate.tasks.solver import Answered, answered, answers
from pipeline.evaluate.tasks.verdict import refuse_nonsense, verdict
from reward.offline.files import only_writer

_LOCK_FILE = ".lock"
_FIX = "use another --out, or --overwrite to start again"


class Tell(Protocol):
    """Watches an evaluation."""

    def __call__(self, *, label: str, done: int, total: int) -> None:
        """A request begins: how many before it in this run, and answers or judgements in all."""


@dataclass
class Outcome:
    """How a run ended."""

    manifest: Manifest | None = None  # None where the judge is still to be asked
    model: Spent = field(default_factory=Spent)
    judge: Spent = field(default_factory=Spent)


def run_evaluation(
    job: EvaluationJob, *, tell: Tell | None = None, display: str = "none", bundle: Path | None = None
) -> Outcome:
    """Evaluates a model, or goes on with it.

    Args:
        job: What to evaluate, and how.
        tell: Called with every request.
        display: How Inspect shows progress, such as "rich".
        bundle: Folder for the judged logs with Inspect's viewer, as a static site.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used, the folder is another evaluation's, a server does not
            answer, or the judge talks nonsense. What was done is kept.
    """
    planned, outcome = make_plan(job), Outcome()
    with only_writer(job.out / _LOCK_FILE, what="evaluation"):
        if job.overwrite:
            job.results_path.unlink(missing_ok=True)
            for stage in Stage:
                shutil.rmtree(job.log_dir(stage), ignore_errors=True)
        sets = _Sets(job, planned, tell, display)
        if job.only is not Stage.JUDGE:
            outcome.model = sets.generate()
        if job.only is not Stage.GENERATE:
            made = newest_logs(job, Stage.GENERATE)
            outcome.judge = sets.judge(made, bundle)
            judged = newest_logs(job, Stage.JUDGE)
            found = {one.name: read_log(one, judged[one.name], made.get(one.name)) for one in planned}
            for _, counts in (found[one.name] for one in planned if one.is_judged):
                refuse_nonsense(counts.num_judgements, counts.num_unread, job.most_unread)
            outcome.manifest = write_results(planned, found)
        return outcome


@dataclass(frozen=True)
class _Sets:
    """Inspect's two sets."""

    job: EvaluationJob
    planned: Sequence[PlannedBenchmark]
    tell: Tell | None
    display: str

    def generate(self) -> Spent:
        """Has the model answer."""
        job, asked = self.job, [one for one in self.planned if not one.is_given]
        model = self._served(job.model, "model", "generating", asked)
        tasks = [self._task(one, Stage.GENERATE, answers(seed=job.generation.seed), []) for one in asked]
        # One item's answers are as many requests, which a server reads the prompt of once.
        self._run(Stage.GENERATE, tasks, [model], job.concurrency * job.num_generations)
        return model.spent

    def judge(self, made: Mapping[str, EvalLog], bundle: Path | None) -> Spent:
        """Has the answers of the model's logs judged and audited."""
        job = self.job
        model = served_model(job.model, "model")  # named in the logs, and not asked
        judges = [self._served(job.judge, "judge", "judging", self.planned)] if job.judge else []
        tasks = [self._judged(one, made.get(one.name)) for one in self.planned]
        options: dict[str, Any] = {"model_roles": {ROLE: judges[0].as_model}} if judges else {}
        if bundle:
            options |= {"bundle_dir": str(bundle), "bundle_overwrite": True}
        self._run(Stage.JUDGE, tasks, [model, *judges], job.concurrency, **options)
        return judges[0].spent if judges else Spent()

    def _judged(self, one: PlannedBenchmark, made: EvalLog | None) -> Task:
        job = self.job
        if made is None and not one.is_given:
            raise ValueError(f"{job.log_dir(Stage.GENERATE)}: holds no answers to {one.name}; generate first")
        solver = answers() if made is None else answered(Answered(answered_samples(made)))
        judging, audit = (part.model_dump(mode="json") for part in (job.judging, job.audit_settings))
        judge = verdict(
            retries=job.judge_retries, cache=job.cache, settings=judging, most_unread=job.most_unread
        )
        others = other_scorers(one.benchmark, job.audit, audit)
        return self._task(one, Stage.JUDGE, solver, [judge, *others])

    def _task(self, one: PlannedBenchmark, stage: Stage, solver: Any, scorers: list[Any]) -> Task:
        return benchmark_task(
            one.benchmark,
            one.items,
            one.style,
            solver,
            scorers,
            location=str(one.path),
            generation=self.job.generation,
            epochs=self.job.num_generations,
            name=one.name,
            version=one.version(stage),
        )

    def _served(self, config: Any, who: str, label: str, planned: Sequence[PlannedBenchmark]) -> ServedModel:
        total = sum(one.num_answers for one in planned)

        def on_request() -> None:
            self.job.results_path.unlink(missing_ok=True)
            if self.tell is not None:
                self.tell(label=label, done=served.spent.num_requests, total=total)

        served = served_model(config, who, on_request)
        return served

    def _run(
        self, stage: Stage, tasks: list[Task], models: list[ServedModel], concurrency: int, **options: Any
    ) -> None:
        """Runs a set of Inspect's; the first model is the one under test."""
        if not tasks:
            return
        folder, versions = self.job.log_dir(stage), {task.name: task.version for task in tasks}
        for name, log in newest_logs(self.job, stage).items():
            if versions.get(name, log.eval.task_version) != log.eval.task_version:  # it was paid for
                raise ValueError(f"{log.location}: was made with other settings or data; {_FIX}")
            ask_again(log, is_answered if stage is Stage.GENERATE else is_judged)
        try:
            _, logs = eval_set(
                tasks,
                str(folder),
                model=models[0].as_model,
                limit=self.job.limit,
                max_samples=concurrency,
                max_connections=concurrency,
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
            raise ValueError(f"{folder}: {error}") from error
        if len(logs) < len(tasks):  # so it says that it was interrupted
            raise KeyboardInterrupt
        for one in models:
            if one.down is not None:
                raise one.down


def newest_logs(job: EvaluationJob, stage: Stage) -> dict[str, EvalLog]:
    """The newest log of each benchmark."""
    folder = job.log_dir(stage)
    infos = list_eval_logs(str(folder), descending=False) if folder.is_dir() else []
    return {log.eval.task: log for log in map(read_eval_log, infos)}
