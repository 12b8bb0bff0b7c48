"""The services where what they need is not there: one line, an exit code, and no loop in silence."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.retrain_process import MARCH, write_small_job
from tests.supervised import environment

NOWHERE = "http://127.0.0.1:9"
CLOCK = {"cron": {"expression": "0 0 1 1 *"}}


def march(
    *arguments: str, limit: Callable[[], None] | None = None, **variables: str
) -> tuple[int, list[str]]:
    """Exit code and standard error of a command, without the lines of its log."""
    env = environment(**variables)
    done = subprocess.run(
        [*MARCH, *arguments], env=env, capture_output=True, text=True, timeout=300, preexec_fn=limit
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("{")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_small_job(tmp_path / "job", model="solver", smoke=False, triggers=CLOCK)


@pytest.mark.slow
def test_a_reward_server_whose_engine_never_answers_ends() -> None:
    command = (
        "serve",
        "--openai-url",
        NOWHERE,
        "--model",
        "tiny",
        "--port",
        str(free_port()),
        "--ready-within",
        "1",
    )
    token = "a-token-of-32-characters-at-least"
    code, lines = march(*command, "--ready-within", "1", MARCH_REWARD_TOKEN=token)
    assert code == 2 and len(lines) == 1
    assert "not ready after 1 s (connection: tiny at http://127.0.0.1:9/v1); fix" in lines[0]


def test_a_reward_server_without_a_token_ends() -> None:
    command = ("serve", "--openai-url", NOWHERE, "--model", "tiny")
    code, lines = march(*command, MARCH_REWARD_TOKEN="")
    assert code == 2 and len(lines) == 1 and "MARCH_REWARD_TOKEN" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MLFLOW_TRACKING_URI": NOWHERE}, "--registry http://127.0.0.1:9: "),
        (
            {"MLFLOW_TRACKING_URI": "sqlite:///{folder}/mlflow.db", "AWS_ENDPOINT_URL": NOWHERE},
            "s3://bucket: ",
        ),
    ],
)
def test_a_schedule_whose_registry_or_store_does_not_answer_ends(
    variables: dict[str, str], said: str, job: Path, tmp_path: Path
) -> None:
    found = {name: value.format(folder=tmp_path) for name, value in variables.items()}
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "MARCH_ARTIFACTS": "s3://bucket"}
    command = ("schedule", str(job), "--folder", str(tmp_path / "schedule"), "--port", "0", "--check")
    code, lines = march(*command, MLFLOW_HTTP_REQUEST_MAX_RETRIES="1", AWS_MAX_ATTEMPTS="1", **keys, **found)
    assert code == 2 and len(lines) == 1 and said in lines[0], lines


def test_a_schedule_on_a_full_disk_ends(job: Path, tmp_path: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    command = ("schedule", str(job), "--folder", str(tmp_path / "schedule"), "--port", "0")
    code, lines = march(*command, limit=no_room, PYTHONDONTWRITEBYTECODE="1")
    assert code == 2 and lines == [
        f"march: {tmp_path}/schedule: File too large; fix the path or its permissions"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk, which only root may")
def test_a_schedule_whose_disk_fills_later_ends(job: Path, tmp_path: Path) -> None:
    folder = tmp_path / "schedule"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    command = [*MARCH, "schedule", str(job), "--folder", str(folder), "--port", "0"]
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())
        assert process.stderr is not None
        while "serving 1 jobs" not in process.stderr.readline():
            assert process.poll() is None
        with (folder / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        said = process.communicate(timeout=120)[1].splitlines()
        assert process.returncode == 2
        assert said[-1] == f"march: {folder}: No space left on device; make room on its disk"
    finally:
        process.kill()
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
