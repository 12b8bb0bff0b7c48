"""MLflow's copy of a run: nothing lost or doubled, whatever the server and the sending process do."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from pipeline.record import mlflow_sender, tracking
from pipeline.record.mlflow_sender import kept_status, missing, send
from pipeline.record.rollout_files import rollouts_file
from pipeline.record.run import TrainingFailedError
from pipeline.record.run_status import ENDED_TAG, note_status, read_status
from pipeline.record.tracking import (
    drop_steps_after,
    last_row,
    read_rows,
    read_sent,
    read_steps,
    rows_since,
    start_mlflow_run,
    write_sent,
)
from tests.march_cli import march
from tests.mlflow_process import mlflow_server
from tests.rollout_runs import step_log, trained_answer, write_state

# A training, as far as MLflow sees it: the process of the user, and steps that appear in the folder.
TRAINING = """
import sys, time
from pathlib import Path
from pipeline.record import mlflow_sender, tracking
from pipeline.record.tracking import StepLog
from tests.rollout_runs import trained_answer
folder, first, last, pause_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
mlflow_sender._PATIENCE_S, mlflow_sender._LONGEST_PAUSE_S = float(sys.argv[5]), 2.0
with mlflow_sender.kept_status(folder):
    for step in range(first, last + 1):
        StepLog(folder).write(step, {"audit/reward": -1.0 / step, "time/step_s": 2.0}, [trained_answer()])
        print(step, flush=True)
        time.sleep(pause_s)
"""
LONG = 3600.0


class Fake:
    """Stands for MLflow: keeps what it is given, and refuses what `fails` says."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.batches: list[list[tuple[str, int]]] = []
        self.fails = 0

    def log_artifact(self, run_id: str, path: str, artifact_path: str) -> None:
        self.files.append(f"{artifact_path}/{Path(path).name}")

    def log_batch(self, run_id: str, metrics: Sequence[Any]) -> None:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("away")
        self.batches.append([(metric.key, metric.step) for metric in metrics])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr("mlflow.MlflowClient", lambda uri: made)
    return made


def test_a_step_is_sent_with_its_rollouts_once(tmp_path: Path, fake: Fake) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    step_log(tmp_path).write(1, {"audit/reward": -1.0}, [trained_answer()] * 2)
    send(tmp_path)
    send(tmp_path)
    assert fake.files == ["rollouts/step-000001.parquet"]
    assert [sorted(batch) for batch in fake.batches] == [[("audit/reward", 1), ("rollouts/kept", 1)]]
    write_state(tmp_path, tracking_uri="", run_id="r", artifacts=False)
    step_log(tmp_path).write(2, {}, [trained_answer()])
    send(tmp_path)
    assert len(fake.files) == 1 and len(fake.batches) == 2 and rollouts_file(tmp_path, 2).is_file()


def test_a_failure_loses_none(tmp_path: Path, fake: Fake) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    log = step_log(tmp_path)
    for step in (1, 2, 3):
        log.append(step, {"a": 1.0})
    fake.fails = 1
    with pytest.raises(ConnectionError):
        send(tmp_path)
    assert missing(tmp_path) == "3 steps"
    send(tmp_path)
    assert fake.batches == [[("a", 1)], [("a", 2)], [("a", 3)]] and not missing(tmp_path)


def test_steps_that_a_resume_drops_are_not_sent_and_their_successors_are(tmp_path: Path, fake: Fake) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    log = step_log(tmp_path)
    for step in (1, 2, 3):
        log.append(step, {"a": float(step)})
    send(tmp_path)
    log.append(4, {"a": 4.0})
    drop_steps_after(tmp_path, 2)
    assert read_steps(tmp_path) == [{"step": 1, "a": 1.0}, {"step": 2, "a": 2.0}]
    log.append(3, {"b": 3.0})
    send(tmp_path)
    assert fake.batches == [[("a", 1)], [("a", 2)], [("a", 3)], [("b", 3)]]


def test_a_request_that_was_under_way_at_a_resume_hides_no_later_step(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    for step in (1, 2):
        step_log(tmp_path).append(step, {"a": 1.0})
    take = fake.log_batch

    def meanwhile(run_id: str, metrics: Sequence[Any]) -> None:
        take(run_id, metrics)
        if len(fake.batches) == 2:
            drop_steps_after(tmp_path, 0)

    monkeypatch.setattr(fake, "log_batch", meanwhile)
    send(tmp_path)
    monkeypatch.setattr("time.time_ns", lambda: 0)  # a clock that was put back
    step_log(tmp_path).append(1, {"b": 1.0})
    send(tmp_path)
    assert fake.batches[2:] == [[("b", 1)]]


def test_a_step_that_an_earlier_version_sent_itself_is_not_sent_again(tmp_path: Path, fake: Fake) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    (tmp_path / "steps.jsonl").write_text('{"step": 1, "a": 1.0}\n')
    step_log(tmp_path).append(2, {"a": 2.0})
    send(tmp_path)
    assert fake.batches == [[("a", 2)]]


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
@pytest.mark.parametrize("torn", ["", '{"step": 3'])
def test_new_steps_are_read_from_the_end(
    block: int, torn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "_BLOCK", block)
    assert rows_since(tmp_path, 0) == [] and last_row(tmp_path) is None
    file = tmp_path / "steps.jsonl"
    file.write_text(torn)
    assert rows_since(tmp_path, 0) == [] and last_row(tmp_path) is None
    file.write_text('{"step": 1, "timestamp": 5}\n{"step": 2, "timestamp": 6}\n' + torn)
    assert rows_since(tmp_path, 0) == read_rows(tmp_path)
    assert rows_since(tmp_path, 5) == [{"step": 2, "timestamp": 6}] == [last_row(tmp_path)]
    assert rows_since(tmp_path, 6) == []


def test_a_new_step_costs_the_same_after_many(tmp_path: Path, fake: Fake) -> None:
    """The whole record was read after each step: 90 MB after 20,000."""
    write_state(tmp_path, tracking_uri="", run_id="r")
    sent = "no JSON, so whoever reads it fails\n" * 5_000 + '{"step": 5001, "timestamp": 5}\n'
    (tmp_path / "steps.jsonl").write_text(sent + '{"step": 5002, "timestamp": 6, "a": 1.0}\n')
    write_sent(tmp_path, step=5)
    send(tmp_path)
    assert fake.batches == [[("a", 5002)]] and not missing(tmp_path)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def _nobody_listens(_silent: str, _folder: Path) -> str:
    return "http://127.0.0.1:9"


def _hangs(silent: str, _folder: Path) -> str:
    return silent


def _no_database(_silent: str, folder: Path) -> str:
    (folder / "mlflow.db").write_text("no database")
    return f"sqlite:///{folder / 'mlflow.db'}"


def _another_store(_silent: str, folder: Path) -> str:
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    start_mlflow_run(tracking_uri=uri, artifact_root=folder, experiment="e", name="n", params={})
    return uri


@pytest.mark.parametrize("address", [_nobody_listens, _hangs, _no_database, _another_store])
@pytest.mark.parametrize(
    "error", [None, TrainingFailedError("the worker died"), KeyboardInterrupt()], ids=repr
)
def test_a_store_that_does_not_answer_neither_fails_a_run_nor_hides_its_error(
    address: Callable[[str, Path], str],
    error: BaseException | None,
    silent_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(mlflow_sender, "_PATIENCE_S", 1.0)
    write_state(tmp_path / "run", tracking_uri=address(silent_server, tmp_path), run_id="a" * 32)
    raised: list[BaseException] = []
    begin = time.monotonic()
    with caplog.at_level(logging.WARNING, logger=mlflow_sender.__name__):
        try:
            with kept_status(tmp_path / "run"):
                step_log(tmp_path / "run").append(1, {"a": 1.0})
                if error is not None:
                    raise error
        except BaseException as caught:
            raised.append(caught)
    assert raised == ([] if error is None else [error])
    assert time.monotonic() - begin < 30  # the first import of MLflow is in it
    [said] = [record.getMessage() for record in caplog.records if record.name == mlflow_sender.__name__]
    ended = "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
    assert said.startswith(f"MLflow lacks 1 step and the status {ended}: ") and "\n" not in said
    assert said.endswith(f"; later: march record {tmp_path / 'run'}")


def test_the_end_of_a_run_waits_for_a_server_that_is_being_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[Path]()

    def send(folder: Path) -> None:
        calls.append(folder)
        if len(calls) < 4:
            raise ConnectionError("away")

    monkeypatch.setattr(mlflow_sender, "send", send)
    monkeypatch.setattr(mlflow_sender, "_LAST_PAUSE_S", 0.01)
    write_state(tmp_path / "run", tracking_uri=f"sqlite:///{tmp_path}/mlflow.db", run_id="a" * 32)
    with mlflow_sender.sent_to_mlflow(tmp_path / "run"):
        step_log(tmp_path / "run").append(1, {"a": 1.0})
    assert len(calls) == 4


class Training:
    """`TRAINING` in a process of its own."""

    def __init__(self, folder: Path, *, first: int, last: int, pause_s: float, patience_s: float) -> None:
        numbers = [str(number) for number in (first, last, pause_s, patience_s)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(folder), *numbers],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5"},
        )

    def wait_for_step(self, step: int) -> None:
        assert self.process.stdout is not None
        while self.process.stdout.readline().strip() != str(step):
            assert self.process.poll() is None, self.process.communicate()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)

    def end(self) -> str:
        """What it says on standard error."""
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, said
        return said


@pytest.mark.slow
def test_a_server_that_was_away_and_a_sender_that_was_killed_lose_and_double_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, store = tmp_path / "run", tmp_path / "mlflow"
    store.mkdir()
    with mlflow_server(store) as uri:
        named = {"experiment": "e", "name": "n", "params": {}}
        run_id = start_mlflow_run(tracking_uri=uri, artifact_root=tmp_path, **named)
        write_state(folder, tracking_uri=uri, run_id=run_id)
        first = Training(folder, first=1, last=99, pause_s=0.5, patience_s=LONG)
        first.wait_for_step(4)
        while not read_sent(folder).step:
            assert first.process.poll() is None
            time.sleep(0.05)
    first.wait_for_step(len(read_steps(folder)) + 3)  # it goes on while nobody listens
    first.kill()
    done, lacks = len(read_steps(folder)), int(missing(folder).split()[0])
    assert 3 <= lacks < done

    second = Training(folder, first=done + 1, last=done + 2, pause_s=0.1, patience_s=2.0)
    said = second.end()
    assert f"MLflow lacks {lacks + 2} steps and the status FINISHED: " in said
    assert said.rstrip().endswith(f"march record {folder}") and "Traceback" not in said

    sent = (folder / "mlflow.json").read_text()
    with mlflow_server(store, port=int(uri.rpartition(":")[2])) as again:
        assert again == uri
        assert march("record", folder) == 0
        assert f"MLflow now has {lacks + 2} steps and the status FINISHED" in capsys.readouterr().out
        (folder / "mlflow.json").write_text(sent)  # as if it had been killed before it noted what MLflow had
        send(folder)
        assert not missing(folder)
        assert march("record", folder) == 0 and "lacked nothing" in capsys.readouterr().out
        client = MlflowClient(uri)
        rows = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
        for name in ("audit/reward", "time/step_s", "rollouts/kept"):
            points = client.get_metric_history(run_id, name)
            found = sorted((point.step, point.timestamp, point.value) for point in points)
            assert found == [(row["step"], row["timestamp"], row[name]) for row in rows]
        assert [row["step"] for row in rows] == list(range(1, done + 3))
        assert len(client.list_artifacts(run_id, "rollouts")) == done + 2
        run, status = client.get_run(run_id), read_status(folder)
        assert run.info.status == "FINISHED" and status and run.info.end_time == status.timestamp


@pytest.mark.slow
def test_a_server_that_stops_answering_holds_nobody_up_and_gets_all_when_it_goes_on(tmp_path: Path) -> None:
    from tests.mlflow_process import running_mlflow

    folder, store = tmp_path / "run", tmp_path / "mlflow"
    store.mkdir()
    with running_mlflow(store) as (uri, server):
        named = {"experiment": "e", "name": "n", "params": {}}
        run_id = start_mlflow_run(tracking_uri=uri, artifact_root=tmp_path, **named)
        write_state(folder, tracking_uri=uri, run_id=run_id)
        note_status(folder, "FAILED", {ENDED_TAG: "an earlier end"})
        training = Training(folder, first=1, last=30, pause_s=0.3, patience_s=60.0)
        training.wait_for_step(3)
        os.killpg(server.pid, signal.SIGSTOP)
        training.wait_for_step(28)
        os.killpg(server.pid, signal.SIGCONT)
        assert "lacks" not in training.end()
        points = MlflowClient(uri).get_metric_history(run_id, "audit/reward")
        assert sorted(point.step for point in points) == list(range(1, 31))
        run = MlflowClient(uri).get_run(run_id)
        assert run.info.status == "FINISHED" and ENDED_TAG not in run.data.tags


def test_a_file_of_rollouts_that_is_gone_keeps_no_figure_back(tmp_path: Path, fake: Fake) -> None:
    write_state(tmp_path, tracking_uri="", run_id="r")
    for step in (1, 2):
        step_log(tmp_path).write(step, {"audit/reward": -1.0}, [trained_answer()] * 2)
    rollouts_file(tmp_path, 1).unlink()
    send(tmp_path)
    assert fake.files == ["rollouts/step-000002.parquet"] and len(fake.batches) == 2
