"""One `march train` a folder: the lock is held until the worker, too, is gone."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeline.launch.run_lock import LOG_FILE, only_run_in, start_worker
from tests.march_cli import refused

# Stands for the worker: starts a process of its own, says which, and then takes its time to end.
WORKER = f"""#!{sys.executable}
import subprocess, time
print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
time.sleep(60)
"""


def test_a_worker_that_outlives_its_parent_holds_the_lock_and_what_it_started_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "worker"
    program.write_text(WORKER)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with only_run_in(tmp_path) as lock:
        worker = start_worker("pipeline.train", tmp_path, lock)
    try:
        while not (said := (tmp_path / LOG_FILE).read_text()).endswith("\n"):
            assert worker.poll() is None, said
            time.sleep(0.01)
        with pytest.raises(ValueError, match="another `march train` runs here"), only_run_in(tmp_path):
            pass
    finally:
        worker.kill()
        worker.wait()
    grandchild = psutil.Process(int(said))
    (tmp_path / ".lock").write_text("")  # as an older version leaves it
    with only_run_in(tmp_path):
        assert grandchild.is_running()
    grandchild.kill()


def test_a_worker_whose_parent_was_killed_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    gone = subprocess.Popen(["true"])
    gone.wait()
    lock.write_text(f"{gone.pid}")
    worker = subprocess.Popen(["flock", str(lock), "sleep", "1"])
    while not _is_locked(lock):
        time.sleep(0.01)
    with only_run_in(tmp_path):
        assert worker.wait() == 0
        assert lock.read_text() == f"{os.getpid()}"


def _is_locked(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_folder_without_a_run_is_named_and_left_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert "give the folder of a" in refused(capsys, "record", folder)
    assert not list(tmp_path.iterdir()), "no lock is left in a user's folder"
