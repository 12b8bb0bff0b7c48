"""Stages as Ray Jobs on a real Ray of one machine (long: it starts a cluster)."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.retrain.attempt import FOLDER_KIND
from orchestration.retrain.job import Job, load_job
from orchestration.retrain.ray_jobs import RayStage
from orchestration.retrain.records import Stage, StageProblem, StageRequest
from orchestration.retrain.results import Results, open_job_store
from reward.roles.prompts import load_prompts
from tests.ray_process import ray_head
from tests.test_retrain_job import write_job

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Ray of this test's own."""
    with ray_head(tmp_path_factory.mktemp("r")) as started:
        yield started


def request_of(folder: Path, address: str, key: str, *, rows: bool = True) -> StageRequest:
    """A prepare stage that takes rows which only this process can read by their path."""
    given = folder / "rows"
    if rows and not given.exists():
        given.mkdir(parents=True)
        text = '{"input": [], "label": "{}", "datasource": "d"}\n'
        (given / "train.jsonl").write_text(text)
        manifest = {"source": "d", "num_read": 1, "num_duplicates": 0, "num_overlong": 0, "num_rows": 1}
        digests = {
            "prompt_digest": load_prompts("compact").digest,
            "rows_sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
        (given / "manifest.json").write_text(json.dumps(manifest | digests))
    job = load_job(str(write_job(folder, data={"rows": "rows"})))
    settings = {"address": address, "working_dir": None}
    job = Job.model_validate(
        {
            **job.model_dump(),
            "cluster": settings,
            "store": {"location": str(folder / "store")},
            "work": folder / "work",
            "environment": {"PYTHONPATH": str(ROOT)},
        }
    )
    files = {str(job.data.rows): open_job_store(job).publish(given, kind=FOLDER_KIND).digest} if rows else {}
    return StageRequest(
        job=job,
        stage=Stage.PREPARE,
        key=key,
        inputs={"code": None},
        files=files,
        attempt=1,
        command_attempt=1,
    )


def ended(stage: RayStage) -> StageProblem | None:
    until = time.monotonic() + 600
    while not stage.has_ended():
        assert time.monotonic() < until
        time.sleep(0.2)
    return stage.problem()


def test_a_stage_runs_as_a_job_and_its_inputs_come_from_the_store(tmp_path: Path, address: str) -> None:
    request = request_of(tmp_path, address, "a" * 64)
    (tmp_path / "rows").rename(tmp_path / "rows-of-this-machine-alone")
    assert ended(RayStage(request)) is None
    found = Results(open_job_store(request.job), request.job.name).find(Stage.PREPARE, "a" * 64)
    assert found is not None and found.result.facts["num_rows"] == 1


def test_a_problem_comes_back_with_its_line(tmp_path: Path, address: str) -> None:
    request = request_of(tmp_path, address, "b" * 64, rows=False)
    problem = ended(RayStage(request))
    assert problem is not None and not problem.transient and problem.exit_code == 2
    assert "has no manifest.json" in problem.line
    logs = list((tmp_path / "work").rglob("log.txt"))
    assert logs and "Traceback" in logs[0].read_text()


def test_a_running_job_is_attached_to_and_an_interrupt_stops_it(tmp_path: Path, address: str) -> None:
    request = request_of(tmp_path, address, "c" * 64)
    slow = {**request.job.environment, "PYTHONPATH": os.pathsep.join([str(tmp_path / "slow"), str(ROOT)])}
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(
        "import sys, time\nif any('retrain.stage' in one for one in sys.orig_argv): time.sleep(600)\n"
    )
    held = request.model_copy(update={"job": request.job.model_copy(update={"environment": slow})})
    first = RayStage(held)
    second = RayStage(held)  # after a kill of the loop
    assert first.id == second.id and not second.has_ended()
    second.stop()
    problem = ended(first)
    assert problem is not None and problem.transient
    third = RayStage(request)
    assert third.id != first.id, "a job that was stopped is not attached to"
    assert ended(third) is None
