"""The evaluate stages: candidate and champion by the same benchmarks, judge, sampling and seeds.

What they would refuse, `check_evaluation` refuses before anything is trained.
"""

from collections.abc import Sequence
from pathlib import Path

from orchestration.retrain.attempt import Attempt
from orchestration.retrain.records import Stage, StageRequest, StageResult
from orchestration.retrain.training import MODEL, bring_weights
from orchestration.settings.evaluate import EvaluationSettings, evaluation_job
from pipeline.evaluate.plan import make_plan
from pipeline.evaluate.results import Counts

EVALUATION, LOGS = "evaluation", "evaluation-logs"
_UNKNOWN = "candidate"  # weights that are not trained yet


class IncompleteError(RuntimeError):
    """Some answers or judgements are missing, and asking again may bring them."""


def evaluate(attempt: Attempt) -> StageResult:
    from pipeline.evaluate.run import run_evaluation

    given, out = attempt.job.evaluation, attempt.folder / EVALUATION
    here = {name: attempt.file(path) for name, path in given.benchmarks.items()}
    given = given.model_copy(update={"benchmarks": here})
    # The logs have times in them, and are no part of what is published.
    job = evaluation_job(given, str(_weights(attempt)), out=out, logs=attempt.folder / LOGS)
    wanted = attempt.request.inputs["weights"]
    if job.weights_sha256 != wanted:
        raise ValueError(f"{job.model.model}: holds other weights than {wanted}; remove the folder")
    manifest, tokens = run_evaluation(job, tell=attempt.tell)
    assert manifest is not None, "model and judge were asked together"
    attempt.tell(label="evaluated", done=1, total=1, tokens=tokens, now=True)
    demand_whole(attempt.request, [one.counts for one in manifest.benchmarks.values()])
    return attempt.result({EVALUATION: attempt.publish(job.out, kind=EVALUATION).digest})


def demand_whole(request: StageRequest, counts: Sequence[Counts]) -> None:
    """Raises where answers or judgements are missing that may yet come.

    In the last attempt of a command as many may be missing as the gates allow: they then decide about what is
    there. More would refuse the candidate for good, for what a server did. Attempts of earlier commands do
    not count: they may have failed for other reasons. `counts` are those of each benchmark.

    Raises:
        IncompleteError: they are asked for again, by this command or by the next.
    """
    num_missing = sum(one.num_failed + one.num_unjudged for one in counts)
    share = max((one.num_failed + one.num_unjudged) / max(one.num_asked, 1) for one in counts)
    is_last = request.command_attempt >= request.job.retries.attempts
    if num_missing and not (is_last and share <= request.max_missing):
        raise IncompleteError(
            f"{num_missing:,} answers or judgements are missing ({share:.0%} of a benchmark's answers); "
            "they are asked for again"
        )


def _weights(attempt: Attempt) -> Path:
    if attempt.request.stage is Stage.EVALUATE_CHAMPION:
        assert attempt.request.champion is not None, "somebody is champion"
        return bring_weights(attempt.request.champion)
    return attempt.bring(attempt.made(Stage.TRAIN, MODEL), attempt.folder / MODEL)


def check_evaluation(given: EvaluationSettings) -> None:
    """Refuses what the evaluate stages would refuse, hours later, of settings and benchmarks' files."""
    planned = evaluation_job(given, _UNKNOWN, out=Path("evaluation"))  # where nothing is written
    make_plan(planned, option="evaluation.judge", fix="give its url and model, or leave the benchmark out")
