"""A whole evaluation of the tiny policy: vLLM as model and judge, killed and resumed (some minutes)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai")
from inspect_ai.log import list_eval_logs, read_eval_log

from tests.benchmark_files import FOLDERS
from tests.evaluations import QUESTIONS, ChatServer, drawn_verdict
from tests.march_cli import MARCH
from tests.vllm_process import ENVIRONMENT, TINY_POLICY

pytestmark = [pytest.mark.slow, pytest.mark.core]

SMALL = (
    *("--limit", "4", "--generations", "3", "--seed", "1", "--concurrency", "1"),
    *("--benchmark", f"{QUESTIONS}={FOLDERS[QUESTIONS]}", "--set", "cache=false"),
    *("--set", "generation.max_tokens=24", "--set", "judging.max_tokens=32", "--set", "judge_retries=0"),
)


def start(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with log.open("w") as out:
        return subprocess.Popen([*MARCH, *arguments], stdout=out, stderr=out, env=environment)


def served(out: Path, url: str) -> list[str]:
    """`march evaluate` with one vLLM as the model and as its judge."""
    given = ["evaluate", url, "--model-name", "tiny", "--judge", url, "--judge-model", "tiny"]
    return [*given, "--out", str(out), "--set", "model.timeout_s=300", *SMALL]


def test_vllm_answers_and_judges_by_schema_and_a_kill_changes_no_figure(
    vllm_url: str, tmp_path: Path
) -> None:
    whole, killed, log = tmp_path / "whole", tmp_path / "killed", tmp_path / "log.txt"
    generate = [*served(whole, vllm_url), "--only", "generate"]
    assert start(generate, log).wait(500) == 0, log.read_text()[-3000:]
    shutil.copytree(whole, killed)
    assert start(served(whole, vllm_url), log).wait(500) == 0, log.read_text()[-3000:]
    assert "refuses" not in log.read_text()
    process = start(served(killed, vllm_url), log)
    until = time.monotonic() + 300
    while not list((killed / "logs" / "judge").glob("*.eval")):
        assert process.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL and not (killed / "results.json").exists()
    assert start(served(killed, vllm_url), log).wait(500) == 0, log.read_text()[-3000:]
    items = f"{QUESTIONS}/items.jsonl"
    assert (killed / items).read_text() == (whole / items).read_text()
    # One of the four prompts does not fit the tiny policy. The schema binds the judge; one that knows no JSON
    # may fill it with blanks, and is then counted apart.
    (log,) = map(read_eval_log, list_eval_logs(str(whole / "logs" / "judge")))
    events = [event for sample in log.samples or () for event in sample.events]
    said = [event.output.completion for event in events if event.event == "model"]
    assert len(said) == 9 and all(reply.startswith("{") for reply in said)
    found = json.loads((whole / "results.json").read_text())["benchmarks"][QUESTIONS]
    counts, accuracy = found["counts"], found["estimates"]["overall"]["accuracy"]
    assert (counts["num_generations"], counts["num_unjudged"]) == (9, 0)
    assert accuracy["num_items"] + accuracy["num_unscored"] == 4


def test_the_tiny_policy_is_evaluated_in_process_from_its_folder(tmp_path: Path) -> None:
    judge, log, page = ChatServer(drawn_verdict, "judge"), tmp_path / "log.txt", tmp_path / "page.html"
    arguments = ["evaluate", str(TINY_POLICY), "--out", str(tmp_path / "out"), "--html", str(page)]
    arguments += ["--judge", judge.url, "--judge-model", "judge", *SMALL]
    code = start(arguments, log).wait(500)
    judge.close()
    assert code == 0, log.read_text()[-3000:]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    figures = results["benchmarks"][QUESTIONS]
    assert figures["counts"]["num_too_long"] == 3  # one of the four prompts
    assert (figures["counts"]["num_generations"], figures["counts"]["num_unread"]) == (9, 0)
    assert figures["estimates"]["overall"]["accuracy"]["num_items"] == 3
    assert results["settings"]["weights_sha256"] and page.exists()
