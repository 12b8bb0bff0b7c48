"""What a retraining says and does after others have acted: a roll-back, a new number, a head started anew."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestration.registry.chain import Chosen, State
from orchestration.registry.decisions import Decisions, LostRaceError
from orchestration.retrain import ray_jobs
from orchestration.retrain.attempt import Attempt
from orchestration.retrain.decision import _demand_the_evaluated
from orchestration.retrain.inputs import files_of_job, make_plan, whole_recipe
from orchestration.retrain.job import load_job
from orchestration.retrain.loop import retrain
from orchestration.retrain.records import (
    KEY_DIGITS,
    ParentWeights,
    Stage,
    StageRequest,
    StageResult,
    stage_key,
)
from orchestration.retrain.stage import ChangedInputsError, demand_same_inputs
from orchestration.retrain.view import begin_line, outcome_line
from pipeline.settings.recipe import load_recipe
from tests.retrainings import rig
from tests.test_retrain_job import write_job
from tests.test_retrain_ray import request_of

LOST = "Request failed with status code 404: job march-x does not exist"


def chosen(version: str, sha256: str = "a" * 64) -> Chosen:
    return Chosen(version=version, sha256=sha256, uri="file:///weights")


def test_a_roll_back_since_is_said(tmp_path: Path) -> None:
    found = retrain(rig(tmp_path).place)
    assert outcome_line(found, None, State(champion=chosen("7"))).endswith("version 7 is the champion")
    line = outcome_line(found, None, State(champion=chosen("6")))
    assert line.endswith("version 7 was promoted; version 6 is the champion now")


def test_the_first_line_says_why_and_from_what(tmp_path: Path) -> None:
    found = retrain(rig(tmp_path).place, cause="new rows")
    assert begin_line(found) == f"{found.job}: new rows; starts from {found.parent.uri}"
    champion = found.parent.model_copy(update={"version": "3"})
    again = found.model_copy(update={"parent": champion, "cause": ""})
    assert begin_line(again) == f"{found.job}: by hand; starts from {found.model} version 3"


def test_a_champion_is_known_by_its_weights_and_not_by_its_number() -> None:
    evaluated = ParentWeights(sha256="a" * 64, uri="file:///weights", version="9")
    attempt = cast(Attempt, SimpleNamespace(request=SimpleNamespace(champion=evaluated)))
    decisions = cast(Decisions, SimpleNamespace(model="shop"))
    _demand_the_evaluated(attempt, decisions, State(champion=chosen("3")))
    for seen in (State(champion=chosen("9", "b" * 64)), State()):
        with pytest.raises(LostRaceError):
            _demand_the_evaluated(attempt, decisions, seen)


class Dashboard:
    """What Ray's client says of one job."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.error: Exception | None = None

    def list_jobs(self) -> list[Any]:
        return self.jobs

    def submit_job(self, *, submission_id: str, **_given: Any) -> str:
        return submission_id

    def get_job_status(self, _name: str) -> Any:
        if self.error is not None:
            raise self.error
        return SimpleNamespace(value="RUNNING")

    def get_job_logs(self, _name: str) -> str:
        return ""


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Dashboard:
    made = Dashboard()
    monkeypatch.setattr(ray_jobs, "open_client", lambda _address: made)
    monkeypatch.setattr(ray_jobs, "_LOOK_EVERY_S", 0.0)
    return made


def request_for(folder: Path) -> StageRequest:
    return request_of(folder, "http://127.0.0.1:1", "e" * 64, rows=False)


def test_a_job_that_the_cluster_has_lost_ends_at_once(tmp_path: Path, dashboard: Dashboard) -> None:
    stage = ray_jobs.RayStage(request_for(tmp_path))
    assert not stage.has_ended()
    dashboard.error = RuntimeError(LOST)
    assert stage.has_ended()
    problem = stage.problem()
    assert problem is not None and problem.transient and problem.line.endswith("the cluster has lost it")
    stage.stop()  # at once


def test_a_job_that_ran_while_nobody_followed_is_paid_for_once(tmp_path: Path, dashboard: Dashboard) -> None:
    request = request_for(tmp_path)
    name = f"march-{request.job.name}-prepare-{request.key[:KEY_DIGITS]}-1"
    began = (ray_jobs.time.time() - 3600) * 1000
    status = SimpleNamespace(value="RUNNING")
    dashboard.jobs = [SimpleNamespace(submission_id=name, status=status, start_time=began)]
    stage = ray_jobs.RayStage(request)
    assert stage.id == name and 3600 <= stage.seconds() < 3700
    dashboard.jobs = []
    assert ray_jobs.RayStage(request).seconds() < 100


def test_a_recipe_of_ones_own_comes_to_the_cluster_whole(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("extends: tiny\nseed: 4\n")
    (tmp_path / "recipe.yaml").write_text("extends: base.yaml\nname: shop\n")
    job = load_job(str(write_job(tmp_path, recipe={"name": "recipe.yaml"}, work=str(tmp_path / "work"))))
    whole = whole_recipe(Path(job.recipe.name), job)
    assert whole.parent == job.folder and "extends" not in whole.read_text()
    assert load_recipe(str(whole)) == load_recipe(job.recipe.name) == make_plan(job).recipe
    rows = load_recipe("tiny", [f"data={{source: prepared, path: {tmp_path}}}"])
    assert files_of_job(Stage.PREPARE, job, rows) == [tmp_path]


def test_a_file_that_changes_while_a_stage_works_spoils_no_key(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("extends: tiny\nname: shop\ndata: {max_steps: 2}\n")
    job = load_job(str(write_job(tmp_path, recipe={"name": "recipe.yaml"})))
    parent = ParentWeights(sha256="a" * 64, uri="file:///weights")
    plan = make_plan(job)
    rows = StageResult(stage="prepare", key="0" * 64, facts={"rows_sha256": "b" * 64})
    weights = StageResult(stage="train", key="0" * 64, facts={"weights_sha256": "c" * 64})
    done = {Stage.PREPARE: rows, Stage.TRAIN: weights}
    requests = []
    for stage in (Stage.TRAIN, Stage.EVALUATE):
        inputs = plan.inputs(stage, parent, done)
        given = {"job": job, "stage": stage, "key": stage_key(stage, inputs), "inputs": inputs, "done": done}
        requests.append(StageRequest(**given, attempt=1, command_attempt=1, parent=parent))
        demand_same_inputs(requests[-1])
    (tmp_path / "recipe.yaml").write_text("extends: tiny\nname: shop\ndata: {max_steps: 3}\n")
    with pytest.raises(ChangedInputsError, match="recipe: changed since the command began"):
        demand_same_inputs(requests[0])
    (tmp_path / "worlds.json").write_text('{"num_worlds": 9, "seed": 1}')
    with pytest.raises(ChangedInputsError, match="evaluation: changed"):
        demand_same_inputs(requests[1])
