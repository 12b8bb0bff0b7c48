"""An evaluation in MLflow: settings as parameters, figures as metrics, and what a person or a script reads.

    METRICS     BENCHMARK/SCORE, BENCHMARK/SCORE/low and /high, BENCHMARK/SLICE/SCORE, average, counts
    ARTIFACTS   evaluation/results.json, the page, BENCHMARK/items.jsonl

It is logged once, when all figures are there: `mlflow.json` in the evaluation's folder says where.
"""

import json
import re
import time
from pathlib import Path

from orchestration.registry.server import be_impatient
from pipeline.evaluate.compare import figure_lines
from pipeline.evaluate.plan import ITEMS_FILE, EvaluationJob
from pipeline.evaluate.results import Manifest
from pipeline.record.tracking import reached, start_mlflow_run
from reward.offline.files import file_sha256, replace_file

LOGGED_FILE = "mlflow.json"
_EXPERIMENT, _ARTIFACTS = "march-evaluation", "evaluation"
_NOT_IN_A_NAME = re.compile(r"[^\w\-. /]")  # what MLflow refuses in the name of a metric


def require_server(uri: str, run_id: str | None) -> None:
    """ValueError of one line where MLflow cannot be reached or does not know the run; before any work."""
    be_impatient()
    with reached(uri, "--mlflow", fix="fix the address or the run") as client:
        client.search_experiments(max_results=1)
        if run_id is not None:
            client.get_run(run_id)


def log_evaluation(
    uri: str, job: EvaluationJob, manifest: Manifest, *, page: Path | None = None, run_id: str | None = None
) -> str:
    """Logs a whole evaluation, and its page if there is one; returns the run's id.

    It is logged into the run that is given, e.g. the training's, whose parameters stay, else into a new one.
    """
    from mlflow.entities import Metric

    path, wanted = job.out / LOGGED_FILE, {"uri": uri, "results_sha256": file_sha256(job.results_path)}
    done = json.loads(path.read_bytes()) if path.is_file() else {}
    if wanted.items() <= done.items() and run_id in (None, done["run_id"]):
        return str(done["run_id"])
    target = run_id or start_mlflow_run(
        tracking_uri=uri,
        artifact_root=job.out / "mlflow-artifacts",
        experiment=_EXPERIMENT,
        name=Path(manifest.model).name,
        params={**manifest.settings, "settings_sha256": manifest.settings_sha256},
    )
    with reached(uri, "--mlflow", fix="fix the address or the run") as client:
        now = int(time.time() * 1000)
        client.log_batch(target, metrics=[Metric(*one, now, 0) for one in metrics_of(manifest).items()])
        for name in manifest.benchmarks:
            client.log_artifact(target, str(job.out / name / ITEMS_FILE), f"{_ARTIFACTS}/{name}")
        for file in filter(None, (job.results_path, page)):
            client.log_artifact(target, str(file), _ARTIFACTS)
        if run_id is None:
            client.set_terminated(target)
    replace_file(path, json.dumps({**wanted, "run_id": target}, indent=2) + "\n")
    return target


def metrics_of(manifest: Manifest) -> dict[str, float]:
    """Every figure by its name; figures that are not defined are left out."""
    found: dict[str, float | None] = {}
    for line in figure_lines(manifest):
        name = "/".join(filter(None, (line.benchmark, "" if line.is_overall else line.slice, line.score)))
        found[name] = line.figure.value
        if line.figure.interval is not None:
            found |= {f"{name}/low": line.figure.interval.low, f"{name}/high": line.figure.interval.high}
    for name, one in manifest.benchmarks.items():
        found |= {f"{name}/{count}": float(number) for count, number in one.counts}
    return {_NOT_IN_A_NAME.sub("_", name): value for name, value in found.items() if value is not None}
