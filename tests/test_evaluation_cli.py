"""`march evaluate` and `march best` as a user meets them: what is printed, exit codes, a kill, MLflow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.evaluations import ChatServer, figures
from tests.march_cli import DATA, MARCH, march, refused

TWOWIKI = DATA / "2wikimultihopqa" / "train.json"


def command(out: Path, model: ChatServer, judge: ChatServer, *more: object) -> list[str]:
    """`march evaluate` of six questions, four answers each."""
    given: list[object] = ["evaluate", model.url, "--model-name", "tested", "--out", out, "--limit", 6]
    given += ["--benchmark", f"2wikimultihopqa={TWOWIKI}", "--judge", judge.url, "--judge-model", "judge"]
    given += ["--generations", 4, *more]
    return [str(one) for one in given]


def test_an_evaluation_says_what_it_found_and_what_it_paid(
    tmp_path: Path, model: ChatServer, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert march(*command(tmp_path / "out", model, judge, "--html", page)) == 0
    said = capsys.readouterr().out
    assert "tokens in this run: " in said
    assert f"inspect view --log-dir {tmp_path / 'out' / 'logs' / 'judge'}" in " ".join(said.split())
    assert "2wikimultihopqa" in said and "accuracy" in said and "fewer than 50" in said
    assert page.read_text().startswith("<!doctype html>") and "page-items/index.html" in page.read_text()
    assert list((tmp_path / "page-items" / "logs").glob("*.eval")), "the logs, with Inspect's viewer"
    manifest = json.loads((tmp_path / "out" / "results.json").read_text())
    assert manifest["benchmarks"]["2wikimultihopqa"]["card"]["licence"] == "Apache-2.0"
    judge.status = 500  # nothing is left to ask
    assert march(*command(tmp_path / "out", model, judge)) == 0
    assert f"0 tokens in this run: {tmp_path / 'out' / 'results.json'}" in capsys.readouterr().out


def test_a_dry_run_asks_nothing(
    tmp_path: Path, model: ChatServer, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = ["--price-in", 1000, "--model-price-out", 1000]
    assert march(*command(tmp_path / "out", model, judge, "--dry-run", *prices)) == 0
    said = capsys.readouterr().out
    assert (model.bodies, judge.bodies, (tmp_path / "out").exists()) == ([], [], False)
    assert " + 7,200" in said, "24 answers of 300 tokens"
    assert "four characters each" in said and "by the given prices" in said


def test_two_evaluations_are_compared_and_the_better_one_is_named(
    tmp_path: Path, model: ChatServer, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march(*command(tmp_path / "one", model, judge)) == 0
    model.complete = lambda _: ["Answer: 1"]
    compared = command(tmp_path / "two", model, judge, "--compare", tmp_path / "one", "--seed", 7)
    assert march(*compared) == 0
    assert "Compared with" in capsys.readouterr().out
    assert march("best", tmp_path / "one", tmp_path / "two") == 0
    said = capsys.readouterr().out
    assert "Best: " in said and "luckiest" in said
    other = command(tmp_path / "three", model, judge, "--set", "judging.temperature=0.5")
    assert march(*other) == 0
    capsys.readouterr()
    line = refused(capsys, "best", tmp_path / "one", tmp_path / "three")
    assert "judge.judging.temperature is 0.5 there and 0.0 here; evaluate both with the same" in line
    num_asked = len(model.bodies)
    line = refused(capsys, *command(tmp_path / "four", model, judge, "--compare", tmp_path / "three"))
    assert "--compare: judge.judging.temperature is 0.5 there" in line
    assert len(model.bodies) == num_asked, "it is said before anything is asked"


def test_a_style_that_a_benchmark_does_not_have_is_said(
    tmp_path: Path, model: ChatServer, judge: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    worlds = tmp_path / "worlds.json"
    worlds.write_text('{"num_worlds": 2, "seed": 0}')
    other = ["--benchmark", f"tiny={worlds}", "--style", "cot", "--limit", 1, "--generations", 1]
    assert march(*command(tmp_path / "out", model, judge, *other)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "tiny: is asked plain alone, and not cot" in said and "2wikimultihopqa: is asked" not in said
    assert "tiny: all items are of one document, so there is no interval" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--benchmark", "2wiki"], "--benchmark '2wiki': write it as NAME=PATH"),
        (["--benchmark", f"2wikimultihopqa={TWOWIKI}"], "2wikimultihopqa is given twice"),
        (["--benchmark", "nothing=x"], "'nothing' is not known; give one of ragtruth"),
        (["--benchmark", "hotpotqa=nowhere.json"], "nowhere.json: no such file"),
        (
            ["--style", "10-shot", "--benchmark", f"ragtruth={DATA / 'ragtruth'}"],
            "ragtruth is asked as plain, cot",
        ),
        (["--judge", "judge.example"], "--judge: 'judge.example' is no URL"),
        (["--compare", "nowhere"], "results.json: no such file"),
        (["--mlflow", "http://127.0.0.1:9"], "http://127.0.0.1:9: --mlflow: cannot be reached"),
        (["--set", "judgeretries=1"], "judgeretries: unknown key"),
        (["--set", "generation.temperature=9"], "generation.temperature"),
    ],
)
def test_what_a_user_can_fix_is_one_line(
    change: list[str],
    says: str,
    tmp_path: Path,
    model: ChatServer,
    judge: ChatServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = command(tmp_path / "out", model, judge, *change)
    assert says in refused(capsys, *arguments)
    assert model.bodies == []


def test_a_model_that_cannot_be_started_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worlds = tmp_path / "worlds.json"
    worlds.write_text('{"num_worlds": 2, "seed": 0}')
    said = refused(capsys, "evaluate", "nowhere", "--benchmark", f"tiny={worlds}", "--out", tmp_path / "out")
    assert "MODEL: 'nowhere' is not a folder" in said
    said = refused(capsys, "evaluate", tmp_path, "--benchmark", f"tiny={worlds}", "--out", tmp_path / "out")
    assert f"MODEL: no tokenizer in '{tmp_path}'; save the model's tokenizer beside its weights" in said
    assert not (tmp_path / "out").exists(), "nothing was begun"


def started(arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with log.open("w") as out:
        return subprocess.Popen(
            [*MARCH, *arguments],
            stdout=out,
            stderr=out,
            env=environment,
            # A shell that runs the tests in the background has told its children to ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


def wait_for(server: ChatServer, num_asked: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while len(server.bodies) < num_asked:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_what_was_killed_goes_on_to_the_same_figures(
    number: signal.Signals, code: int, tmp_path: Path, model: ChatServer, judge: ChatServer
) -> None:
    assert march(*command(tmp_path / "whole" / "out", model, judge, "--set", "cache=false")) == 0
    judge.delay_s, num_before, num_answers = 0.2, len(judge.bodies), len(model.bodies)
    out, log = tmp_path / "killed" / "out", tmp_path / "log.txt"
    arguments = command(out, model, judge, "--concurrency", 2, "--set", "cache=false")
    process = started(arguments, log)
    wait_for(judge, num_before + 12, process)
    process.send_signal(number)
    assert process.wait(60) == code, log.read_text()
    assert not (out / "results.json").exists() and len(model.bodies) == num_answers + 24
    if number is signal.SIGINT:
        assert "the same command goes on" in log.read_text()
    judge.delay_s, num_before = 0.0, len(judge.bodies)
    assert march(*arguments) == 0
    assert len(judge.bodies) - num_before <= 24 - 6 and len(model.bodies) == num_answers + 24
    items = "2wikimultihopqa/items.jsonl"
    assert figures(out)[items] == figures(tmp_path / "whole" / "out")[items]


@pytest.mark.slow
def test_everything_is_logged_to_a_real_mlflow_server_once(
    mlflow_uri: str,
    tmp_path: Path,
    model: ChatServer,
    judge: ChatServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from mlflow import MlflowClient

    logged = command(tmp_path / "out", model, judge, "--mlflow", mlflow_uri, "--html", tmp_path / "page.html")
    assert march(*logged) == 0
    run_id = json.loads((tmp_path / "out" / "mlflow.json").read_text())["run_id"]
    client = MlflowClient(mlflow_uri)
    run = client.get_run(run_id)
    manifest = json.loads((tmp_path / "out" / "results.json").read_text())
    accuracy = manifest["benchmarks"]["2wikimultihopqa"]["estimates"]["overall"]["accuracy"]
    assert run.info.status == "FINISHED"
    assert run.data.metrics["2wikimultihopqa/accuracy"] == accuracy["value"]
    assert run.data.metrics["2wikimultihopqa/accuracy/low"] == accuracy["interval"]["low"]
    assert run.data.params["judge.model"] == "judge" and run.data.params["generation.top_k"] == "20"
    assert {file.path for file in client.list_artifacts(run_id, "evaluation")} == {
        "evaluation/2wikimultihopqa",
        "evaluation/results.json",
        "evaluation/page.html",
    }
    assert march(*logged) == 0
    assert len(client.search_runs([run.info.experiment_id])) == 1
    into = start_training(client)
    assert march(*logged, "--mlflow-run", into) == 0
    assert client.get_run(into).data.metrics["2wikimultihopqa/accuracy"] == accuracy["value"]
    assert client.get_run(into).info.status == "RUNNING"
    capsys.readouterr()
    assert "--mlflow" in refused(capsys, *logged, "--mlflow-run", "0" * 32)


def start_training(client: object) -> str:
    """A run of a training that is under way."""
    from mlflow import MlflowClient

    assert isinstance(client, MlflowClient)
    return str(client.create_run(client.create_experiment("training")).info.run_id)
