"""What the CronJob runs when a retraining is due: start.py against a stand-in for Kubernetes' API."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kubernetes_files import (
    KUBERNETES,
    OVERLAYS,
    VERSIONS,
    built,
    containers,
    named,
    pods,
    problems,
)

START = KUBERNETES / "base" / "start.py"
PATH = "/apis/ray.io/v1/namespaces/march/rayjobs"
QUEUE = "kueue.x-k8s.io/queue-name"


class Api:
    """The RayJobs that are there, by name, and what was asked with which token."""

    def __init__(self) -> None:
        template = named(built("single-node-gpu"), "RayJob", "retrain")
        self.jobs: dict[str, Any] = {"retrain": copy.deepcopy(template)}
        self.asked: list[tuple[str, str | None]] = []
        self.refuses = ""

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Any]:
        """Code and content; a path that is not that of RayJobs does not exist."""
        path, _, query = url.partition("?")
        name = path.removeprefix(PATH).strip("/")
        if method == self.refuses:
            return 403, {"message": "said by the API"}
        if not path.startswith(PATH) or (name and name not in self.jobs):
            return 404, {"message": "not found"}
        if method == "GET" and name:
            return 200, self.jobs[name]
        if method == "GET":
            key, _, value = parse_qs(urlsplit(f"?{query}").query)["labelSelector"][0].partition("=")
            found = [one for one in self.jobs.values() if one["metadata"]["labels"].get(key) == value]
            return 200, {"items": found}
        if method == "DELETE":
            return 200, self.jobs.pop(name)
        count = len(self.asked)
        metadata = body["metadata"]
        metadata["name"] = f"{metadata.pop('generateName')}{count:05}"
        metadata["creationTimestamp"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}:{count:02}Z"
        self.jobs[metadata["name"]] = body
        return 201, body

    def handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                api.asked.append((self.command, self.headers["Authorization"]))
                code, said = api.answer(self.command, self.path, body)
                content = json.dumps(said).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = do

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
    """Runs what the CronJob's `--submit` names, with an account's token."""
    (account / "token").write_text("a-token\n")
    (account / "namespace").write_text("march")
    env = {**os.environ, "KUBERNETES_API": address, "KUBERNETES_ACCOUNT": str(account)}
    (look,) = containers(pods(built("single-node-gpu"))["CronJob/retrain"])
    words = look["args"][-1].removeprefix("--submit=").split()[2:]
    return subprocess.run(
        [sys.executable, START, *words], env=env, capture_output=True, text=True, timeout=60
    )


def test_a_copy_starts_and_is_the_only_one_while_it_is_not_over(api: tuple[Api, str], tmp_path: Path) -> None:
    found, address = api
    first = start(address, tmp_path)
    assert first.returncode == 0 and first.stdout.endswith(": created\n"), first.stderr
    template, made = found.jobs.values()
    assert made["spec"] == {key: value for key, value in template["spec"].items() if key != "suspend"}
    assert made["metadata"]["labels"][QUEUE] == "training"
    created = {**made, "metadata": {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}}
    assert problems(created, VERSIONS[-1]) == []
    for status in ({}, {"jobDeploymentStatus": "Suspended"}, {"jobDeploymentStatus": "Running"}):
        made["status"] = status
        again = start(address, tmp_path)
        assert again.stdout == f"RayJob {made['metadata']['name']}: is there already\n"
    begun = datetime.now(UTC) - timedelta(hours=13)
    made["metadata"]["creationTimestamp"] = f"{begun:%Y-%m-%dT%H:%M:%SZ}"
    assert start(address, tmp_path).returncode == 0, "it runs"
    made["status"] = {"jobDeploymentStatus": "Suspended"}
    stuck = start(address, tmp_path)
    assert stuck.returncode == 1 and "has not started for 13 hours; look at the quota" in stuck.stderr
    made["status"] = {"jobDeploymentStatus": "Complete"}
    assert start(address, tmp_path).stdout.endswith(": created\n") and len(found.jobs) == 3
    assert {token for _, token in found.asked} == {"Bearer a-token"}


def test_the_newest_that_are_over_stay(api: tuple[Api, str], tmp_path: Path) -> None:
    found, address = api
    for _ in range(6):
        assert start(address, tmp_path).returncode == 0
        for one in found.jobs.values():
            one["status"] = {"jobDeploymentStatus": "Complete"}
    template, *copies = found.jobs
    assert template == "retrain" and len(copies) == 4
    assert copies == sorted(copies)


def test_three_that_failed_in_a_row_are_for_a_person(api: tuple[Api, str], tmp_path: Path) -> None:
    """Such as an image that cannot start `march`, which then records nothing."""
    found, address = api
    for _ in range(3):
        assert start(address, tmp_path).returncode == 0
        for one in found.jobs.values():
            one["status"] = {"jobDeploymentStatus": "Failed"}
    now = datetime.now(UTC)
    last = list(found.jobs.values())[-1]
    last["metadata"]["creationTimestamp"] = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    done = start(address, tmp_path)
    assert done.returncode == 1 and "the last 3 failed" in done.stderr and len(found.jobs) == 4
    last["status"] = {"jobDeploymentStatus": "Complete"}
    assert start(address, tmp_path).returncode == 0


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refusal_is_told(api: tuple[Api, str], tmp_path: Path, method: str) -> None:
    api[0].refuses = method
    done = start(api[1], tmp_path)
    assert done.returncode == 1
    assert f"RayJob retrain: {method}: 403" in done.stderr and "said by the API" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_template_starts_nothing_and_nothing_but_the_jobs_triggers_retries(overlay: str) -> None:
    """Exit codes 2 and 6 are for a person: only `march retrain --if-due` knows them."""
    template = named(built(overlay), "RayJob", "retrain")
    assert template["spec"]["suspend"] is True
    assert not any(key.startswith("kueue.") for key in template["metadata"]["labels"])
    assert named(built(overlay), "LocalQueue", "training")  # Kueue gives `default` to what names no queue
    assert template["spec"]["backoffLimit"] == 0 and "jobId" not in template["spec"]
    look = named(built(overlay), "CronJob", "retrain")["spec"]["jobTemplate"]["spec"]
    assert look["backoffLimit"] == 0 and look["template"]["spec"]["restartPolicy"] == "Never"
