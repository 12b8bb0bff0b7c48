"""The whole loop on real servers: two real trainings, one of them killed, gates, a promotion, the way back.

The servers are MLflow, Swift and vLLM. The first training is spoilt by its learning rate, so that the second
one is better beyond doubt. It destroys the policy in 32 bits; in bfloat16, which some processors choose, it
may do little.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from mlflow import MlflowClient

from orchestration.registry.chain import Action, Chain
from orchestration.registry.store import LINEAGE_TAG, REPORT_TAG, Registry
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Ending, RetrainingState, Stage, StageState
from pipeline.artifacts.upkeep import find_damage
from pipeline.lineage.publish import read_lineage
from tests.retrain_kills import POINTS, assert_gc_finds_the_rest, kill_at
from tests.retrain_process import MARCH, Retraining, servers, write_small_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000), pytest.mark.training]
MODEL = "small-solver"
SPOILT = [
    "ppo.actor.lr=0.003",
    "cluster.cpu_dtype=float32",
    # Two answers to each of 8 queries often differ nowhere in their reward, and then nothing is trained.
    "rollout.batch_size=16",
    "rollout.samples_per_query=8",
]
# The other points are in test_retrain_kills.py.
WEIGHTS_STORED = POINTS["train: between weights and their manifest"]
GATES = {
    "weights",
    "yardstick",
    "scored",
    "judge",
    "primary",
    "numbers",
    "uncovered",
    "no claims",
    "refusals",
}
GATES |= {"refusals", "length", "smoke"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    folder = tmp_path_factory.mktemp("whole")
    with servers(folder) as made:
        store = made.store("whole", make=True)
        yield SimpleNamespace(
            servers=made, folder=folder, registry=made.registry, store=store, env=made.env("whole")
        )


def test_retrain_twice_promote_and_roll_back(place: SimpleNamespace) -> None:
    first = write_small_job(place.folder / "first", model=MODEL, overrides=SPOILT, smoke=False)
    assert "version 1 is the champion" in Retraining(first, place.env).end()
    better = write_small_job(place.folder / "second", model=MODEL, overrides=["seed=1"], parent="recipe")
    kill_at(place.servers, WEIGHTS_STORED, better, place.env, on_s3=True)
    assert "version 2 is the champion" in Retraining(better, place.env).end()

    registry = Registry(place.registry)
    assert registry.aliases(MODEL) == {"champion": "2", "previous": "1"}
    versions = registry.versions(MODEL)
    report = json.loads(versions[1].tags[REPORT_TAG])
    found = {one["gate"]: one["state"] for one in report["gates"]}
    assert set(found) > GATES and set(found.values()) == {"passed"}
    assert {name for name in found if name.startswith("slice")} == {
        f"slice tiny/{number} asked" for number in (1, 2, 3)
    }

    again = Retraining(better, place.env).end()
    assert "version 2 is the champion" in again and "running" not in again
    subprocess.run([*MARCH, "model", "rollback", MODEL], env=place.env, check=True)
    assert registry.aliases(MODEL) == {"champion": "1", "previous": "2"}
    said = Retraining(better, place.env).end()  # a roll-back is a person's word: nothing promotes again
    assert "running" not in said and registry.aliases(MODEL)["champion"] == "1"
    actions = [one.decision.action for one in Chain(place.store, MODEL).history()]
    assert actions == [Action.ROLLBACK, Action.PROMOTE, Action.PROMOTE]


def test_mlflow_shows_every_stage_of_both(place: SimpleNamespace) -> None:
    second, first = Ledger(place.registry).retrainings("small")
    assert (first.state, first.outcome, first.version) == (RetrainingState.DONE, Ending.PROMOTED, "1")
    assert (second.state, second.outcome, second.version) == (RetrainingState.DONE, Ending.PROMOTED, "2")
    # What the second one paid since its last sign of life went with the kill.
    spent = {one.stage: one.spent for one in first.stages}
    assert spent[Stage.TRAIN].tokens > 0 and spent[Stage.EVALUATE].tokens > 0
    states = {one.stage: one for one in second.stages}
    assert {one.state for one in states.values()} == {StageState.DONE}
    assert states[Stage.EVALUATE_CHAMPION].reused, "the champion was evaluated as a candidate"
    assert states[Stage.EVALUATE].spent.tokens > 0
    attempts = {one.stage: one.attempts for one in states.values() if not one.reused}
    assert attempts.pop(Stage.TRAIN) == 2 and set(attempts.values()) == {1}


def test_the_trainings_runs_have_names_of_their_own(place: SimpleNamespace) -> None:
    client = MlflowClient(place.registry)
    sources = [client.get_run(one.run_id) for one in client.search_model_versions(f"name='{MODEL}'")]
    names = {run.info.run_name for run in sources}
    assert len(names) == 2 and all(name.startswith("small-train-") for name in names)


def test_the_store_is_whole_and_knows_where_the_weights_came_from(place: SimpleNamespace) -> None:
    assert not list(find_damage(place.store, place.store.manifests(), read=True))
    version = Registry(place.registry).versions(MODEL)[1]
    lineage = read_lineage(place.store, version.tags[LINEAGE_TAG])
    assert lineage.model is not None and lineage.model.weights_sha256 == version.sha256
    assert lineage.data is not None and lineage.data.artifact is not None
    assert lineage.evaluations[0].artifact is not None and lineage.seed == 1
    assert_gc_finds_the_rest(place.store, Registry(place.registry))
