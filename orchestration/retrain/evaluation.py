"""The evaluate stages: candidate and champion by the same benchmarks, judge, sampling and seeds."""

from __future__ import annotations

from pathlib import Path

from orchestration.retrain.benchmarks import job_of
from orchestration.retrain.materials import MAX_MISSING
from orchestration.retrain.records import ParentWeights
from orchestration.retrain.stages import StageRequest, StageResult
from orchestration.retrain.training import MODEL, bring_parent
from orchestration.retrain.workshop import Workshop
from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.results import BenchmarkFigures, Manifest

EVALUATION, CHAMPION, LOGS = "evaluation", "champion", "evaluation-logs"


class IncompleteError(RuntimeError):
    """Some answers or judgements are missing, and asking again may bring them."""


def evaluate(shop: Workshop) -> StageResult:
    """Evaluates the candidate's or the champion's weights.

    Raises:
        IncompleteError: something is missing that another attempt may bring.
        ValueError: a benchmark or a server cannot be used.
    """
    from pipeline.evaluate.run import run_evaluation

    job = _job(shop, _weights(shop))
    wanted = shop.request.inputs["weights"]
    if job.weights_sha256 != wanted:
        raise ValueError(f"{job.model.model}: holds other weights than {wanted}; remove the folder")
    outcome = run_evaluation(job, tell=shop.tell)
    manifest, tokens = outcome.manifest, outcome.num_tokens
    assert manifest is not None, "model and judge were asked together"
    shop.tell(label="evaluated", done=1, total=1, tokens=tokens, now=True)
    missing = num_missing(manifest)
    demand_whole(shop.request, missing, share=share_missing(manifest))
    published = shop.publish(job.out, kind=EVALUATION)
    primary = {name: one.primary.value if one.primary else None for name, one in manifest.measured.items()}
    return shop.result(
        outputs={EVALUATION: published.digest},
        facts={"primary": dict(primary), "num_missing": missing},
        tokens=tokens,
    )


def demand_whole(request: StageRequest, num_missing: int, *, share: float) -> None:
    """Raises where answers or judgements are missing that may yet come.

    In the last attempt of a command as many may be missing as the gates allow: they then decide about what is
    there. More would refuse the candidate for good, for what a server did. Attempts of earlier commands do
    not count: they may have failed for other reasons.

    Args:
        request: What is asked for.
        num_missing: Answers and judgements.
        share: The most that is missing of a benchmark, by its items.

    Raises:
        IncompleteError: they are asked for again, by this command or by the next.
    """
    is_last = request.command_attempt >= request.job.retries.attempts
    allowed = request.materials.get(MAX_MISSING, 0.0)
    assert isinstance(allowed, float)
    if num_missing and not (is_last and share <= allowed):
        raise IncompleteError(
            f"{num_missing:,} answers or judgements are missing ({share:.0%} of a benchmark's items); "
            "they are asked for again"
        )


def num_missing(manifest: Manifest) -> int:
    """Answers and judgements that a server did not give."""
    return sum(map(_not_given, manifest.benchmarks.values()))


def share_missing(manifest: Manifest) -> float:
    """The most of them in a benchmark, for each of its items."""
    found = manifest.benchmarks.values()
    return max((_not_given(one) / max(one.counts.num_items, 1) for one in found), default=0.0)


def _not_given(one: BenchmarkFigures) -> int:
    return one.counts.num_failed + one.counts.num_unjudged


def _weights(shop: Workshop) -> Path:
    champion = shop.request.materials.get(CHAMPION)
    if champion is not None:
        return bring_parent(ParentWeights.model_validate(champion))
    return shop.bring(shop.material(MODEL), shop.folder / MODEL)


def _job(shop: Workshop, weights: Path) -> EvaluationJob:
    given = shop.job.evaluation
    paths = {name: shop.file(f"benchmarks.{name}", path) for name, path in given.benchmarks.items()}
    # The logs have times in them, and are no part of what is published.
    return job_of(given, str(weights), paths, out=shop.folder / EVALUATION, logs=shop.folder / LOGS)
