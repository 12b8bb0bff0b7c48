"""What the evaluate stages ask for, and what they would refuse, known before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from orchestration.retrain.job import EvaluationSettings
from orchestration.settings.evaluate import evaluation_job, judge_config
from pipeline.evaluate.plan import EvaluationJob, make_plan

_UNKNOWN = "candidate"  # weights that are not trained yet


def job_of(
    given: EvaluationSettings, weights: str, paths: Mapping[str, Path], *, out: Path, logs: Path
) -> EvaluationJob:
    """The evaluation of some weights.

    Args:
        given: Of the retraining's job.
        weights: Their folder.
        paths: Where the files of each benchmark are.
        out: Folder of the results.
        logs: Folder of Inspect's logs.

    Raises:
        ValueError: a setting cannot be used.
    """
    judge = given.judge
    return evaluation_job(
        weights,
        [f"{name}={path}" for name, path in paths.items()],
        model_name=None,
        judge=judge_config(judge.url, judge.model, key_env=judge.key_env) if judge else None,
        timeout_s=given.timeout_s,
        seed=given.seed,
        max_tokens=given.max_tokens,
        named={
            "out": out,
            "logs": logs,
            "style": given.style,
            "limit": given.limit,
            "concurrency": given.concurrency,
            "audit": given.audit,
            "num_generations": given.generations,
        },
        assignments=given.overrides,
    )


def check_evaluation(given: EvaluationSettings) -> None:
    """Refuses what the evaluate stages would refuse, hours later, of settings and benchmarks' files.

    Raises:
        FileNotFoundError: a benchmark's files are not there.
        ValueError: a benchmark is not known or cannot be asked so, a row is bad, a setting cannot be used, or
            a judge is missing.
    """
    nowhere = Path("evaluation")  # nothing is written
    fix = "give its url and model, or leave the benchmark out"
    job = job_of(given, _UNKNOWN, given.benchmarks, out=nowhere, logs=nowhere)
    make_plan(job, option="evaluation.judge", fix=fix)
