"""What the CronJob runs when a retraining is due: start.py against a stand-in for Kubernetes' API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes_files import KUBERNETES, OVERLAYS

START = KUBERNETES / "base" / "start.py"
RAYJOB = KUBERNETES / "overlays" / "single-node-gpu" / "rayjob.yaml"


class Api:
    """The RayJobs that are there, by address, and who asked for them."""

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}
        self.tokens: list[str | None] = []
        self.refuses = False

    def handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = f"{self.path.partition('?')[0]}/{body['metadata']['name']}"
                api.tokens.append(self.headers["Authorization"])
                code = 403 if api.refuses else 409 if path in api.jobs else 201
                if code == 201:
                    api.jobs[path] = body
                content = json.dumps({"kind": "Status", "code": code, "message": "said by the API"}).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        return Handler


@pytest.fixture
def api() -> Iterator[tuple[Api, str]]:
    """The API, and where it is."""
    made = Api()
    server = ThreadingHTTPServer(("127.0.0.1", 0), made.handler())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def start(address: str, account: Path) -> subprocess.CompletedProcess[str]:
    """Runs it with an account's token."""
    (account / "token").write_text("a-token\n")
    env = {**os.environ, "KUBERNETES_API": address, "KUBERNETES_ACCOUNT": str(account)}
    return subprocess.run(
        [sys.executable, START, RAYJOB], env=env, capture_output=True, text=True, timeout=60
    )


def test_it_creates_the_rayjob_and_leaves_one_that_is_there_alone(
    api: tuple[Api, str], tmp_path: Path
) -> None:
    found, address = api
    first = start(address, tmp_path)
    assert (first.returncode, first.stdout) == (0, "RayJob retrain: created\n"), first.stderr
    path = "/apis/ray.io/v1/namespaces/march/rayjobs/retrain"
    assert found.jobs == {path: yaml.safe_load(RAYJOB.read_text())}
    again = start(address, tmp_path)
    assert (again.returncode, again.stdout) == (0, "RayJob retrain: is there already\n")
    assert found.tokens == ["Bearer a-token"] * 2


def test_a_refusal_is_told(api: tuple[Api, str], tmp_path: Path) -> None:
    api[0].refuses = True
    done = start(api[1], tmp_path)
    assert done.returncode == 1 and "RayJob retrain: 403" in done.stderr and "said by the API" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_it_creates_what_the_account_may(overlay: str) -> None:
    rayjob = yaml.safe_load((KUBERNETES / "overlays" / overlay / "rayjob.yaml").read_text())
    assert (rayjob["apiVersion"], rayjob["kind"]) == ("ray.io/v1", "RayJob")
