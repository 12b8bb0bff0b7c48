"""A training on CPU that is killed, all its processes at once, in every phase of a step where work could be
lost or done twice (`tests.held_phases`): the long form. The short one is `survivor` in test_training.py, and
the asynchronous run in test_training_ranks.py. And one whose engine alone dies, which goes on by itself, and
one that outlives MLflow and an upgrade of this package.
"""

import json
import os
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.record.run import RunState
from pipeline.record.run_status import RESTARTS_TAG
from pipeline.record.tracking import read_steps
from tests.march_cli import march
from tests.march_training import Run, assert_nothing_lost_or_repeated
from tests.mlflow_process import mlflow_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400), pytest.mark.training]

STEPS, BATCH = 8, 8
SMALL = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 4,
    "ppo.micro_batch_size": 4,
    "ppo.kl_coef": 0,  # no reference to start in each life
    "checkpoint.every": 2,  # so that some kills cost a finished step
}
KILLS = {"rollout": 1, "audit": 2, "update": 3, "sync": 4, "half_saved": 5, "saved": 5}


def test_a_run_killed_in_every_phase_trains_each_query_once(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    for phase, steps in KILLS.items():
        assert Run(folder, SMALL, hold=(phase, steps)).kill_when_held() >= steps
    last = Run(folder, SMALL)
    error = last.end()
    assert last.process.returncode == 0, error
    assert_nothing_lost_or_repeated(folder, steps=STEPS, batch=BATCH)
    assert all(row["sync/logprob_gap"] < 1e-4 for row in read_steps(folder))


def test_a_run_whose_engine_dies_inside_a_step_goes_on_by_itself(tmp_path: Path) -> None:
    folder, steps = tmp_path / "run", 4
    run = Run(folder, SMALL | {"data.max_steps": steps})
    run.wait_for_step(3)  # one more than the last checkpoint
    run.wait_for_audit(0)
    # Ray names an actor's process after its class, and while a method runs after the method's.
    names = ("ray::MarchRolloutActor", "ray::RolloutRayActor")
    run.child(lambda line: " ".join(line).startswith(names)).kill()
    said = run.end()
    assert run.process.returncode == 0, said
    assert "ActorDiedError (RolloutRayActor)" in said and said.count("; restart 1 of 3\n") == 1
    assert_nothing_lost_or_repeated(folder, steps=steps, batch=BATCH)
    state = RunState.model_validate_json((folder / "run.json").read_text())
    run_of_mlflow = MlflowClient(state.tracking_uri).get_run(state.mlflow_run_id)
    assert run_of_mlflow.info.status == "FINISHED"
    assert run_of_mlflow.data.tags[RESTARTS_TAG].startswith("1, after ")


def test_a_run_outlives_mlflow_and_an_upgrade_between_kill_and_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MLflow is away for as long as `MLFLOW_AWAY_S` says, and at least until the training has ended."""
    folder, store, steps = tmp_path / "run", tmp_path / "mlflow", 4
    store.mkdir()
    with mlflow_server(store) as uri:
        settings = SMALL | {"data.max_steps": steps, "tracking.uri": uri}
        first = Run(folder, settings, hold=("update", 2))
        first.wait_for_step(1)
    left = time.monotonic()
    assert first.kill_when_held() == 2
    _as_of_another_version(folder / "run.json")

    last = Run(folder, settings)
    said = last.end()
    assert last.process.returncode == 0, said
    assert "MLflow lacks" in said and f"march record {folder}" in said
    assert_nothing_lost_or_repeated(folder, steps=steps, batch=BATCH)
    recipe = json.loads((folder / "run.json").read_text())["recipe"]
    assert recipe["ppo"]["gamma"] == 0.9 and "gone" not in recipe["ppo"] and "held_out" in recipe

    time.sleep(max(0.0, left + float(os.environ.get("MLFLOW_AWAY_S", "0")) - time.monotonic()))
    with mlflow_server(store, port=int(uri.rpartition(":")[2])):
        assert march("record", folder) == 0
        assert "the status FINISHED" in capsys.readouterr().out
        run_id = json.loads((folder / "run.json").read_text())["mlflow_run_id"]
        points = MlflowClient(uri).get_metric_history(run_id, "audit/reward")
        assert sorted(point.step for point in points) == list(range(1, steps + 1))
        assert MlflowClient(uri).get_run(run_id).info.status == "FINISHED"


def _as_of_another_version(run_file: Path) -> None:
    """A run whose version had another default, a setting that is gone today, and lacked a new one."""
    state = json.loads(run_file.read_text())
    state["recipe"]["ppo"] |= {"gamma": 0.9, "gone": 1}
    del state["recipe"]["held_out"]
    run_file.write_text(json.dumps(state))
