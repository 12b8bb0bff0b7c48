"""The stack under `kill -9`: each service in turn, at each stage of a retraining, which ends as undisturbed.

A killed service is started again a second later, as its restart policy does. One real training pays for all
rounds: its run and its answers are laid where the stages look, so that these do all but train and generate.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from orchestration.registry.chain import Action, Chain
from orchestration.registry.store import Registry
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Ending
from orchestration.retrain.records import Retraining as Record
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_damage
from pipeline.record.tracking import read_steps
from tests.march_training import assert_asked_in_order
from tests.retrain_process import BATCH, SAMPLES, copy_tree, outputs_of, write_small_job
from tests.schedule_jobs import wait_until
from tests.stack_process import Stack, make_stack

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600), pytest.mark.training]

NAME = "small"  # of the job, whatever its file
STAGES = ("train", "evaluate", "publish", "register", "promote")
ROUNDS = [(service, stage) for service in ("postgres", "s3", "mlflow") for stage in STAGES]
RESTART_S = 1.0
COSTLY = ("train-*/run", "evaluate-*/evaluation")


@dataclass(frozen=True)
class Place:
    """A stack that has seen one retraining which nobody disturbed."""

    stack: Stack
    jobs: Path
    kept: Path  # what was costly of it
    outputs: dict[str, str]  # digests of what its stages made, by name

    @property
    def registry(self) -> str:
        return self.stack.url("mlflow", 5000)

    @property
    def work(self) -> Path:
        """Where the job works, in the schedule's volume."""
        return Path(self.stack.machine.local("schedule", "/var/lib/march")) / "runs" / "retrain" / NAME

    def store(self, model: str) -> ArtifactStore:
        """The part of the bucket that a round has for itself."""
        endpoint = self.stack.url("s3", 8333)
        return open_store(StoreSettings(location=f"s3://march-artifacts/{model}", endpoint=endpoint))

    def write_job(self, model: str, **changes: object) -> str:
        """A job that differs from others only in where it keeps what it makes; its path in a container."""
        write_small_job(
            self.jobs,
            model=model,
            smoke=False,
            registry={"model": model, "policy": "policy.yaml"},
            store={"location": f"s3://march-artifacts/{model}"},
            work="runs/retrain",
            retries={"first_wait_s": 2.0, "attempts": 6},
            **changes,
        )
        return f"/etc/march/jobs/{model}.yaml"

    def restore(self) -> None:
        """The work folder as it was, less what costs nothing."""
        copy_tree(self.kept, self.work)

    def record(self, model: str) -> Record:
        return next(one for one in Ledger(self.registry).retrainings(NAME) if one.model == model)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kills")
    (folder / "jobs").mkdir()
    variables = {"JOBS": str(folder / "jobs"), "JOB": "scheduled", "EVERY": "1"}
    with make_stack(variables) as stack, pytest.MonkeyPatch.context() as patch:
        stack.up("mlflow", "prometheus", "reward")
        for name, value in stack.env("schedule").items():
            if name.startswith(("AWS_", "MLFLOW_", "MARCH_")):
                patch.setenv(name, value)
        place = Place(stack, folder / "jobs", folder / "kept", {})
        assert "undisturbed version 1 is the champion" in retrain(place, "undisturbed").end()
        for pattern in COSTLY:
            for found in place.work.glob(pattern):
                copy_tree(found, place.kept / found.relative_to(place.work))
        yield replace(place, outputs=outputs_of(place.store("undisturbed"), place.record("undisturbed")))


class Running:
    """One `docker compose run schedule retrain JOB`."""

    def __init__(self, place: Place, job: str, log: Path) -> None:
        program = place.stack.machine.program("schedule", ["retrain", job])
        self._place, self._log = place, log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                program.command, env=program.env, cwd=program.folder, stdout=out, stderr=out
            )

    def wait_for_stage(self, stage: str) -> None:
        """Until a stage's process is asked for."""
        wait_until(
            lambda: list(self._place.work.glob(f"{stage}-*/request.json")) or self.process.poll() is not None,
            f"{stage} does not begin",
            900,
        )

    def end(self) -> str:
        assert self.process.wait(1500) == 0, self._log.read_text()[-3000:]
        return self._log.read_text()


def retrain(place: Place, model: str) -> Running:
    return Running(place, place.write_job(model), place.jobs / f"{model}.log")


def kill_and_restart(stack: Stack, *names: str) -> None:
    for name in names:
        stack.kill(name)
        time.sleep(RESTART_S)
        stack.start(name)
        stack.wait(name)


def assert_as_if_undisturbed(place: Place, model: str) -> None:
    """The same hashes, and decided once."""
    assert outputs_of(place.store(model), place.record(model)) == place.outputs
    assert_decided_once(place, model)


def assert_decided_once(place: Place, model: str) -> None:
    """One registered version, one decision, and a store without damage."""
    registry, record, store = Registry(place.registry), place.record(model), place.store(model)
    assert [one.version for one in registry.versions(model)] == ["1"]
    assert registry.aliases(model) == {"champion": "1"} and record.outcome is Ending.PROMOTED
    history = Chain(store, model).history()
    made = [one for one in history if one.decision.action is Action.PROMOTE]
    assert len(made) == 1
    assert not list(find_damage(store, store.manifests(), read=True))


@pytest.mark.parametrize(("service", "stage"), ROUNDS)
def test_a_service_is_killed_at_a_stage(place: Place, service: str, stage: str) -> None:
    model = f"{service}-{stage}"
    place.restore()
    running = retrain(place, model)
    running.wait_for_stage(stage)
    kill_and_restart(place.stack, service)
    assert f"{model} version 1 is the champion" in running.end()
    assert_as_if_undisturbed(place, model)


def test_the_schedule_is_killed_with_its_retraining(place: Place) -> None:
    """Its container takes the retraining with it; the next one finds that, and goes on at once."""
    place.restore()
    place.write_job("scheduled", triggers={"data": {"paths": ["worlds.json"]}})
    place.stack.up("schedule")
    wait_until(lambda: list(place.work.glob("evaluate-*/request.json")), "no evaluation", 300)
    kill_and_restart(place.stack, "schedule")
    wait_until(lambda: place.record("scheduled").is_closed, "it never ends", 300)
    assert_as_if_undisturbed(place, "scheduled")
    place.stack.kill("schedule")  # which else looks every minute whether the job of the next test is due


def test_what_a_retraining_does_not_need_is_killed(place: Place) -> None:
    place.restore()
    running = retrain(place, "beside")
    running.wait_for_stage("train")
    kill_and_restart(place.stack, "vllm", "reward", "prometheus")
    running.end()
    assert_as_if_undisturbed(place, "beside")
    url = f"{place.stack.url('prometheus', 9090)}/api/v1/query"
    wait_until(lambda: all(up(url).values()), "a service is not scraped", 60)


def up(url: str) -> dict[str, bool]:
    found = httpx.get(url, params={"query": 'up{job!="schedule"}'}, trust_env=False).json()["data"]["result"]
    return {one["metric"]["job"]: one["value"][1] == "1" for one in found}


def test_every_service_is_killed_in_turn_during_a_real_training(place: Place) -> None:
    shutil.rmtree(place.work)
    running = retrain(place, "real")
    running.wait_for_stage("train")
    for seen in ("train.log", "rollouts/*.parquet"):  # while it starts, and while it logs and stores
        wait_until(lambda: list(place.work.glob(f"train-*/run/{seen}")), f"no {seen}", 900)  # noqa: B023
        kill_and_restart(place.stack, "postgres", "s3", "mlflow", "reward", "prometheus")
    assert "real version 1 is the champion" in running.end()
    # Weights and times of two trainings differ (docs/decisions.md); the queries and their order do not.
    assert_decided_once(place, "real")
    assert outputs_of(place.store("real"), place.record("real"))["rows"] == place.outputs["rows"]
    (run,), (rows,) = place.work.glob("train-*/run"), place.work.glob("rows-*")
    (run / "data").symlink_to(rows)
    assert [row["step"] for row in read_steps(run)] == [1]
    assert_asked_in_order(run, steps=1, batch=BATCH, samples=SAMPLES)
