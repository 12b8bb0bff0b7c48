"""An evaluation in MLflow: settings as parameters, figures as metrics, and what a person or a script reads.

    PARAMETERS  model, judge, settings, digests
    METRICS     BENCHMARK/SCORE, BENCHMARK/SCORE/low and /high, BENCHMARK/SLICE/SCORE, average, counts
    ARTIFACTS   evaluation/results.json, the page, BENCHMARK/items.jsonl

It is logged once, when all figures are there, so a kill leaves no half of it. `mlflow.json` in the
evaluation's folder says where, and the same evaluation is not logged a second time.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from pipeline.evaluate.manifest import BenchmarkFigures, Manifest
from pipeline.evaluate.plan import ITEMS_FILE, RESULTS_FILE, EvaluationJob
from pipeline.evaluate.statistics import OVERALL
from pipeline.evaluate.weights import refuse_pickles
from pipeline.record.tracking import finish_mlflow_run, flatten, start_mlflow_run
from reward.offline.files import file_sha256, replace_file
from reward.types import Record

LOGGED_FILE = "mlflow.json"
_EXPERIMENT, _ARTIFACTS = "march-evaluation", "evaluation"
_NOT_IN_A_NAME = re.compile(r"[^\w\-. /]")  # what MLflow refuses in the name of a metric
_MOST_PARAM_CHARS = 6_000


class Logged(Record):
    """Where an evaluation was logged."""

    uri: str
    run_id: str
    results_sha256: str


def log_evaluation(
    uri: str, job: EvaluationJob, manifest: Manifest, *, page: Path | None = None, run_id: str | None = None
) -> str:
    """Logs a whole evaluation; returns the run's id.

    Args:
        uri: The tracking server, or sqlite:///FILE.
        job: The evaluation.
        manifest: Its figures.
        page: Its report, if there is one.
        run_id: A run to log into, e.g. the training's; None makes one.

    Raises:
        ValueError: the server or the run cannot be reached.
    """
    from mlflow.exceptions import MlflowException

    done = _logged(job)
    sha256 = file_sha256(job.results_path)
    if done and (done.uri, done.results_sha256) == (uri, sha256) and run_id in (None, done.run_id):
        return done.run_id
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        target = _log(uri, job, manifest, page=page, run_id=run_id)
    except MlflowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"--mlflow {uri}: {problem:.200}; fix the address or the run") from error
    logged = Logged(uri=uri, run_id=target, results_sha256=sha256)
    replace_file(job.out / LOGGED_FILE, logged.model_dump_json(indent=2) + "\n")
    return target


def fetch_model(uri: str, *, pickles_allowed: bool = False) -> Path:
    """Downloads a model of MLflow's registry or of a run; returns its folder.

    Args:
        uri: As MLflow's download knows it.
        pickles_allowed: Whether its weights may be pickles, which can run code.

    Raises:
        ValueError: it cannot be had, holds no Hugging Face model, or one in pickles.
    """
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        folder = Path(download_artifacts(artifact_uri=uri))
    except (MlflowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{uri}: {problem:.200}; fix the URI, or set MLFLOW_TRACKING_URI") from error
    configs = sorted(folder.rglob("config.json"), key=lambda path: len(path.parts))
    if not configs:
        raise ValueError(f"{uri}: holds no Hugging Face model (config.json); give the path of one within it")
    folder = configs[0].parent
    if not pickles_allowed:
        refuse_pickles(uri, (path.name for path in folder.rglob("*") if path.is_file()))
    return folder


def metrics_of(manifest: Manifest) -> dict[str, float]:
    """Every figure by its name; figures that are not defined are left out."""
    found: dict[str, float] = {}
    for name, one in manifest.benchmarks.items():
        found.update(_of_benchmark(name, one))
    average = manifest.average
    if average is not None and average.value is not None:
        found["average"] = average.value
        if average.interval is not None:
            found |= {"average/low": average.interval.low, "average/high": average.interval.high}
    return {_NOT_IN_A_NAME.sub("_", name): value for name, value in found.items()}


def _of_benchmark(name: str, one: BenchmarkFigures) -> Iterator[tuple[str, float]]:
    for slice_name, scores in one.estimates.items():
        prefix = name if slice_name == OVERALL else f"{name}/{slice_name}"
        for score, estimate in scores.items():
            if estimate.value is None:
                continue
            yield f"{prefix}/{score}", estimate.value
            if estimate.interval is not None:
                yield f"{prefix}/{score}/low", estimate.interval.low
                yield f"{prefix}/{score}/high", estimate.interval.high
    for slice_name, agreement in one.agreement.items():
        if agreement.cohens_kappa.value is not None:
            prefix = name if slice_name == OVERALL else f"{name}/{slice_name}"
            yield f"{prefix}/cohens_kappa", agreement.cohens_kappa.value
    for count, number in one.counts.model_dump(exclude={"model_use", "judge_use"}).items():
        yield f"{name}/{count}", float(number)


def _log(uri: str, job: EvaluationJob, manifest: Manifest, *, page: Path | None, run_id: str | None) -> str:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    params = _params(manifest)
    client = MlflowClient(uri)
    if run_id is None:
        target = start_mlflow_run(
            tracking_uri=uri,
            artifact_root=job.out / "mlflow-artifacts",
            experiment=_EXPERIMENT,
            name=Path(manifest.model).name,
            params=params,
        )
    else:
        target = run_id
        named = [Param(f"evaluation.{key}", value[:_MOST_PARAM_CHARS]) for key, value in params.items()]
        client.log_batch(target, params=named)
    now = int(time.time() * 1000)
    client.log_batch(
        target, metrics=[Metric(key, value, now, 0) for key, value in metrics_of(manifest).items()]
    )
    for name in manifest.benchmarks:
        client.log_artifact(target, str(job.out / name / ITEMS_FILE), artifact_path=f"{_ARTIFACTS}/{name}")
    for path in (job.out / RESULTS_FILE, page):
        if path is not None:
            client.log_artifact(target, str(path), artifact_path=_ARTIFACTS)
    if run_id is None:
        finish_mlflow_run(uri, target, status="FINISHED")
    return target


def _params(manifest: Manifest) -> dict[str, str]:
    flat = flatten(dict(manifest.settings)) | {"settings_sha256": manifest.settings_sha256}
    for name, one in manifest.benchmarks.items():
        flat[f"{name}.items_sha256"] = one.items_sha256
        flat[f"{name}.prompt_digest"] = one.card.prompt_digest
        flat[f"{name}.style"] = one.style.value
        flat[f"{name}.licence"] = one.card.licence
    return {key: str(value) for key, value in flat.items()}


def _logged(job: EvaluationJob) -> Logged | None:
    try:
        return Logged.model_validate_json((job.out / LOGGED_FILE).read_bytes())
    except (OSError, ValidationError, json.JSONDecodeError):
        return None  # not there, or of another version
