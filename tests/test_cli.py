"""`march` as a user meets it: what it prints, its exit codes, one-line errors, a kill in the middle."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestration.cli import main
from tests.march_cli import DATA, MARCH, ShopModel, march, refused, serve_shop, write_rows


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a running `ShopModel`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve_shop() as address:
        yield address


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Thirty rows, every fifth with a wrong price."""
    return write_rows(tmp_path)


def test_an_audit_of_ragtruth_prints_how_it_agrees_with_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    command = ("audit", DATA / "ragtruth", "--out", out, "--html", page)
    assert march(*command) == 0
    printed = capsys.readouterr().out
    words = ("precision", "recall", "F1", "false alarms", "plain QA", "cleaned Data2txt", "rows/s")
    assert all(word in printed for word in words)
    figures = json.loads((tmp_path / "out.summary.json").read_text())["figures"]
    for target in ("plain", "cleaned"):
        assert f"{figures['human']['overall']['targets'][target]['f1']:.3f}" in printed
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert march(*command) == 0
    assert "Nothing to do: all 54 rows were audited before" in capsys.readouterr().out
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before


def test_the_newline_that_a_file_of_a_secret_ends_in_is_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"AWS_SECRET_ACCESS_KEY": "a/b\n", "MLFLOW_TRACKING_PASSWORD": "two\r\n", "JUDGE_KEY": " c\n\n"}
    for name, value in (given | {"MOTD": "hello\n"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert [os.environ[name] for name in given] == ["a/b", "two", " c\n"]
    assert os.environ["MOTD"] == "hello\n"


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
        (("audit", "{in}", "--out", "o.jsonl", "--set", "max_documents_chars=0"), "max_documents_chars: "),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "./no-model"), "'./no-model' is not a folder"),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "http://127.0.0.1:9"), "--model-name: missing"),
        (
            ("audit", "{in}", "--out", "o.jsonl", "--model", "http://127.0.0.1:9/v1", "--model-name", "m"),
            "cannot be reached",
        ),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "m", "--voters", "4"), "voters: 4 is even"),
        (("audit", "{in}", "--out", "o.csv"), "--out: 'o.csv': verdicts are JSON lines; name it OUT.jsonl"),
        (("audit", "{in}", "--out", "o.parquet"), "--out: 'o.parquet': verdicts are JSON lines"),
        (("audit", "{in}", "--out", "-"), "--out: '-': verdicts are JSON lines"),
        (("audit", "{in}", "--out", "."), "--out: '.' is a folder; name a file in it, such as OUT.jsonl"),
        (("audit", "{in}", "--out", "/"), "--out: '/' is a folder; name a file in it, such as /OUT.jsonl"),
        (("audit", "{in}"), "--out: missing; say where the verdicts shall go"),
        (("audit", "notes.txt", "--out", "o.jsonl"), "suffix '.txt' does not say what it is; add --format"),
        (("audit", "{in}", "--out", "o.jsonl", "--format", "csv"), "in.jsonl:1: "),
        (("audit", "{in}", "--out", "o.jsonl", "--set", "speed=1"), "speed: unknown key"),
        (
            ("audit", "{in}", "--out", "o.jsonl", "--set", "voters"),
            "--set 'voters': write it as dotted.key=value",
        ),
        (("audit", "{in}", "--out", "o.jsonl", "--set", "max_claims={"), "--set 'max_claims={': not YAML"),
        (("audit", "{in}", "--out", "o.jsonl", "--set", "max_claims=0"), "max_claims: "),
        (("audit", "{in}", "--out", "o.jsonl", "--compare", "no.jsonl"), "no.jsonl: no such file"),
        (("audit", "{in}", "--out", "o.jsonl", "--compare", "o.jsonl"), "is this audit's own output"),
        (("audit", "{in}", "--out", "o.jsonl", "--review", "{in}"), "is an input; write to another file"),
        (("audit", "{in}", "--out", "o.jsonl", "--html", "o.jsonl"), "--html: o.jsonl is --out, too"),
        (("audit", "{in}", "--out", "o.jsonl", "--review", "o.summary.json"), "is its summary, too"),
        (("audit", "{in}", "--out", "o.jsonl", "--html", "x", "--review", "x"), "--review: x is --html, too"),
        (
            ("audit", "{in}", "--out", "o.jsonl", "--compare", "x", "--html", "x"),
            "--html: x is --compare, too",
        ),
        (("artifacts", "verify", "--store", "none"), "holds nothing to verify"),
        (("retrain", "tiny", "--dry-run", "--cancel"), "--dry-run: writes nothing, and --cancel stops"),
        (("model", "list", "--mlflow", "none/mlflow.db"), "--mlflow none/mlflow.db: "),
        (("audit", "{in}", "--explain", "r99"), "no row has the id 'r99'; did you mean 'r9', "),
        (("review", "no.csv", "o.jsonl"), "no.csv: no such file"),
        (("audit", "{in}", "--out", "o.jsonl", "--model", "m", "--prompts", "x"), "prompts: cannot read 'x'"),
        (("audit", "{in}", "--out", "o.jsonl", "--set", "kinds=[]"), "kinds: is empty; give one at least"),
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
def test_what_a_user_can_fix_is_one_line(
    arguments: tuple[str, ...],
    says: str,
    rows: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, *(argument.replace("{in}", str(rows)) for argument in arguments))


def test_one_wrong_item_of_a_list_is_one_problem(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "audit", rows, "--out", tmp_path / "o.jsonl", "--set", "kinds=[bogus]")
    assert said == "march: kinds.0: Input should be 'number', 'name' or 'date' (found 'bogus')\n"


@pytest.mark.parametrize(
    ("command", "option", "found"),
    [
        ("audit in.jsonl --out o.jsonl --fail-under 95", "--fail-under", "'95'"),
        ("demo --steps 0", "--steps", "'0'"),
        ("schedule job.yaml --every x", "--every", "'x'"),
        ("audit in.jsonl --format text", "--format", "'text'"),
    ],
)
def test_an_options_value_that_cannot_be_is_named(
    command: str, option: str, found: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert march(*command.split()) == 2
    said = capsys.readouterr().err
    assert f"Invalid value for '{option}': " in said and said.count(found) == 1


def test_a_setting_is_named_once(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "audit", rows, "--out", tmp_path / "o.jsonl", "--set", "locale=german")
    assert said.startswith("march: locale: 'german' is unknown; set ")


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

    monkeypatch.setattr("orchestration.settings.serve.server_config", broken)
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
