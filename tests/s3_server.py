"""Real S3 servers for the tests: OpenStack Swift's s3api, and moto's server for what Swift lacks.

Swift comes from PyPI into an environment of its own beside ours, made once, since its libraries are not ours.
Where it cannot be had the tests fail and say so; they are never skipped.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.artifacts.settings import StoreSettings

_VERSION = "2.38.3"
_ENVIRONMENT = Path(os.environ.get("MARCH_SWIFT") or Path(sys.prefix) / f"swift-{_VERSION}")
_PATIENCE_S = 300.0  # a machine under load starts it slowly


@dataclass(frozen=True)
class S3Server:
    """A server on loopback."""

    endpoint: str
    environment: dict[str, str]  # credentials, as boto3 reads them

    def settings(self, bucket: str, **more: Any) -> StoreSettings:
        return StoreSettings(location=f"s3://{bucket}", endpoint=self.endpoint, **more)


def swift_python() -> Path:
    """The interpreter of Swift's environment; makes it if there is none."""
    python = _ENVIRONMENT / "bin" / "python"
    _ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    with _ENVIRONMENT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (_ENVIRONMENT / "ready").exists():
            return python
        subprocess.run([sys.executable, "-m", "venv", str(_ENVIRONMENT)], check=True)
        # Swift reads its own metadata by pkg_resources.
        packages = [f"swift=={_VERSION}", "setuptools<81"]
        made = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *packages], capture_output=True, text=True
        )
        if made.returncode:
            pytest.fail(
                f"the tests of S3 need OpenStack Swift in {_ENVIRONMENT}; pip said: {made.stderr[-500:]}"
            )
        (_ENVIRONMENT / "ready").touch()
    return python


@contextmanager
def serve_swift(folder: Path) -> Iterator[S3Server]:
    """Swift, until it is left."""
    port = four_ports()
    command = [str(swift_python()), str(Path(__file__).with_name("swift_process.py")), str(folder), str(port)]
    with (folder / "swift.out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]})
    with _stopping(process):
        _wait_for(f"http://127.0.0.1:{port}/info", process, folder / "swift.out")
        yield S3Server(f"http://127.0.0.1:{port}", credentials("test:tester", "testing"))


@contextmanager
def serve_moto(folder: Path) -> Iterator[S3Server]:
    """Moto's server, until it is left."""
    port = four_ports()
    script = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
    with (folder / "moto.out").open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", script, str(port)], stdout=out, stderr=out)
    with _stopping(process):
        _wait_for(f"http://127.0.0.1:{port}/moto-api/", process, folder / "moto.out")
        yield S3Server(f"http://127.0.0.1:{port}", credentials("test", "test"))


def credentials(key: str, secret: str) -> dict[str, str]:
    """An environment for boto3 that knows these and looks nowhere else."""
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def four_ports() -> int:
    """The first of four ports in a row that are free."""
    for port in range(20000 + os.getpid() % 8000 * 4, 60000, 4):
        sockets = [socket.socket() for _ in range(4)]
        try:
            for place, one in enumerate(sockets):
                one.bind(("127.0.0.1", port + place))
            return port
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no four free ports in a row")


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    start = time.monotonic()
    while time.monotonic() - start < _PATIENCE_S:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=30):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    pytest.fail(f"{url} does not answer: {log.read_text()[-800:]}")


@contextmanager
def _stopping(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        ended = process.poll()
        process.kill()
        process.wait()
        assert ended is None, f"the server ended by itself, with code {ended}"
