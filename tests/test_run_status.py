"""What MLflow says of a training: how it ended and why, told to a real store, whatever the store does."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from pipeline import train as training
from pipeline.data.prepare import Manifest
from pipeline.record import run_status
from pipeline.record.run_status import ENDED_TAG, EXIT_CODE_TAG, GUARDS_TAG, kept_status, one_line
from pipeline.record.tracking import start_mlflow_run
from pipeline.settings.recipe import TINY_POLICY
from pipeline.train import ERROR_FILE, RESULT_FILE, RunState, TrainingFailedError

SECRET = "a-secret-of-the-suite"
MESSAGE = f"http://march:{SECRET}@reward:5001 said no"


class Workers:
    """Stands in for the worker's process, and remembers what MLflow said when it was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.before: list[Any] = []

    def __call__(self, _module: str, folder: Path, _lock: object) -> subprocess.Popen[bytes]:
        self.before.append(self.run())
        for name, text in self.files.items():
            (folder / name).write_text(text)
        return subprocess.Popen(
            [sys.executable, "-S", "-c", f"raise SystemExit({RESULT_FILE not in self.files})"]
        )

    def run(self) -> Any:
        """The MLflow run."""
        state = RunState.model_validate_json((self.folder / "run.json").read_text())
        return MlflowClient(state.tracking_uri).get_run(state.mlflow_run_id)

    def train(self, *overrides: str) -> int:
        """`march train` on prepared rows."""
        rows = f"data={{source: prepared, path: {self.folder.parent}}}"
        return training.train("tiny", run_dir=self.folder, overrides=[rows, "oracle=none", *overrides])

    def tags(self) -> dict[str, str]:
        return {name: value for name, value in self.run().data.tags.items() if name.startswith("march.")}


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workers:
    manifest = Manifest(
        source="x", num_read=64, num_duplicates=0, num_overlong=0, num_rows=64, longest_prompt_tokens=9,
        prompt_digest="", tokenizer=str(TINY_POLICY), max_prompt_tokens=384, rows_sha256="",
    )  # fmt: skip
    (tmp_path / "manifest.json").write_text(manifest.model_dump_json())
    made = Workers(tmp_path / "run")
    monkeypatch.setattr(training, "start_worker", made)
    monkeypatch.setattr(training, "note_surroundings", lambda folder: None)
    return made


@pytest.mark.parametrize("code", [1, 3, 4])
def test_a_run_that_failed_says_why_until_a_resume_finishes_it(code: int, workers: Workers) -> None:
    workers.files = {ERROR_FILE: f'{{"message": "{MESSAGE}", "exit_code": {code}}}'}
    with pytest.raises(TrainingFailedError) as failed:
        workers.train()
    assert failed.value.exit_code == code
    run, tags = workers.run(), workers.tags()
    assert run.data.params["preset"] == "paper"
    assert (run.info.status, tags.pop(EXIT_CODE_TAG)) == ("FAILED", str(code)) and run.info.end_time
    assert tags.pop(ENDED_TAG) == f"{failed.value}".replace(f"march:{SECRET}@", "") and not tags
    workers.files = {RESULT_FILE: "{}"}
    assert workers.train() == 0
    assert [run.info.status for run in workers.before] == ["RUNNING", "RUNNING"]
    assert not workers.before[1].data.tags.keys() & {ENDED_TAG, EXIT_CODE_TAG}
    assert workers.run().info.status == "FINISHED" and not workers.tags()


def test_a_finished_run_stays_finished(workers: Workers, capsys: pytest.CaptureFixture[str]) -> None:
    workers.files = {RESULT_FILE: "{}"}
    assert workers.train() == 0
    ended = workers.run().info
    assert ended.status == "FINISHED" and workers.train() == 0 and len(workers.before) == 1
    assert workers.run().info.end_time == ended.end_time
    assert "this run is finished" in capsys.readouterr().out
    state = RunState.model_validate_json((workers.folder / "run.json").read_text())
    MlflowClient(state.tracking_uri).update_run(state.mlflow_run_id, status="RUNNING")  # killed before
    assert workers.train() == 0 and workers.run().info.status == "FINISHED"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_kills_a_run(
    number: signal.Signals, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(worker: subprocess.Popen[bytes], *_: object, **__: object) -> None:
        worker.wait()
        signal.raise_signal(number)

    monkeypatch.setattr("pipeline.record.progress.show_progress", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background shells ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.train()
    finally:
        signal.signal(signal.SIGINT, before)
    assert workers.run().info.status == "KILLED"
    assert workers.tags() == {ENDED_TAG: "interrupted", EXIT_CODE_TAG: "130"}
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_a_user_can_fix_ends_a_run_with_its_own_code(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_checkpoints: Path) -> int:
        raise ValueError("checkpoints: fix them")

    monkeypatch.setattr(training, "prepare_resume", refuses)
    with pytest.raises(ValueError, match="fix them"):
        workers.train()
    assert workers.tags() == {ENDED_TAG: "checkpoints: fix them", EXIT_CODE_TAG: "2"}


def test_a_resume_may_bring_other_guards_and_nothing_else(
    workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    workers.files = {ERROR_FILE: '{"message": "the KL", "exit_code": 3}'}
    with pytest.raises(TrainingFailedError):
        workers.train("guards.kl={limit: 0.5, action: stop}")
    before = (workers.folder / "run.json").read_text()
    for other, told in (("ppo.kl_coef=0.5", "0.05, now 0.5"), ("seed=3", "0, now 3")):
        with pytest.raises(ValueError, match="only `guards` may change") as refused:
            workers.train("guards.kl={limit: 0.9, action: stop}", other)
        assert f"other settings: {other.partition('=')[0]} (recorded {told})" in str(refused.value)
    assert (workers.folder / "run.json").read_text() == before
    workers.files = {RESULT_FILE: "{}"}
    assert workers.train("guards.kl={limit: 0.9, action: stop}") == 0
    assert "goes on with other guards" in capsys.readouterr().out
    state = RunState.model_validate_json((workers.folder / "run.json").read_text())
    assert state.recipe.guards.kl and state.recipe.guards.kl.limit == 0.9
    assert state.recipe_digest == state.recipe.digest != RunState.model_validate_json(before).recipe_digest
    tags = workers.tags()
    assert '"limit":0.9' in tags.pop(GUARDS_TAG) and not tags
    assert workers.train("guards.kl=null") == 0  # it is finished: nothing is judged any more
    assert len(workers.before) == 2 and '"limit":0.9' in workers.tags()[GUARDS_TAG]


def test_a_run_of_an_earlier_version_goes_on_with_what_it_recorded(
    workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    workers.files = {ERROR_FILE: f'{{"message": "{MESSAGE}", "exit_code": 1}}'}
    with pytest.raises(TrainingFailedError):
        workers.train("seed=3")
    path = workers.folder / "run.json"
    earlier = json.loads(path.read_text())
    del earlier["asked"], earlier["recipe"]["ppo"]["lambd"]  # what is new since then
    earlier["recipe"]["ppo"] |= {"gamma": 0.5, "gone": 1}  # what is another default today, or no more
    path.write_text(json.dumps(earlier | {"recipe_digest": "of then"}))
    with pytest.raises(TrainingFailedError):
        workers.train("seed=3")
    said = capsys.readouterr().out
    assert "without settings that this version does not have: ppo.gone" in said
    assert "with the recorded settings: ppo.gamma (recorded 0.5, now 1.0)" in said
    now = RunState.model_validate_json(path.read_text())
    assert (now.recipe.ppo.gamma, now.recipe.seed, now.recipe_digest) == (0.5, 3, now.recipe.digest)
    assert "gone" not in path.read_text() and "lambd" in path.read_text()


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


@pytest.mark.parametrize("address", [_nobody_listens, _hangs, _no_database])
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
    monkeypatch.setattr(run_status, "_PATIENCE_S", 1.0)
    raised: list[BaseException] = []
    with caplog.at_level(logging.WARNING, logger=run_status.__name__):
        try:
            with kept_status(address(silent_server, tmp_path), "a" * 32):
                if error is not None:
                    raise error
        except BaseException as caught:
            raised.append(caught)
    assert raised == ([] if error is None else [error])
    said = [record.getMessage() for record in caplog.records if record.name == run_status.__name__]
    assert len(said) == 2 and not any("\n" in line for line in said)
    ended = "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
    assert f"is {ended} (" in said[1]


def test_a_run_of_another_store_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    start_mlflow_run(tracking_uri=uri, artifact_root=tmp_path, experiment="e", name="n", params={})
    run_status.tell_status(uri, "b" * 32, "FINISHED")
    [record] = [one for one in caplog.records if one.name == run_status.__name__]
    assert "not found" in record.getMessage()


def test_a_message_is_one_bounded_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    monkeypatch.setenv("SHORT_KEY", "the")  # a word that is no secret
    said = one_line(f"the key\n {SECRET} of postgresql://me:pw@db/x?password=pw&a=1 token=abc " + "x" * 1000)
    assert said.startswith("the key *** of postgresql://db/x?password=***&a=1 token=*** xxx")
    assert len(said) == 500
