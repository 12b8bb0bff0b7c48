"""Where a run is recorded, and what its end says."""

import json
from pathlib import Path

import pytest

from pipeline.record.run import RESULT_FILE, RunState
from pipeline.record.tracking import tracking_address
from pipeline.settings.recipe import load_recipe
from pipeline.train import _end

VARIABLE = "MLFLOW_TRACKING_URI"


def test_a_recipe_comes_before_the_variable_and_that_before_a_file_beside_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = tmp_path / "runs" / "mine"
    assert tracking_address(None, folder) == f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}"
    monkeypatch.setenv(VARIABLE, "http://mlflow:5000")
    assert tracking_address(None, folder) == "http://mlflow:5000"
    assert tracking_address("http://other:5000", folder) == "http://other:5000"


def test_a_password_in_the_variable_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "http://me:swordfish@mlflow:5000")
    with pytest.raises(ValueError, match=VARIABLE) as refused:
        tracking_address(None, tmp_path)
    assert "swordfish" not in str(refused.value)


def test_the_end_names_the_model_its_step_the_record_and_the_next_command(tmp_path: Path) -> None:
    recipe = load_recipe("tiny")
    state = RunState(
        recipe=recipe,
        recipe_digest=recipe.digest,
        asked=(),
        rows=tmp_path / "rows.jsonl",
        num_rows=8,
        tracking_uri="http://mlflow:5000",
        mlflow_run_id="abc",
    )
    result = {"steps": 3, "model": "model", "best": {"step": 2, "score": 0.7512}}
    (tmp_path / RESULT_FILE).write_text(json.dumps(result))
    said = _end(state, tmp_path)
    assert f"model: {tmp_path}/model, of step 2: the best on held-out rows, 0.751" in said
    assert "record: run abc of http://mlflow:5000" in said
    assert said.endswith(f"next: march inspect {tmp_path}")
    (tmp_path / RESULT_FILE).write_text(json.dumps({"steps": 3, "model": "model"}))
    assert f"model: {tmp_path}/model\n" in _end(state, tmp_path)
