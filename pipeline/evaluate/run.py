"""An evaluation: two sets of Inspect's, first the model's answers, then their judgements and audits.

    OUT/logs/generate/*.eval       what the model answered
    OUT/logs/judge/*.eval          the same answers, judged: what `inspect view` shows
    OUT/BENCHMARK/items.jsonl      scores and judgements, in the order of the items (`results.py`)
    OUT/results.json               last, by rename: settings, digests, licences, figures

The model is let go before a judge is asked, so that both fit one GPU. Inspect resumes what was interrupted
and tries again what failed; what was made with other settings or of other files is another task to it.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    ProvenanceData,
    invalidate_samples,
    list_eval_logs,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.model import GenerateConfig, Model
from inspect_ai.scorer import Score

from pipeline.evaluate.benchmark import Item
from pipeline.evaluate.compare import Conditions, require_alike
from pipeline.evaluate.plan import AuditKind, EvaluationJob, PlannedBenchmark, Stage, make_plan
from pipeline.evaluate.results import (
    Counts,
    ItemResult,
    JudgedGeneration,
    Manifest,
    refuse_other,
    write_results,
)
from pipeline.evaluate.tasks import audits, benchmark_task
from pipeline.evaluate.tasks.samples import NO_RESPONSE, UNFINISHED, answered, answers, asked_of
from pipeline.evaluate.tasks.scorers import (
    FAILURE,
    GRADER_ERROR,
    GRADER_FAILED,
    JUDGED,
    NOT_AUDITED,
    UNREADABLE,
    VERDICT,
    item_scores,
    verdict,
)
from pipeline.evaluate.tasks.served import ROLE, ServedModel, require_answer, served_model
from reward.config import OpenAISamplerConfig
from reward.offline.files import only_writer
from reward.offline.resume import FINAL_REASONS
from reward.provenance import json_sha256

_TOO_LONG = "model_length"  # Inspect's word for a prompt that does not fit


def run_evaluation(
    job: EvaluationJob,
    *,
    compared: Manifest | None = None,
    tell: Callable[..., None] = lambda **_: None,
    display: str = "none",
    bundle: Path | None = None,
) -> tuple[Manifest | None, int]:
    """Evaluates a model, or goes on with it.

    Args:
        job: What to evaluate, and how.
        compared: Another evaluation that this one will be held against: one made otherwise is refused first.
        tell: Called with every answer: `label`, how many are `done` in this run, and the `total`.
        display: How Inspect shows progress, such as "rich".
        bundle: Folder for the judged logs with Inspect's viewer, as a static site.

    Returns:
        The figures, None where the judge is still to be asked; and the tokens of this run, model and judge.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a row or a setting cannot be used, the folder has the figures of another evaluation, or a
            server does not answer. What was done is kept.
    """
    planned = make_plan(job)
    if compared is not None:
        require_alike(Conditions.planned(planned), Conditions.measured(compared), "--compare")
    refuse_other(planned)
    is_asked = job.audit is AuditKind.MODEL or any(one.is_judged for one in planned)
    if job.judge is not None and is_asked and job.only is None and not job.results_path.exists():
        asyncio.run(require_answer(job.judge, "judge"))  # the model may take hours
    with only_writer(job.out / ".lock", what="evaluation"):
        sets = _Sets(job, planned, tell, display)
        num_tokens = 0 if job.only is Stage.JUDGE else sets.generate()
        if job.only is Stage.GENERATE:
            return None, num_tokens
        num_tokens += sets.judge(bundle)
        judged = _newest_logs(planned, Stage.JUDGE)
        found = {one.name: _read_log(one, judged[one.name]) for one in planned}
        return write_results(planned, found), num_tokens


@dataclass(frozen=True)
class _Sets:
    job: EvaluationJob
    planned: Sequence[PlannedBenchmark]
    tell: Callable[..., None]
    display: str

    def generate(self) -> int:
        """Has the model answer; returns the tokens."""
        job, asked = self.job, [one for one in self.planned if not one.benchmark.is_given]
        self._demand_no_smaller_limit(Stage.GENERATE)
        if isinstance(job.model, OpenAISamplerConfig) and self._lacks_answers(asked):
            asyncio.run(require_answer(job.model, "model"))
        solver = answers(seed=job.generation.seed)
        tasks = [self._task(one, Stage.GENERATE, solver=solver) for one in asked]
        model = served_model(job.model, "model", self._on_answer("generating", asked))
        # One item's answers are as many requests, which a server reads the prompt of once.
        return self._run(Stage.GENERATE, tasks, [model], job.concurrency * job.num_generations)

    def judge(self, bundle: Path | None) -> int:
        """Has the answers of the model's logs judged and audited; returns the tokens."""
        job, tasks, made = self.job, [], _newest_logs(self.planned, Stage.GENERATE)
        judging, audit = (part.model_dump(mode="json") for part in (job.judging, job.audit_settings))
        judge = verdict(retries=job.judge_retries, cache=job.cache, settings=judging)
        for one in self.planned:
            log = made.get(one.name)
            if log is None and not one.benchmark.is_given:
                where = job.log_dir(Stage.GENERATE)
                raise ValueError(f"{where}: holds no answers to {one.name} by these settings; generate first")
            solver = answers() if log is None else answered(log)
            scorers = [judge, *audits(one.benchmark, job.audit, audit)]
            tasks.append(self._task(one, Stage.JUDGE, solver=solver, scorer=scorers))
        self._demand_no_smaller_limit(Stage.JUDGE)
        for log in _newest_logs(self.planned, Stage.JUDGE).values():
            _ask_again(log)
        models = [served_model(job.model, "model")]  # named in the logs, and not asked
        options: dict[str, Any] = {"bundle_dir": str(bundle), "bundle_overwrite": True} if bundle else {}
        if job.judge is not None:
            models.append(served_model(job.judge, "judge", self._on_answer("judging", self.planned)))
            options["model_roles"] = {ROLE: Model(models[1], GenerateConfig())}
        return self._run(Stage.JUDGE, tasks, models, job.concurrency, **options)

    def _demand_no_smaller_limit(self, stage: Stage) -> None:
        """Inspect goes on with what is not whole within the limit alone, and removes the rest of it."""
        for name, log in _newest_logs(self.planned, stage).items():
            num, limit = len({one.id for one in log.samples or ()}), self.job.limit
            is_whole = log.status == "success" and all(map(_is_final, log.samples or ()))
            if limit is not None and limit < num and not is_whole:
                begun = f"{num} items of {name} are begun in {self.job.out}"
                raise ValueError(f"--limit {limit}: {begun}; finish them without it, or use another --out")

    def _lacks_answers(self, asked: Sequence[PlannedBenchmark]) -> bool:
        """Whether the model is to be asked for anything."""
        logs = _newest_logs(self.planned, Stage.GENERATE)
        made = {name: {one.id for one in log.samples or ()} for name, log in logs.items()}
        is_whole = {name: log.status == "success" for name, log in logs.items()}
        return any(
            not is_whole.get(one.name) or not {item.id for item in one.asked} <= made[one.name]
            for one in asked
        )

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

    def _on_answer(self, label: str, planned: Sequence[PlannedBenchmark]) -> Callable[[], None]:
        done, total = count(1), sum(one.num_answers for one in planned)

        def on_answer() -> None:
            self.job.results_path.unlink(missing_ok=True)
            self.tell(label=label, done=next(done), total=total)

        return on_answer

    def _run(
        self, stage: Stage, tasks: list[Task], models: list[ServedModel], max_samples: int, **options: Any
    ) -> int:
        """Runs a set of Inspect's; the first model is the one under test. Returns the tokens."""
        if not tasks:
            return 0
        try:
            _, logs = eval_set(
                tasks,
                str(self.job.log_dir(stage)),
                model=Model(models[0], GenerateConfig()),
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
        return sum(one.num_tokens for one in models)


def _newest_logs(planned: Sequence[PlannedBenchmark], stage: Stage) -> dict[str, EvalLog]:
    """The newest log of each benchmark that was made as is planned."""
    folder, versions = planned[0].job.log_dir(stage), {one.name: one.version(stage) for one in planned}
    infos = list_eval_logs(str(folder), descending=False) if folder.is_dir() else []
    logs = [log for log in map(read_eval_log, infos) if versions.get(log.eval.task) == log.eval.task_version]
    return {log.eval.task: log for log in logs}


def _read_log(one: PlannedBenchmark, log: EvalLog) -> tuple[list[ItemResult], Counts]:
    """The result of every item, in order, and what they rest on, from the log of a benchmark's judgements."""
    samples: dict[str, list[EvalSample]] = defaultdict(list)
    for sample in sorted(log.samples or (), key=lambda sample: sample.epoch):
        samples[str(sample.id)].append(sample)
    scores = item_scores(log)
    items = [_result(item, samples[item.id], scores.get(item.id, {})) for item in one.asked]
    return items, _counts(items, [sample for item in one.asked for sample in samples[item.id]])


def _ask_again(log: EvalLog) -> None:
    """Has Inspect ask again for what was not judged or audited, and may yet be."""
    again = [one.uuid for one in log.samples or () if one.uuid and not _is_final(one)]
    if again and log.status != "started":  # of a kill: Inspect recovers it first
        provenance = ProvenanceData(timestamp=datetime.now(UTC), author="march", reason="could not be read")
        write_eval_log(invalidate_samples(log, again, provenance))


def _is_final(sample: EvalSample) -> bool:
    judged, audited = _score(sample, "verdict"), _score(sample, "numbers")
    if judged.reason in (GRADER_FAILED, GRADER_ERROR):
        return False
    return audited.reason != NOT_AUDITED or (audited.metadata or {})[VERDICT]["reason"] in FINAL_REASONS


def _result(item: Item, samples: Sequence[EvalSample], scores: dict[str, float | None]) -> ItemResult:
    generations = []
    for sample in samples:
        judged, audited = (_score(sample, scorer).metadata or {} for scorer in ("verdict", "numbers"))
        for prompt, made in asked_of(sample).answers(sample.output).items():
            if FAILURE not in judged:
                said = {"judgement": judged[JUDGED][prompt], "verdict": audited.get(VERDICT)}
                one = {"prompt": prompt, "text": made.text, **said}
                generations.append(JudgedGeneration.model_validate(one))
    generations.sort(key=lambda one: one.prompt)  # all answers to a prompt side by side
    digest = json_sha256(item.model_dump(mode="json"))
    about = {"item": item.id, "slice": item.slice, "cluster": item.cluster, "sha256": digest}
    return ItemResult(**about, scores=scores, generations=tuple(generations))


def _counts(items: Sequence[ItemResult], samples: Sequence[EvalSample]) -> Counts:
    judged = Counter(_score(sample, "verdict").reason for sample in samples)
    audited = Counter(_score(sample, "numbers").reason for sample in samples)
    lost = Counter[str | None]()  # answers by why there is none: an epoch that failed has those to no prompt
    for sample in samples:
        verdict = _score(sample, "verdict")
        if FAILURE in (verdict.metadata or {}):
            lost[verdict.reason] += len(asked_of(sample).prompts)
    choices = [choice for sample in samples for choice in sample.output.choices]
    return Counts(
        num_items=len(items),
        num_generations=sum(len(item.generations) for item in items),
        num_truncated=sum(choice.stop_reason == "max_tokens" for choice in choices),
        num_too_long=lost[_TOO_LONG],
        num_unfinished=lost[UNFINISHED],
        num_failed=lost.total() - lost[_TOO_LONG] - lost[UNFINISHED],
        num_unread=judged[GRADER_FAILED] + judged[UNREADABLE],
        num_unjudged=judged[GRADER_ERROR],
        num_unaudited=audited[NOT_AUDITED],
    )


def _score(sample: EvalSample, scorer: str) -> Score:
    """What a scorer said; nothing of an answer that failed."""
    failed = Score.unscored(reason=NO_RESPONSE, metadata={FAILURE: NO_RESPONSE})
    return (sample.scores or {}).get(scorer, failed)
