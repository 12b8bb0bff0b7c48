"""The services where what they need is not there: one line, an exit code, and no loop in silence."""

from __future__ import annotations

import errno
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.terminal.messages import user_error
from tests.retrain_process import MARCH, write_small_job
from tests.supervised import environment

NOWHERE = "http://127.0.0.1:9"
CLOCK = {"cron": {"expression": "* * * * *"}}


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
        ({"MLFLOW_TRACKING_URI": NOWHERE}, ["refused; trying again for up to 60 s", "http://127.0.0.1:9: "]),
        (
            {"MLFLOW_TRACKING_URI": "sqlite:///{folder}/mlflow.db", "AWS_ENDPOINT_URL": NOWHERE},
            ["s3://bucket: "],
        ),
    ],
)
def test_a_retraining_whose_registry_or_store_does_not_answer_says_so(
    variables: dict[str, str], said: list[str], job: Path, tmp_path: Path
) -> None:
    found = {name: value.format(folder=tmp_path) for name, value in variables.items()}
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "MARCH_ARTIFACTS": "s3://bucket"}
    few = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "AWS_MAX_ATTEMPTS": "1"}
    code, lines = march("retrain", str(job), "--if-due", **few, **keys, **found)
    assert code == 1 and len(lines) == len(said), lines
    assert all(words in line for words, line in zip(said, lines, strict=True)), lines


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("command", [("prepare", "jsonl", "--input"), ("artifacts", "put")])
def test_a_full_disk_is_named_by_what_is_written_there(command: tuple[str, ...], tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out"
    rows.write_text('{"id": "1", "query": "How many?", "documents": ["84 cars."]}\n')
    option = "--store" if "put" in command else "--out"
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
    code, lines = march(*command, str(rows), option, str(out), limit=no_room, **quiet)
    assert (code, lines) == (2, [f"march: {out}: File too large; make room on its disk"])


def test_a_full_disk_whose_file_nobody_knows_has_a_fix() -> None:
    said = user_error(OSError(errno.ENOSPC, "No space left on device"))
    assert said == "No space left on device; make room on the disk that is full (march doctor --only disk)"


def test_a_retraining_on_a_full_disk_says_so(job: Path, tmp_path: Path) -> None:
    code, lines = march("retrain", str(job), "--if-due", limit=no_room, PYTHONDONTWRITEBYTECODE="1")
    assert code == 2 and len(lines) == 1 and "File too large" in lines[0], lines
