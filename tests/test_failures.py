"""What is said of what ended a worker, and whether another worker may come through."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.launch.failures import Failure, failure_of, read_failure, write_failure
from pipeline.record.run import TrainingFailedError

# As Ray 2.55 writes it, but for the ids.
OUT_OF_MEMORY = (
    "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 127.0.0.1, "
    "ID: 5f0c) was 22.41GB / 23.52GB (0.952806), which exceeds the memory usage threshold of 0.950000; "
    "Object store memory usage: [(global lru) capacity: 536870912]; Ray killed 1 worker(s) based on the "
    "killing policy: [the newest]; To see more information about memory usage on this node, use `ray logs "
    "raylet.out -ip 127.0.0.1`; Top 10 memory users: PID\tMEM(GB)\tCOMMAND\n"
    "410\t8.10\tray::MarchPolicyActor.fit\n411\t6.02\t/usr/bin/python -m vllm\n412\t1.50\tray::MarchTrainer\n"
    "413\t0.90\tbash " + "x" * 1500
)
DEAD = (
    "The actor died unexpectedly before finishing this task.\n\tclass_name: MarchRolloutActor\n"
    "\tactor_id: 0c\n\tpid: 812\nThe actor is dead because its worker process has died."
)


class RemoteError(Exception):
    """As Ray's, which carries the error of the remote call."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("a traceback")
        self.cause = cause


class ActorDiedError(Exception):
    """As Ray's."""


def test_ray_out_of_memory_is_its_figures_and_what_helps() -> None:
    failure = failure_of(RemoteError(ActorDiedError(OUT_OF_MEMORY)))
    assert failure.message == (
        "ActorDiedError: 1 worker(s) were killed due to the node running low on memory. Memory on the node "
        "(IP: 127.0.0.1, ID: 5f0c) was 22.41GB / 23.52GB (0.952806), which exceeds the memory usage "
        "threshold of 0.950000; lower ppo.micro_batch_size, or end what else runs, and resume; or start a "
        "new run with a lower rollout.max_prompt_tokens"
    )
    assert failure.may_pass


def test_a_dead_actor_is_named(tmp_path: Path) -> None:
    write_failure(tmp_path, RemoteError(RemoteError(ActorDiedError(DEAD))))
    failure = read_failure(tmp_path, 1)
    said = "ActorDiedError (MarchRolloutActor): The actor died unexpectedly before finishing this task."
    assert (failure.message, failure.may_pass) == (said, True)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a setting"),
        FileNotFoundError("x"),
        KeyError("a bug"),
        TrainingFailedError("a guard", exit_code=3),
    ],
    ids=repr,
)
def test_what_another_worker_would_meet_again_does_not_pass(error: Exception) -> None:
    assert not failure_of(RemoteError(error)).may_pass


def test_a_long_or_empty_message_is_a_bounded_line() -> None:
    assert failure_of(RuntimeError("")).message == "RuntimeError: "
    assert len(failure_of(RuntimeError("x" * 5000)).message) < 400


def test_a_worker_that_said_nothing_was_killed(tmp_path: Path) -> None:
    assert read_failure(tmp_path, -9) == Failure(message="the worker ended with code -9")


def test_a_worker_on_a_full_disk_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    failure = read_failure(tmp_path, 1)
    assert "No space left on the disk" in failure.message and not failure.may_pass
