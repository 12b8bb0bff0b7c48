"""A cluster whose dashboard fails or hangs: no training stops for it. A real HTTP server, Ray's client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.retrain import ray_jobs
from orchestration.retrain.attempt import PROBLEM_MARK
from orchestration.retrain.ray_jobs import RayStage
from orchestration.retrain.records import StageProblem, StageRequest
from tests.ray_dashboard import Dashboard, serve_dashboard
from tests.test_retrain_ray import request_of

FAILS = ["status 500", "hangs", "resets", "nonsense"]


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    for name, seconds in {"_LOOK_EVERY_S": 0.0, "_READ_EVERY_S": 0.0, "_ASK_S": 0.3, "_STOP_S": 2.0}.items():
        monkeypatch.setattr(ray_jobs, name, seconds)
    with serve_dashboard() as found:
        yield found


def asked(folder: Path, dashboard: Dashboard, patience_s: float = 60.0) -> StageRequest:
    request = request_of(folder, dashboard.address, "a" * 64, rows=False)
    assert request.job.cluster is not None
    cluster = request.job.cluster.model_copy(update={"patience_s": patience_s})
    return request.model_copy(update={"job": request.job.model_copy(update={"cluster": cluster})})


def is_over(stage: RayStage, turns: int = 3) -> bool:
    return any(stage.has_ended() for _ in range(turns))


@pytest.mark.parametrize("fails", FAILS)
def test_polls_that_fail_or_hang_stop_nothing(
    fails: str, dashboard: Dashboard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage = RayStage(asked(tmp_path, dashboard))
    assert not is_over(stage)
    dashboard.fails = fails
    started = time.monotonic()
    assert not is_over(stage)
    assert time.monotonic() - started < 10, "budget and user wait for no answer"
    assert caplog.text.count("no answer of the cluster") == 1
    dashboard.fails, dashboard.jobs[stage.id] = "", "SUCCEEDED"
    assert is_over(stage) and stage.problem() is None
    assert not dashboard.stops()


@pytest.mark.parametrize("fails", FAILS)
def test_a_cluster_that_is_silent_for_too_long_ends_the_attempt_and_not_its_job(
    fails: str, dashboard: Dashboard, tmp_path: Path
) -> None:
    request = asked(tmp_path, dashboard, patience_s=0.5)
    stage = RayStage(request)
    dashboard.fails = fails
    until = time.monotonic() + 20
    while not stage.has_ended():
        assert time.monotonic() < until
    problem = stage.problem()
    assert problem is not None and problem.transient and "has not answered for" in problem.line
    dashboard.fails = ""
    again = RayStage(asked(tmp_path, dashboard))  # with patience for a machine that is busy
    assert (again.id, dashboard.stops(), len(dashboard.jobs)) == (stage.id, 0, 1), "attached to"


def test_the_reason_of_a_job_that_failed_is_asked_for_again(dashboard: Dashboard, tmp_path: Path) -> None:
    stage = RayStage(asked(tmp_path, dashboard))
    said = StageProblem(line="rows: missing", transient=False, exit_code=2)
    dashboard.log = f"{PROBLEM_MARK}{said.model_dump_json()}\n"
    dashboard.jobs[stage.id] = "FAILED"
    assert is_over(stage)
    dashboard.fails = "status 500"
    threading.Timer(0.8, lambda: setattr(dashboard, "fails", "")).start()
    assert stage.problem() == said


def test_a_job_that_succeeded_needs_no_log(dashboard: Dashboard, tmp_path: Path) -> None:
    stage = RayStage(asked(tmp_path, dashboard))
    dashboard.jobs[stage.id] = "SUCCEEDED"
    assert is_over(stage)
    dashboard.fails = "status 500"
    assert stage.problem() is None


@pytest.mark.parametrize("fails", FAILS)
def test_a_stop_is_asked_for_again_and_ends(
    fails: str, dashboard: Dashboard, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage = RayStage(asked(tmp_path, dashboard))
    dashboard.fails = fails
    stage.stop()
    assert "may run on" in caplog.text
    assert dashboard.stops() > 1
    dashboard.fails = ""
    stage.stop()
    assert dashboard.jobs[stage.id] == "STOPPED"
