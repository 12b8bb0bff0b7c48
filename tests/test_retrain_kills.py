"""A retraining killed with SIGKILL at every point, and in a real training; and harm on the wire (long)."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.registry.store import Registry
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Stage
from pipeline.artifacts.upkeep import find_damage
from tests.fault_proxy import Fault, Harm
from tests.march_training import assert_nothing_lost_or_repeated
from tests.retrain_kills import COMPLETE, MANIFEST, OBJECT, POINTS, RANGE, kill_and_go_on, stages_killed
from tests.retrain_process import (
    BATCH,
    SAMPLES,
    Kept,
    Retraining,
    Servers,
    keep,
    outputs_of,
    servers,
    write_small_job,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200), pytest.mark.training]
ALWAYS = 10**6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("kills")) as made:
        yield made


@pytest.fixture(scope="module")
def kept(place: Servers) -> Kept:
    """A real retraining that nobody kills."""
    store, folder = place.store("base", make=True), place.folder
    job = write_small_job(folder, model="base", smoke=False)
    assert "version 1 is the champion" in Retraining(job, place.env("base")).end()
    return keep(place, folder, store)


def test_there_are_enough_points_and_they_lie_in_every_stage() -> None:
    assert len(POINTS) >= 20
    needed = {str(stage) for stage in Stage} - {str(Stage.EVALUATE_CHAMPION)}
    assert stages_killed(list(POINTS)) == needed


@pytest.mark.parametrize("name", POINTS)
def test_a_retraining_killed_anywhere_ends_the_same(place: Servers, kept: Kept, name: str) -> None:
    kill_and_go_on(place, kept, name)


KILLS = {"rollout": 1, "update": 2, "saved": 2}
STEPS = 4


def test_a_training_killed_again_and_again_is_one_training(place: Servers) -> None:
    folder = place.folder / "lives"
    place.store("lives", make=True)
    longer = [f"data.max_steps={STEPS}"]
    job = write_small_job(folder, model="lives", overrides=longer, smoke=False, name="lives")
    for phase, steps in KILLS.items():
        hold = folder / "hold"
        shutil.rmtree(hold, ignore_errors=True)
        hold.mkdir()
        shutil.copy(Path(__file__).with_name("held_phases.py"), hold / "sitecustomize.py")
        wanted = f"{phase} {steps} {hold}"
        held = Retraining(job, place.env("lives", MARCH_TEST_HOLD=wanted, path=str(hold)))
        held.wait_for(hold / "held")
        held.kill()
    said = Retraining(job, place.env("lives")).end()
    assert "lives version 1 is the champion" in said
    (run,) = (folder / "work" / "lives").glob("train-*/run")
    (rows,) = (folder / "work" / "lives").glob("rows-*")
    (run / "data").symlink_to(rows)
    assert_nothing_lost_or_repeated(run, steps=STEPS, batch=BATCH, samples=SAMPLES)
    (found,) = Ledger(place.registry).retrainings("lives")
    status = next(one for one in found.stages if one.stage is Stage.TRAIN)
    assert status.attempts == len(KILLS) + 1
    assert len(Registry(place.registry).versions("lives")) == 1
    mark = f"MARCH_RETRAIN_STAGE={run.parent}"
    assert not [one for one in Path("/proc").glob("[0-9]*/environ") if mark in _environment(one)]


def _environment(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


HARM = [
    Fault(OBJECT, Harm.INTERNAL_ERROR, times=3),
    Fault(OBJECT, Harm.SLOW_DOWN, times=3, after=4),
    Fault(OBJECT, Harm.DAMAGE_REQUEST, times=2, after=2),
    Fault(RANGE, Harm.DAMAGE_ANSWER, times=2),
    Fault(RANGE, Harm.CUT_ANSWER, times=2, after=3),
    Fault(MANIFEST, Harm.LOSE_ANSWER, times=2),
    Fault("PUT .*/pointers/", Harm.LOSE_ANSWER, times=3),
    Fault("HEAD ", Harm.RESET, times=5),
    Fault(COMPLETE, Harm.INTERNAL_ERROR),
]
MLFLOW_HARM = [
    Fault("log-batch", Harm.SLOW_DOWN, times=3),
    Fault("log-batch", Harm.RESET, times=2, after=2),
    Fault("model-versions/create", Harm.LOSE_ANSWER, times=2),
    Fault("alias", Harm.INTERNAL_ERROR, times=2),
]


def test_a_bad_line_changes_nothing_but_the_time(place: Servers, kept: Kept) -> None:
    store = place.store("harm", make=True)
    kept.restore()
    job = kept.job("harm", retries={"first_wait_s": 0.5, "attempts": 6})
    place.s3.faults, place.mlflow.faults = list(HARM), list(MLFLOW_HARM)
    try:
        said = Retraining(job, place.env("harm")).end()
    finally:
        place.calm()
    assert "harm version 1 is the champion" in said
    found = next(one for one in Ledger(place.registry).retrainings("small") if one.model == "harm")
    assert outputs_of(store, found) == kept.outputs
    assert [one.version for one in Registry(place.registry).versions("harm")] == ["1"]
    assert not list(find_damage(store, store.manifests(), read=True))


@pytest.mark.parametrize("which", ["s3", "mlflow"])
def test_a_server_that_goes_away_and_comes_back_is_waited_for(place: Servers, kept: Kept, which: str) -> None:
    place.store(f"away-{which}", make=True)
    kept.restore()
    retries = {"first_wait_s": 2.0, "attempts": 20}
    job = kept.job(f"away-{which}", retries=retries, lease_s=120.0)
    proxy = place.s3 if which == "s3" else place.mlflow
    running = Retraining(job, place.env(f"away-{which}"))
    until = time.monotonic() + 600
    while not list((kept.folder / "work" / "small").glob("prepare-*/rows/manifest.json")):
        assert running.process.poll() is None and time.monotonic() < until
        time.sleep(0.1)
    proxy.faults = [Fault("", Harm.RESET, times=ALWAYS)]
    threading.Timer(25.0, place.calm).start()
    assert f"away-{which} version 1 is the champion" in running.end()


def test_a_server_that_stays_away_is_one_line_and_the_command_goes_on_later(
    place: Servers, kept: Kept
) -> None:
    place.store("gone", make=True)
    kept.restore()
    job = kept.job("gone")
    place.s3.faults = [Fault(OBJECT, Harm.FULL, times=ALWAYS)]  # Swift's disks are full: not to be waited for
    try:
        stopped = Retraining(job, place.env("gone"))
        said = stopped.process.communicate(timeout=600)[0]
    finally:
        place.calm()
    assert stopped.process.returncode == 2
    assert "InsufficientStorage" in said and "Traceback" not in said
    assert "gone version 1 is the champion" in Retraining(job, place.env("gone")).end()


def test_a_full_disk_is_one_line_and_the_command_goes_on_when_there_is_room(
    place: Servers, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", full], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        place.store("full", make=True)
        job = write_small_job(tmp_path, model="full", smoke=False, work=str(full), name="full")
        stopped = Retraining(job, place.env("full"), "--set", "recipe.overrides=[data.max_steps=40]")
        said = stopped.process.communicate(timeout=600)[0]
        assert stopped.process.returncode == 2
        assert "No space left on device" in said and "Traceback" not in said
        assert os.listdir(full)
    finally:
        subprocess.run(["umount", "-l", full], check=True)
