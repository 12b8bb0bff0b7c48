"""`march` as a user meets it: what it prints, its exit codes, one-line errors, a kill in the middle."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli import main

DATA = Path(__file__).parent / "data"
MARCH = [sys.executable, "-c", "from orchestration.cli import main; main()"]


class ShopModel(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose model answers with the first price that it reads."""

    protocol_version = "HTTP/1.1"
    delay_s = 0.0

    def do_GET(self) -> None:
        self.reply(
            {"object": "list", "data": [{"id": "shop", "object": "model", "created": 0, "owned_by": ""}]}
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay_s)
        system, user = (message["content"] for message in asked["messages"])
        price = re.findall(r"(\d+) euros", user)[0]
        text = f"- Question: How much? [Answer: {price}]" if system == "proposer" else f"1. [Answer: {price}]"
        message = {"role": "assistant", "content": text}
        choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(asked["n"])]
        self.reply(
            {"id": "c", "object": "chat.completion", "created": 0, "model": "shop", "choices": choices}
        )

    def reply(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a running `ShopModel`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), ShopModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Thirty rows, every fifth with a wrong price."""
    path = tmp_path / "in.jsonl"
    with path.open("w") as file:
        for i in range(30):
            document = {"id": "d", "title": "", "text": f"It costs {100 + i} euros."}
            response = f"It is {7 if i % 5 == 4 else 100 + i} euros."
            row = {"id": f"r{i}", "query": "How much?", "documents": [document], "response": response}
            file.write(json.dumps(row) + "\n")
    return path


def march(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The error of a command that must end with exit code 2 and one line."""
    assert march(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("march: ") and error.count("\n") == 1, error
    return error


def test_an_audit_of_ragtruth_prints_how_it_agrees_with_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    command = ("audit", DATA / "ragtruth", "--out", out, "--format", "ragtruth", "--html", page)
    assert march(*command) == 0
    printed = capsys.readouterr().out
    assert all(
        word in printed for word in ("precision", "recall", "F1", "QA", "Summary", "Data2txt", "rows/s")
    )
    figures = json.loads((tmp_path / "out.summary.json").read_text())["figures"]
    assert f"{figures['agreement']['overall']['f1']:.3f}" in printed
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert march(*command) == 0
    assert "Nothing to do: all 54 rows were audited before" in capsys.readouterr().out
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before


def test_an_audit_by_a_served_model(
    shop: str, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    options = ("--model", shop, "--model-name", "shop", "--prompts", "compact", "--voters", 5)
    assert march("audit", rows, "--out", out, *options) == 0
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in written] == [f"r{i}" for i in range(30)]
    refuted = [row["id"] for row in written if row["outcome"] == "REFUTED"]
    assert refuted == [f"r{i}" for i in range(4, 30, 5)]
    assert [row["reward"] for row in written] == [-1.0 if i % 5 == 4 else 0.0 for i in range(30)]
    assert all(len(row["claims"][0]["votes"]) == 5 for row in written)
    assert "Audited 30 rows" in capsys.readouterr().out


def test_a_killed_audit_goes_on(
    shop: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShopModel, "delay_s", 0.05)
    options = ["--model", shop, "--model-name", "shop", "--prompts", "compact", "--concurrency", "1"]
    out, expected = tmp_path / "out.jsonl", tmp_path / "expected.jsonl"
    command = [*MARCH, "audit", str(rows), "--out", str(out), *options]
    audit = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=DATA.parents[1])
    deadline = time.monotonic() + 60
    while not (out.exists() and out.read_bytes().count(b"\n") >= 7):
        assert audit.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(audit.pid, signal.SIGKILL)
    audit.wait()
    num_done = out.read_bytes().count(b"\n")
    assert 7 <= num_done < 30
    assert not (tmp_path / "out.summary.json").exists()
    with out.open("ab") as file:
        file.write(b'{"id":"r')  # torn in the middle of a line
    monkeypatch.setattr(ShopModel, "delay_s", 0.0)
    assert march("audit", rows, "--out", out, *options) == 0
    assert json.loads((tmp_path / "out.summary.json").read_text())["num_audited"] == 30 - num_done
    assert march("audit", rows, "--out", expected, *options) == 0
    assert out.read_bytes() == expected.read_bytes()


def test_an_interrupted_audit_says_how_to_go_on(shop: str, rows: Path, tmp_path: Path) -> None:
    options = ["--model", shop, "--model-name", "shop", "--prompts", "compact", "--concurrency", "1"]
    ShopModel.delay_s = 0.05
    try:
        command = [*MARCH, "audit", str(rows), "--out", str(tmp_path / "out.jsonl"), *options]
        audit = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            cwd=DATA.parents[1],
            # A shell that runs the tests in the background has told its children to ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while not (tmp_path / "out.jsonl").exists():
            assert audit.poll() is None
            time.sleep(0.01)
        time.sleep(0.3)
        audit.send_signal(signal.SIGINT)
        _, error = audit.communicate(timeout=30)
    finally:
        ShopModel.delay_s = 0.0
    assert audit.returncode == 130
    assert "the same command goes on" in error
    assert "Traceback" not in error


def test_rows_that_could_not_be_scored_are_said_aloud(
    shop: str, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShopModel, "do_POST", lambda self: self.reply({"choices": []}))
    options = ("--model", shop, "--model-name", "shop", "--prompts", "compact", "--limit", 3)
    assert march("audit", rows, "--out", tmp_path / "out.jsonl", *options) == 0
    assert "3 rows could not be scored (bad_response); the same command tries them again" in (
        capsys.readouterr().out
    )
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["outcome"], row["reward"]) for row in written] == [("UNSCORED", None)] * 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("audit", "no.jsonl", "--out", "out.jsonl"), "no.jsonl: no such file"),
        (("audit", "{in}", "--out", "{in}"), "is an input; write to another file"),
        (("audit", "{in}", "--out", "o.jsonl", "--html", "{in}"), "is an input; write to another file"),
        (("audit", "{in}", "--out", "/proc/out.jsonl"), "/proc/out.jsonl: "),
        (("audit", "{in}", "--out", "o.jsonl", "--max-documents-chars", "5"), "row 'r0': documents: 19 "),
        (("audit", "{in}", "--out", "o.jsonl", "--max-documents-chars", "0"), "max_documents_chars: "),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "./no-model"), "'./no-model' is not a folder"),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "http://127.0.0.1:9"), "--model-name: missing"),
        (
            ("audit", "{in}", "--out", "o.jsonl", "--model", "http://127.0.0.1:9/v1", "--model-name", "m"),
            "cannot be reached",
        ),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "m", "--voters", "4"), "voters: 4 is even"),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "m", "--prompts", "x"), "prompts: cannot read 'x'"),
        (("serve",), "sampler: missing; give --openai-url and --model"),
        (("serve", "--config", "no.yaml"), "--config: no.yaml: no such file"),
        (("serve", "--openai-url", "http://127.0.0.1:9"), "--model: missing"),
        (("prepare", "2wikimultihopqa", "--input", "no.json", "--out", "o"), "no.json: no such file"),
        (("prepare", "2wikimultihopqa", "--input", "{in}", "--out", "o"), "in.jsonl:1: _id: missing; add it"),
        (("train", "no-such-recipe"), "no such recipe; there are: "),
        (("train", "tiny", "--set", "ppo.speed=1"), "ppo.speed: unknown key"),
        (("train", "tiny", "--set", "ppo={"), "YAML"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_user_can_mend_is_one_line(
    arguments: tuple[str, ...],
    says: str,
    rows: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, *(argument.replace("{in}", str(rows)) for argument in arguments))


def test_a_port_in_use_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_REWARD_TOKEN", "a-token-of-32-characters-at-least")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        options = ("--openai-url", "http://127.0.0.1:9/v1", "--model", "m", "--port", port)
        assert f"cannot listen on 127.0.0.1:{port}" in refused(capsys, "serve", *options)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARCH_DEBUG", raising=False)
    monkeypatch.setenv("MARCH_DEBUG", "")  # so that what --debug sets is undone
    with pytest.raises(FileNotFoundError):
        main(["--debug", "audit", "no.jsonl", "--out", "out.jsonl"])


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TypeError("ours")

    monkeypatch.setattr("orchestration.settings.server_config", broken)
    with pytest.raises(TypeError, match="ours"):
        main(["serve"])


def test_options_without_effect_are_named(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march("audit", rows, "--out", tmp_path / "out.jsonl", "--voters", 5) == 0
    assert capsys.readouterr().err == "march: --voters has no effect without --model\n"


def test_prepare_writes_rows_and_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = DATA / "2wikimultihopqa" / "train.json"
    command = ("prepare", "2wikimultihopqa", "--input", source, "--out", tmp_path, "--limit", 5)
    assert march(*command, "--prompts", "compact") == 0
    assert "5 of 5 rows in" in capsys.readouterr().out
    assert len((tmp_path / "train.jsonl").read_text().splitlines()) == 5
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["source"], manifest["num_rows"]) == ("2wikimultihopqa", 5)
    assert re.fullmatch("[0-9a-f]{64}", manifest["source_sha256"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert march("--version") == 0
    assert re.fullmatch(r"march \d+\.\d+\.\d+\n", capsys.readouterr().out)
