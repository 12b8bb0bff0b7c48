"""An engine process ends when whoever started it was killed."""

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeline import cpu

CHILD = """
import os, time
from pipeline.cpu import install_in_engine

def work():
    install_in_engine()
    os.write(1, b"ready\\n")
    time.sleep(600)
"""
PARENT = """
import multiprocessing, os, sys, child

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=child.work)
    worker.start()
    os.write(1, b"%d\\n" % worker.pid)  # one write: both processes share the pipe
    worker.join()
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_worker_of_a_killed_parent_is_gone_within_seconds(method: str, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "parent.py").write_text(PARENT)
    path = os.pathsep.join([str(tmp_path), str(Path(cpu.__file__).parents[2])])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), method],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert parent.stdout is not None
    lines = [parent.stdout.readline().strip() for _ in range(2)]
    (pid,) = (int(line) for line in lines if line != "ready")
    worker = psutil.Process(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 30
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            worker.kill()
            pytest.fail("the worker outlived its parent")
        time.sleep(0.1)


def test_a_process_that_no_other_started_has_no_watch() -> None:
    code = (
        "import threading; from pipeline.cpu import install_in_engine; install_in_engine();"
        "print([thread.name for thread in threading.enumerate()])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['MainThread']"


def test_vllm_loads_plugins_in_its_engine_and_in_its_workers() -> None:
    cpu.install()
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    for loads in (EngineCore.__init__, WorkerWrapperBase.init_worker):
        assert "load_general_plugins()" in inspect.getsource(loads)
