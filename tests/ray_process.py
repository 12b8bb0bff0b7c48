"""A real Ray of one node with its dashboard, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.s3_server import four_ports
from tests.supervised import environment

RAY = Path(sys.executable).with_name("ray")


@contextlib.contextmanager
def ray_head(folder: Path, *, token: str | None = None, num_gpus: int = 0) -> Iterator[str]:
    """The address of its dashboard; only its own processes are ended.

    Args:
        folder: Its temporary folder; a short path, since Ray puts sockets below it.
        token: What it demands, if anything.
        num_gpus: Logical ones.
    """
    port = four_ports()
    command = [str(RAY), "start", "--head", "--block", f"--port={port + 1}", f"--dashboard-port={port}"]
    command += ["--dashboard-host=127.0.0.1", "--num-cpus=2", "--include-dashboard=true"]
    command += [f"--ray-client-server-port={port + 2}", f"--temp-dir={folder}", f"--num-gpus={num_gpus}"]
    command += ["--object-store-memory=100000000"]
    command += ["--node-ip-address=127.0.0.1", "--disable-usage-stats"]
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=_environment(token)
        )
    try:
        until = time.monotonic() + 300
        while not _lives(f"http://127.0.0.1:{port}/api/version", token):
            assert process.poll() is None and time.monotonic() < until, (folder / "log.txt").read_text()
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(120)


def _environment(token: str | None) -> dict[str, str]:
    env = {name: value for name, value in environment().items() if not name.startswith("RAY_")}
    env["RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT"] = "240"  # a machine under load
    env["PATH"] = os.pathsep.join([str(RAY.parent), env["PATH"]])
    return env | ({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {})


def _lives(url: str, token: str | None) -> bool:
    headers = {"Authorization": f"Bearer {token}"} if token else None
    try:
        return httpx.get(url, headers=headers, trust_env=False, timeout=30).is_success
    except httpx.TransportError:
        return False
