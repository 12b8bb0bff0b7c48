"""What MLflow says of a training: how it ended and why, told to a real store, whatever the store does."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from pipeline import train as training
from pipeline.data.prepare import Manifest
from pipeline.launch.failures import ERROR_FILE
from pipeline.record.run import RESULT_FILE, RunState, TrainingFailedError
from pipeline.record.run_status import (
    ENDED_TAG,
    EXIT_CODE_TAG,
    GUARDS_TAG,
    RESTARTS_TAG,
    note_status,
    read_status,
)
from pipeline.record.tracking import read_steps
from pipeline.redaction import one_line
from pipeline.settings.recipe import TINY_POLICY
from reward.roles.prompts import load_prompts
from tests.rollout_runs import step_log

SECRET = "a-secret-of-the-suite"
MESSAGE = f"http://march:{SECRET}@reward:5001 said no"


class Workers:
    """Stands in for the worker's process, and remembers what MLflow said when it was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.before: list[Any] = []
        self.deaths = 0  # workers that are killed after a step, before one that ends as `files` say

    def __call__(self, _module: str, folder: Path, _lock: object) -> subprocess.Popen[bytes]:
        while self.run().info.status != "RUNNING":  # it is told meanwhile
            time.sleep(0.05)
        self.before.append(self.run())
        if self.deaths:
            self.deaths -= 1
            step_log(folder).append(len(read_steps(folder)) + 1, {})
            return subprocess.Popen([sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)"])
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
        return training.train("tiny", run_dir=self.folder, overrides=[rows, *overrides])

    def tags(self) -> dict[str, str]:
        return {name: value for name, value in self.run().data.tags.items() if name.startswith("march.")}


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workers:
    manifest = Manifest(
        source="x", num_read=64, num_duplicates=0, num_overlong=0, num_rows=64, longest_prompt_tokens=9,
        prompt_digest=load_prompts("compact").digest, tokenizer=str(TINY_POLICY), max_prompt_tokens=384,
        rows_sha256="",
    )  # fmt: skip
    (tmp_path / "manifest.json").write_text(manifest.model_dump_json())
    (tmp_path / "train.jsonl").write_text("{}\n")
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
    workers.files = {RESULT_FILE: '{"steps": 2, "model": "model"}'}
    assert workers.train() == 0
    assert [run.info.status for run in workers.before] == ["RUNNING", "RUNNING"]
    assert not workers.before[1].data.tags.keys() & {ENDED_TAG, EXIT_CODE_TAG}
    assert workers.run().info.status == "FINISHED" and not workers.tags()


def test_a_finished_run_stays_finished(workers: Workers, capsys: pytest.CaptureFixture[str]) -> None:
    workers.files = {RESULT_FILE: '{"steps": 2, "model": "model"}'}
    assert workers.train() == 0
    ended = workers.run().info
    assert ended.status == "FINISHED" and workers.train() == 0 and len(workers.before) == 1
    assert workers.run().info.end_time == ended.end_time
    assert "this run is finished" in capsys.readouterr().out
    state = RunState.model_validate_json((workers.folder / "run.json").read_text())
    MlflowClient(state.tracking_uri).update_run(state.mlflow_run_id, status="RUNNING")  # killed before
    assert workers.train() == 0 and workers.run().info.status == "FINISHED"


def test_another_worker_goes_on_where_a_process_of_the_last_one_died(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "prepare_resume", lambda checkpoints: len(read_steps(workers.folder)))
    workers.deaths, workers.files = 2, {RESULT_FILE: '{"steps": 2, "model": "model"}'}
    assert workers.train() == 0 and len(workers.before) == 3
    said = capsys.readouterr().err
    assert "march: the worker ended with code -9; restart 1 of 3\n" in said and "restart 2 of 3" in said
    assert workers.tags() == {RESTARTS_TAG: "2, after the worker ended with code -9"}


@pytest.mark.parametrize(
    ("deaths", "failure", "lives"),
    [
        (9, '{"message": "x"}', 3),  # as often as checkpoint.restarts says
        (1, '{"message": "x", "may_pass": false}', 2),  # an error of the settings, or a bug
        (1, '{"message": "x"}', 2),  # and no step meanwhile
    ],
)
def test_no_worker_follows_for_ever_or_without_hope(
    deaths: int, failure: str, lives: int, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "prepare_resume", lambda checkpoints: len(read_steps(workers.folder)))
    workers.deaths, workers.files = deaths, {ERROR_FILE: failure}
    fixed = "once that is fixed " if "may_pass" in failure else ""
    with pytest.raises(
        TrainingFailedError, match=rf"\(after \d steps; .*log; {fixed}the same command resumes"
    ):
        workers.train("checkpoint.restarts=2")
    assert len(workers.before) == lives


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
        with pytest.raises(ValueError, match="only `guards` and `micro_batch_size` may change") as refused:
            workers.train("guards.kl={limit: 0.9, action: stop}", other)
        assert f"other settings: {other.partition('=')[0]} (recorded {told})" in str(refused.value)
    assert (workers.folder / "run.json").read_text() == before
    workers.files = {RESULT_FILE: '{"steps": 2, "model": "model"}'}
    assert workers.train("guards.kl={limit: 0.9, action: stop}") == 0
    assert "goes on with changed settings: guards.kl.limit (recorded 0.5, now 0.9)" in capsys.readouterr().out
    state = RunState.model_validate_json((workers.folder / "run.json").read_text())
    assert state.recipe.guards.kl and state.recipe.guards.kl.limit == 0.9
    assert state.recipe_digest == state.recipe.digest != RunState.model_validate_json(before).recipe_digest
    tags = workers.tags()
    assert '"limit":0.9' in tags.pop(GUARDS_TAG) and not tags
    assert workers.train("guards.kl=null") == 0  # it is finished: nothing is judged any more
    assert len(workers.before) == 2 and '"limit":0.9' in workers.tags()[GUARDS_TAG]


@pytest.mark.parametrize("changed", ["rows", "weights"])
def test_a_resume_on_other_inputs_is_refused(changed: str, workers: Workers, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(TINY_POLICY, model)
    workers.files = {ERROR_FILE: f'{{"message": "{MESSAGE}", "exit_code": 1}}'}
    with pytest.raises(TrainingFailedError):
        workers.train(f"model={model}")
    file = workers.folder.parent / "train.jsonl" if changed == "rows" else model / "model.safetensors"
    before = file.read_bytes()
    file.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(ValueError, match=f"has other {changed} than the run began with; bring back"):
        workers.train(f"model={model}")
    file.write_bytes(before)
    workers.files = {RESULT_FILE: '{"steps": 2, "model": "model"}'}
    assert workers.train(f"model={model}") == 0


def test_a_run_whose_rows_end_early_is_not_finished(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.files = {ERROR_FILE: f'{{"message": "{MESSAGE}", "exit_code": 1}}'}
    with pytest.raises(TrainingFailedError):
        workers.train("data.max_steps=2", "rollout.batch_size=32")
    monkeypatch.setattr(training, "run_openrlhf", lambda state, folder: step_log(folder).append(1, {}))
    with pytest.raises(ValueError, match="the rows ended after 1 of 2 steps"):
        training.run_worker(workers.folder)
    assert not (workers.folder / RESULT_FILE).exists()
    monkeypatch.setattr(training, "run_openrlhf", lambda state, folder: step_log(folder).append(2, {}))
    training.run_worker(workers.folder)
    assert json.loads((workers.folder / RESULT_FILE).read_text())["steps"] == 2


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


def test_a_message_is_one_bounded_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    monkeypatch.setenv("SHORT_KEY", "the")  # a word that is no secret
    said = one_line(f"the key\n {SECRET} of postgresql://me:pw@db/x?password=pw&a=1 token=abc " + "x" * 1000)
    assert said.startswith("the key *** of postgresql://db/x?password=***&a=1 token=*** xxx")
    assert len(said) == 500


def test_two_statuses_of_one_millisecond_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    timestamps = []
    for status in ("RUNNING", "FAILED"):
        note_status(tmp_path, status)
        noted = read_status(tmp_path)
        assert noted is not None and noted.status == status
        timestamps.append(noted.timestamp)
    assert timestamps[0] < timestamps[1], "the second would count as sent"
