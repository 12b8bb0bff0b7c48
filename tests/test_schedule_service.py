"""The service as a process: killed with -9 and started again, stopped by SIGTERM, health and figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from orchestration.retrain.triggers import BackoffSettings
from orchestration.schedule.journal import read_state
from orchestration.schedule.monitor import ScheduleFigures, monitoring
from orchestration.schedule.service import SERVICE_FILE, Sign, make_scheduler, only_service
from tests import schedule_jobs
from tests.schedule_jobs import journal, runs, wait_until

DAILY = '{"cron": {"expression": "30 2 * * *", "timezone": "Europe/Berlin"}, "backoff": {"first_s": 0.1}}'


@contextmanager
def service(folder: Path, *triggers: str, on_stop: str = "leave") -> Iterator[subprocess.Popen[bytes]]:
    """A real service, which has given a sign of life; killed in the end."""
    sign = folder / "schedule" / SERVICE_FILE
    sign.unlink(missing_ok=True)
    command = [sys.executable, schedule_jobs.__file__, str(folder), on_stop, *triggers]
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        said = lambda: (folder / "log.txt").read_text()[-3000:]  # noqa: E731
        wait_until(lambda: sign.exists() or process.poll() is not None, "no sign of life", 120)
        assert process.poll() is None, said()
        yield process
    finally:
        process.kill()
        process.wait(60)


def move_next_time(folder: Path, by: timedelta) -> None:
    """As if the clock had gone on while the service was down: its kept times move the other way."""
    scheduler = make_scheduler(folder / "schedule", 1)
    scheduler.start(paused=True)
    for job in scheduler.get_jobs():
        job.modify(next_run_time=datetime.now(UTC) - by)
    scheduler.shutdown()


def sign_of(folder: Path) -> Sign:
    return Sign.model_validate_json((folder / "schedule" / SERVICE_FILE).read_bytes())


def kinds(folder: Path, name: str = "shop") -> list[object]:
    path = folder / "schedule" / name
    return [line["kind"] for line in journal(path)] if path.exists() else []


@pytest.mark.slow
def test_killed_with_9_and_started_again_it_catches_up(tmp_path: Path) -> None:
    """Killed between two times; one passes while it is down; then again while a retraining runs."""
    with service(tmp_path, DAILY) as first:
        first.send_signal(signal.SIGKILL)
        first.wait(60)
    assert kinds(tmp_path) == []
    move_next_time(tmp_path, timedelta(hours=5))
    (tmp_path / "shop").mkdir(exist_ok=True)
    (tmp_path / "shop/HOLD").touch()
    with service(tmp_path, DAILY) as second:
        wait_until(lambda: runs(tmp_path / "shop"))
        second.send_signal(signal.SIGKILL)
        second.wait(60)
    with service(tmp_path, DAILY):  # the retraining went on; nobody starts another one
        (tmp_path / "shop/HOLD").unlink()
        wait_until(lambda: "ended" in kinds(tmp_path))
        assert kinds(tmp_path) == ["due", "began", "ended"] and len(runs(tmp_path / "shop")) == 1
        state = read_state(tmp_path / "schedule/shop", BackoffSettings())
        assert state.num_well == 1 and state.starts_at is None


@pytest.mark.slow
def test_figures_health_and_a_failing_job_beside_a_sound_one(tmp_path: Path) -> None:
    with service(tmp_path, DAILY, DAILY):
        pass
    move_next_time(tmp_path, timedelta(hours=5))
    (tmp_path / "shop/CODE").write_text("1")
    with service(tmp_path, DAILY, DAILY):
        wait_until(lambda: runs(tmp_path / "books") and kinds(tmp_path).count("ended") == 3)
        port = sign_of(tmp_path).port
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).text == "ok\n"
        figures = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    assert 'march_retraining_failures{retrain_job="shop"} 3.0' in figures
    assert 'march_retrainings_total{result="failed",retrain_job="shop"} 3.0' in figures
    assert 'march_retraining_failures{retrain_job="books"} 0.0' in figures
    assert 'march_retraining_next_seconds{retrain_job="books"} ' in figures


@pytest.mark.slow
@pytest.mark.parametrize("on_stop", ["leave", "wait"])
def test_sigterm_leaves_or_waits_for_what_is_running(tmp_path: Path, on_stop: str) -> None:
    with service(tmp_path, DAILY):
        pass
    move_next_time(tmp_path, timedelta(hours=5))
    (tmp_path / "shop/HOLD").touch()
    with service(tmp_path, DAILY, on_stop=on_stop) as process:
        wait_until(lambda: runs(tmp_path / "shop"))
        process.send_signal(signal.SIGTERM)
        if on_stop == "wait":
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3)
            (tmp_path / "shop/HOLD").unlink()
        assert process.wait(60) == 0
        assert ("ended" in kinds(tmp_path)) == (on_stop == "wait")
    (tmp_path / "shop/HOLD").unlink(missing_ok=True)
    wait_until(lambda: "ended" in kinds(tmp_path))  # what was left ends well


def test_one_service_a_folder(tmp_path: Path) -> None:
    with (
        only_service(tmp_path),
        pytest.raises(ValueError, match="another march schedule has it"),
        only_service(tmp_path),
    ):
        pass
    with only_service(tmp_path):
        assert os.listdir(tmp_path) == ["service.lock"]


def test_a_port_that_is_taken_is_said() -> None:
    figures = ScheduleFigures([], lambda name: None)
    with monitoring(figures, lambda: False, 0) as port:
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 503
        assert httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == 404
        with (
            pytest.raises(ValueError, match=f"--port: {port} cannot be listened on"),
            monitoring(figures, lambda: True, port),
        ):
            pass
