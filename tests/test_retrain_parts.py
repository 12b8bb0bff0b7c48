"""The lease, which failures may pass, results in the store, and the processes that stages run in."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from orchestration.registry import server
from orchestration.registry.decisions import LostRaceError
from orchestration.retrain.attempt import PROGRESS_MARK, last_report
from orchestration.retrain.lease import LEASES, BusyError, Lease, only_here
from orchestration.retrain.ledger import _joined, _parted, _read_run, _tags
from orchestration.retrain.local_stage import LocalStage, kill_leftovers
from orchestration.retrain.loop import retrain
from orchestration.retrain.records import Seen, Stage, StageProgress, StageResult
from orchestration.retrain.results import Results, open_job_store
from orchestration.retrain.transient import patiently, problem_of
from pipeline.artifacts.backend import CorruptError, StoreError, UnsafeEndpointError
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from pipeline.evaluate.tasks.served import ServerDownError
from pipeline.record.run import TrainingFailedError
from tests.retrainings import rig
from tests.schedule_jobs import wait_until
from tests.test_retrain_ray import request_of

KEY = LEASES + "shop"


def lease(backend: LocalBackend, holder: str, **more: object) -> Lease:
    return Lease(backend, "shop", holder=holder, **{"period_s": 5, **more})  # type: ignore[arg-type]


def test_a_lease_that_beats_is_not_taken(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    first = lease(backend, "here")
    first.take()
    beats = lambda _seconds: first._write_again("here")  # noqa: E731  # meanwhile its holder lives
    with pytest.raises(BusyError, match="runs this job"):
        lease(backend, "there", sleep=beats).take()


def test_a_silent_lease_is_taken_after_one_period_and_its_holder_is_told(tmp_path: Path) -> None:
    backend, waited = LocalBackend(tmp_path), list[float]()
    first = lease(backend, "here")
    first.take()
    second = lease(backend, "there", sleep=waited.append)
    second.take()
    assert waited == [5]
    first._period_s = 0.01
    first._keep()  # it wakes up, and finds its lease taken
    assert first.is_lost and not second.is_lost


def test_a_holder_that_was_stopped_looks_before_anything_is_written(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    first = lease(backend, "here")
    first.take()
    assert not first.is_lost
    lease(backend, "there", sleep=lambda _seconds: None).take()
    assert not first.is_lost, "it has just been written"
    first._beat -= 6  # it was stopped for longer than a period
    assert first.is_lost


def test_a_record_that_is_too_long_for_a_tag_is_kept_in_parts(tmp_path: Path) -> None:
    data = {f"{'folder' * 8}/{i}.jsonl": "d" * 64 for i in range(300)}
    long = Seen(order=2, attempt=1, began_ms=0, data=data)
    found = retrain(rig(tmp_path).place).model_copy(update={"seen": long, "is_closed": True})
    tags = _tags(found)
    assert max(map(len, tags.values())) < 8_000 and "march.retrain.seen.1" in tags
    assert tags["march.retrain.version"] == found.version
    run = SimpleNamespace(
        info=SimpleNamespace(run_id=found.run_id, status="FINISHED"), data=SimpleNamespace(tags=tags)
    )
    assert _read_run(run) == found
    shorter = found.model_copy(update={"seen": long.model_copy(update={"data": {}})})
    tags |= _tags(shorter)  # MLflow keeps the tags of before
    assert _read_run(run) == shorter
    tags["march.retrain.record"] = tags["march.retrain.record"][:-9]  # cut, as by another release
    assert _read_run(run) is None
    tags |= _tags(found) | {"march.retrain.record": '{"id": 7}'}
    assert _read_run(run) is None


@pytest.mark.parametrize("length", [0, 1, 6_999, 7_000, 7_001, 14_000, 20_000])
def test_parts_are_joined_again(length: int) -> None:
    tags = dict(_parted("x", "a" * length))
    assert _joined({**tags, f"x.{len(tags)}": "b" * 7_000}, "x").rstrip() == "a" * length


def test_the_next_process_on_the_same_machine_need_not_wait(tmp_path: Path) -> None:
    backend, waited = LocalBackend(tmp_path), list[float]()
    lease(backend, "here").take()  # killed
    lease(backend, "here", sleep=waited.append).take()
    assert not waited


class LosesAnswers(LocalBackend):
    """A store that is away for some writes: before they are done, or after, when nobody hears of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.troubles: list[str] = []

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        trouble = self.troubles.pop(0) if self.troubles else ""
        if trouble == "broken":
            raise OSError(5, "the folder's server is away")
        if trouble == "away":
            raise StoreError(f"{key}: the store does not answer")
        super().compare_and_set(key, content, tag=tag)
        if trouble == "unheard":
            raise StoreError(f"{key}: the connection was reset")


@pytest.mark.parametrize(
    "troubles", [["away"] * 12, ["unheard"] * 3, ["away", "unheard", "away"], ["broken"] * 3]
)
def test_a_store_that_is_away_costs_nobody_the_lease(tmp_path: Path, troubles: list[str]) -> None:
    backend = LosesAnswers(tmp_path)
    held = lease(
        backend, "here", period_s=0.2
    )  # a beat takes longer on a busy machine; the end waits so long for it
    with held.held():
        backend.troubles = [*troubles]
        wait_until(lambda: not backend.troubles, "it stopped beating", 10)
        before = backend.read(KEY)
        wait_until(lambda: backend.read(KEY) != before, "it stopped beating", 10)
    assert not held.is_lost
    lease(backend, "there", sleep=lambda _seconds: pytest.fail("it was not given back")).take()


def test_a_lease_that_was_taken_while_the_store_was_away_is_lost(tmp_path: Path) -> None:
    backend = LosesAnswers(tmp_path)
    held = lease(backend, "here", period_s=0.02)
    held.take()
    lease(backend, "there", sleep=lambda _seconds: None).take()
    backend.troubles = ["away"] * 3
    held._keep()
    assert held.is_lost


def test_a_lease_is_given_back(tmp_path: Path) -> None:
    backend, waited = LocalBackend(tmp_path), list[float]()
    with lease(backend, "here").held():
        blob = backend.read(KEY)
        assert blob and json.loads(blob.content)["holder"] == "here"
    lease(backend, "there", sleep=waited.append).take()
    assert not waited


def test_of_two_that_take_a_dead_lease_one_gets_it(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    lease(backend, "dead").take()
    barrier, taken = threading.Barrier(2), list[str]()

    def take(holder: str) -> None:
        try:
            lease(backend, holder, sleep=lambda _: barrier.wait(30)).take()
        except BusyError:
            return
        taken.append(holder)

    threads = [threading.Thread(target=take, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blob = backend.read(KEY)
    assert blob and [json.loads(blob.content)["holder"]] == taken


def test_a_store_that_cannot_compare_and_set_has_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UnsafeEndpointError("the endpoint lacks IfMatch")

    backend = LocalBackend(tmp_path)
    monkeypatch.setattr(backend, "compare_and_set", refuse)
    with lease(backend, "here").held():
        assert "only this machine's lock" in caplog.text


def test_one_process_a_machine_and_its_name_stays(tmp_path: Path) -> None:
    with only_here(tmp_path) as name, pytest.raises(BusyError, match="runs here"), only_here(tmp_path):
        pass
    with only_here(tmp_path) as again:
        assert again == name


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def mlflow_error(status: int) -> Exception:
    found = RuntimeError("MLflow")
    found.get_http_status_code = lambda: status  # type: ignore[attr-defined]
    return found


def client_error(status: int) -> Exception:
    found = RuntimeError("S3")
    found.response = {"ResponseMetadata": {"HTTPStatusCode": status}}  # type: ignore[attr-defined]
    return found


class Asked(BaseModel):
    """Something to be wrong about."""

    number: int


def wrong_field() -> Exception:
    try:
        Asked.model_validate({"number": "many"})
    except ValueError as error:
        return error
    raise AssertionError


FAILURES: dict[str, tuple[Exception, bool, int]] = {
    "refused": (ConnectionRefusedError("refused"), True, 1),
    "timeout": (TimeoutError(), True, 1),
    "store, 503": (caused(StoreError("s3://b"), client_error(503)), True, 1),
    "store, 403": (caused(StoreError("s3://b"), client_error(403)), False, 2),
    "store, full": (caused(StoreError("s3://b"), client_error(507)), False, 2),
    "registry away": (caused(ValueError("--mlflow"), mlflow_error(500)), True, 1),
    "registry refuses": (caused(ValueError("--mlflow"), mlflow_error(400)), False, 2),
    "worker killed": (TrainingFailedError("the worker ended with code -9"), True, 1),
    "guard stopped": (TrainingFailedError("guard kl stopped", exit_code=3), False, 1),
    "nothing to learn": (TrainingFailedError("TooManyUnscoredError: 11 of 16", may_pass=False), False, 1),
    "judge down": (ServerDownError("judge"), True, 1),
    "lost race": (LostRaceError("another was first"), True, 1),
    "disk full": (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), False, 2),
    "disk full in a worker": (caused(RuntimeError("worker"), OSError(errno.ENOSPC, "full")), False, 1),
    "no such file": (FileNotFoundError(errno.ENOENT, "No such file", "x"), False, 2),
    "damaged": (CorruptError("came twice with another content"), False, 2),
    "a wrong field": (wrong_field(), False, 2),
    "a bug": (KeyError("x"), False, 1),
    "an engine": (RuntimeError("CUDA error: an illegal memory access"), True, 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_may_pass_is_told_from_what_may_not(name: str) -> None:
    error, transient, exit_code = FAILURES[name]
    problem = problem_of(error)
    assert (problem.transient, problem.exit_code) == (transient, exit_code)
    assert "\n" not in problem.line


def test_patience_ends_with_the_error_itself() -> None:
    tries = iter(range(100))

    def fail() -> None:
        next(tries)
        raise ConnectionResetError("reset")

    with pytest.raises(ConnectionResetError):
        patiently(fail, patience_s=0.0)
    assert next(tries) == 1
    with pytest.raises(ValueError, match="mine"):
        patiently(lambda: (_ for _ in ()).throw(ValueError("mine")), patience_s=60)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(ArtifactStore(LocalBackend(tmp_path / "store")), "shop")


def result(results: Results, text: str) -> StageResult:
    digest = results.store.publish(kind="rows", record={"text": text}).digest
    return StageResult(stage="prepare", key="k" * 64, outputs={"rows": digest})


def test_of_two_results_for_one_key_the_first_stands(results: Results) -> None:
    first = results.put(Stage.PREPARE, result(results, "one"))
    assert results.put(Stage.PREPARE, result(results, "another")) == first
    assert results.find(Stage.PREPARE, "k" * 64) == first
    assert results.find(Stage.TRAIN, "k" * 64) is None


def test_a_result_with_a_cut_object_does_not_stand_and_is_replaced(results: Results, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    published = results.store.publish(tmp_path / "rows.jsonl", kind="rows")
    made = StageResult(stage="prepare", key="k" * 64, outputs={"rows": published.digest})
    results.put(Stage.PREPARE, made)
    sha256 = published.manifest.files[0].sha256
    (tmp_path / f"store/objects/sha256/{sha256[:2]}/{sha256}").unlink()
    assert results.find(Stage.PREPARE, "k" * 64) is None
    again = results.put(Stage.PREPARE, result(results, "anew"))
    assert results.find(Stage.PREPARE, "k" * 64) == again


def test_a_stage_waits_for_mlflow_as_the_user_said_and_not_as_the_loop_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
    for given, in_the_loop in (({}, "3"), ({name: "9"}, "9")):
        monkeypatch.setattr(os, "environ", dict(given))
        server.be_impatient()
        assert os.environ[name] == in_the_loop
        assert server.patient_environment() == given


def test_a_stages_process_tells_how_far_it_is_and_what_was_wrong(tmp_path: Path) -> None:
    """Through a pipe, for which a full disk has room."""
    request = request_of(tmp_path, "http://127.0.0.1:1", "a" * 64, rows=False)
    running = LocalStage(request)
    wait_until(running.has_ended, "it does not end", 120)
    problem = running.problem()
    assert problem is not None and (problem.transient, problem.exit_code) == (False, 2)
    assert "has no manifest.json" in problem.line
    whole = request.model_copy(update={"key": "b" * 64})
    request_of(tmp_path, "http://127.0.0.1:1", "b" * 64)  # now there are rows
    running = LocalStage(whole)
    wait_until(running.has_ended, "it does not end", 120)
    assert running.problem() is None and running.progress().label == "stored"
    assert Results(open_job_store(whole.job), "shop").find(Stage.PREPARE, "b" * 64) is not None


def test_the_last_whole_report_behind_a_mark_counts() -> None:
    told = [f"{PROGRESS_MARK}{StageProgress(done=done).model_dump_json()}" for done in (1, 2)]
    found = last_report("\n".join(["a log", *told, f"{PROGRESS_MARK}{{"]), PROGRESS_MARK, StageProgress)
    assert found is not None and found.done == 2
    assert last_report("a log", PROGRESS_MARK, StageProgress) is None


def test_what_a_killed_attempt_left_running_is_ended_and_nothing_else(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    environment = {**os.environ, "MARCH_RETRAIN_STAGE": str(tmp_path / "train-1")}
    other = {**os.environ, "MARCH_RETRAIN_STAGE": str(tmp_path / "train-12")}
    left, stranger = (
        subprocess.Popen(sleeper, env=env, start_new_session=True, stdout=subprocess.PIPE)
        for env in (environment, other)
    )
    try:
        for process in (left, stranger):
            assert process.stdout is not None and process.stdout.readline()
        assert kill_leftovers(tmp_path / "train-1") == 1
        assert left.wait(60) == -signal.SIGKILL
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        for process in (left, stranger):
            assert process.stdout is not None
            process.stdout.close()
