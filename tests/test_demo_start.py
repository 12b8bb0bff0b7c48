"""A demo on a real model: what is made before the training, what a user is told, the measuring process."""

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline.demo import measure, start
from pipeline.demo.evaluate import rows_of, setup_for
from pipeline.demo.evaluation import EvaluationSetup
from pipeline.demo.run import run_demo
from pipeline.models.cache import Origin, now, origin_file
from pipeline.settings.recipe import load_recipe


def origin(folder: Path, source: str) -> None:
    folder.mkdir(parents=True)
    written = Origin.model_validate(
        {
            "name": "m", "source": source, "location": "x", "version": "", "sha256": "", "conversion": "",
            "licence": "", "end_token": "</s>", "num_parameters": 1, "dtype": "F32", "fetched": now(),
            "versions": {}, "files": {},
        }
    )  # fmt: skip
    origin_file(folder).write_text(written.model_dump_json())


def test_a_model_is_warmed_up_first_unless_a_warm_up_made_it(tmp_path: Path) -> None:
    assert not start.is_warmed_up_first(load_recipe("tiny"))
    for source, expected in (("wheel", True), ("warmup", False)):
        origin(tmp_path / source, source)
        recipe = load_recipe("smollm2", [f"model={tmp_path / source}"])
        assert start.is_warmed_up_first(recipe) is expected
    (tmp_path / "own").mkdir()
    assert start.is_warmed_up_first(load_recipe("smollm2", [f"model={tmp_path / 'own'}"]))


def test_a_warm_up_that_is_there_is_asked_whether_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def warmup(name: str, *, run_dir: Path, overrides: list[str]) -> int:
        calls.append({"name": name, "overrides": overrides})
        (run_dir / "model").mkdir(parents=True, exist_ok=True)
        (run_dir / "model" / "config.json").write_text("{}")
        return 0

    monkeypatch.setattr(start, "warmup", warmup)
    recipe = load_recipe("smollm2", [f"model={tmp_path}"])
    for _ in range(2):
        made = start.make_start(Console(), "smollm2", recipe, tmp_path / "run", ["seed=3"])
    assert made == tmp_path / "run" / "warmup" / "model"
    assert calls == [{"name": "smollm2", "overrides": ["seed=3"]}] * 2, "it returns at once, or refuses"


def test_a_recipe_without_known_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.source: prepared rows have no known answers"):
        run_demo(run_dir=tmp_path, recipe="smollm2", overrides=["data={source: prepared, path: rows}"])


def test_more_rows_than_there_are_held_out_are_refused() -> None:
    setup = setup_for(load_recipe("smollm2"), "model", num_rows=100_000)
    with pytest.raises(ValueError, match=r"num_rows: 100000, but wiki has \d+ held-out rows; use fewer"):
        rows_of(setup)


def test_held_out_rows_are_those_of_the_recipes_kinds() -> None:
    setup = setup_for(load_recipe("smollm2"), "model", num_rows=50)
    assert isinstance(setup, EvaluationSetup) and setup.num_votes == 1
    rows = rows_of(setup)
    assert {one.kind for row in rows for one in row.asked} <= {"number", "date"}
    assert all(row.query.id.startswith("wiki-held_out-") for row in rows)


def test_what_the_measuring_process_says_is_its_progress_and_the_rest_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "import sys; print('judged 50'); print('hello'); print('oh', file=sys.stderr); sys.exit(3)"
    log = tmp_path / "evaluate.log"
    code = measure._run(Console(), [sys.executable, "-c", script], log, "measuring it", 100)
    assert code == 3
    assert sorted(log.read_text().split()) == ["hello", "oh"]
    assert "measuring it: 50/100" in capsys.readouterr().out
