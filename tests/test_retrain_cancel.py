"""`march retrain JOB --cancel` and `--logs`: a real process that holds the job, and a cluster's job API."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.retrain.lease import Lease, lock_file
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import open_store
from tests.march_cli import march, refused
from tests.ray_dashboard import serve_dashboard
from tests.test_retrain_job import write_job

ROOT = Path(__file__).parents[1]
HOLDER = """
import sys, time
from pathlib import Path
from orchestration.retrain.lease import only_here
from pipeline.launch.signals import terminable
with only_here(Path(sys.argv[1])), terminable():
    print("runs", flush=True)
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        time.sleep(1)
        print("stopped in order", flush=True)
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(
        tmp_path, work=str(tmp_path / "work"), store={"location": str(tmp_path / "store")}, lease_s=0.5
    )


def test_what_runs_here_is_stopped_in_order(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [sys.executable, "-c", HOLDER, str(tmp_path / "work" / "shop")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == "runs\n"
        assert march("retrain", job, "--cancel") == 0
        assert process.stdout.read() == "stopped in order\n"
    assert capsys.readouterr().out.startswith(f"stopped process {process.pid}; ")
    assert march("retrain", job, "--cancel") == 0
    assert capsys.readouterr().out == "nothing runs for shop\n"
    assert lock_file(tmp_path / "work" / "shop").exists()


def test_where_nothing_ever_ran_nothing_is_left(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march("retrain", job, "--cancel") == 0
    assert capsys.readouterr().out == "nothing runs for shop\n"
    assert not (tmp_path / "work").exists()


def test_what_another_machine_runs_is_cancelled_there(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = open_store(StoreSettings(location=str(tmp_path / "store"))).backend
    with Lease(backend, "shop", holder="another", period_s=0.2).held():
        assert march("retrain", job, "--cancel") == 7
    assert "runs this job; cancel it there" in capsys.readouterr().err


def test_jobs_that_a_killed_command_left_on_a_cluster_are_stopped_and_no_others(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, key = "march-shop-train-0123456789abcdef-1", "0123456789abcdef"
    others = [f"march-shop-2-train-{key}-1", f"march-shop-train-{key}", "somebody's"]
    with serve_dashboard() as dashboard:
        dashboard.jobs |= dict.fromkeys([mine, *others], "RUNNING")
        dashboard.jobs[f"march-shop-prepare-{key}-1"] = "SUCCEEDED"
        assert march("retrain", job, "--cancel", "--cluster", dashboard.address) == 0
        assert [name for name, state in dashboard.jobs.items() if state == "STOPPED"] == [mine]
        assert f"stopped Ray job {mine}; " in capsys.readouterr().out
        dashboard.log = "from the cluster\n"
        assert march("retrain", job, "--logs", "train", "--cluster", dashboard.address) == 0
        assert capsys.readouterr().out == "from the cluster\n"


def test_the_log_of_a_stages_last_attempt_is_shown(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "holds no log of train" in refused(capsys, "retrain", job, "--logs", "train")
    assert "--logs: 'nothing' is none of prepare, train" in refused(
        capsys, "retrain", job, "--logs", "nothing"
    )
    for age, name in enumerate(("evaluate-b", "evaluate-a", "train-c")):
        folder = tmp_path / "work" / "shop" / name
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(f"of {name}\n")
        os.utime(folder / "log.txt", (age, age))
    assert march("retrain", job, "--logs", "evaluate_champion") == 0
    shown = capsys.readouterr()
    assert shown.out == "of evaluate-a\n" and "evaluate-a/log.txt" in shown.err
