"""A real PostgreSQL for tests, from Debian's package `postgresql` or whatever `pg_config` is on the path.

It refuses to run as root, so root's tests run it as the user `postgres` (or `nobody`) in a folder of its own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def serve_postgres() -> Iterator[str]:
    """The address of an empty database, as SQLAlchemy and psycopg have it, until it is left."""
    programs = postgres_programs()
    owner = postgres_owner()
    with tempfile.TemporaryDirectory(prefix="pg") as folder, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        if owner:
            shutil.chown(folder, owner["user"], owner["group"])
        data = Path(folder) / "data"
        make = [programs / "initdb", "--pgdata", data, "--username", "march", "--auth", "trust", "--no-sync"]
        subprocess.run([str(part) for part in make], check=True, capture_output=True, cwd=folder, **owner)
        serve = [programs / "postgres", "-D", data, "-p", port, "-k", folder, "-h", "127.0.0.1", "-F"]
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(
                [str(part) for part in serve], stdout=log, stderr=log, cwd=folder, **owner
            )
        try:
            _wait_for(programs, port, process, Path(folder) / "log")
            yield f"postgresql+psycopg://march@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(60)


def postgres_programs() -> Path:
    """The folder of initdb and postgres, of the newest version that Debian has installed."""
    if config := shutil.which("pg_config"):
        found = subprocess.run(
            [config, "--bindir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if (Path(found) / "initdb").exists():
            return Path(found)
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if not debian:
        pytest.fail(
            "the tests of the registry on PostgreSQL need its server (Debian: apt-get install postgresql)"
        )
    return debian[-1].parent


def postgres_owner() -> dict[str, Any]:
    """Who runs it; nobody else than us, unless we are root."""
    if os.geteuid() != 0:
        return {}
    names = {one.pw_name for one in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _wait_for(programs: Path, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    ask = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
    while subprocess.run(ask).returncode:
        assert process.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
        time.sleep(0.1)
