"""A real MLflow server for tests, over SQLite or another database."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def mlflow_server(folder: Path, *, database: str | None = None, port: int | None = None) -> Iterator[str]:
    """The address of a server that keeps everything in a folder, or its tables in a database elsewhere."""
    with running_mlflow(folder, database=database, port=port) as (uri, _):
        yield uri


@contextmanager
def running_mlflow(
    folder: Path, *, database: str | None = None, port: int | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The same, and its process, which leads a group of its own."""
    if port is None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    store = ["--backend-store-uri", database or f"sqlite:///{folder / 'mlflow.db'}"]
    store += ["--artifacts-destination", str(folder)]
    serving = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "2", *store]
    with (folder / "log.txt").open("w") as log:
        # Its eight consumers of background jobs are of no use here and take a core for half a minute.
        without_jobs = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        process = subprocess.Popen(serving, stdout=log, stderr=log, start_new_session=True, env=without_jobs)
    try:
        until = time.monotonic() + 300
        while not _is_healthy(port):
            assert process.poll() is None and time.monotonic() < until, (folder / "log.txt").read_text()[
                -3000:
            ]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}", process
    finally:
        # Its parent would make new workers in place of those that a polite end reaches first.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).is_success
    except httpx.TransportError:
        return False
