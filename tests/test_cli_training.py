"""`march train` and `march demo` pass on what they are given, and say in one line why a run stopped."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestration.cli import main


def march(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_train_and_demo_pass_on_what_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def run_training(recipe: str, **options: Any) -> int:
        calls.append((recipe, options))
        return 0

    def run_demo(**options: Any) -> int:
        calls.append(("demo", options))
        return 3

    monkeypatch.setattr("pipeline.train.train", run_training)
    monkeypatch.setitem(sys.modules, "pipeline.demo.run", SimpleNamespace(run_demo=run_demo))
    assert (
        march("train", "tiny", "--run-dir", "r", "--set", "seed=1", "--set", "ppo.epochs=2", "--dry-run") == 0
    )
    assert march("demo", "--seed", 2, "--steps", 7, "--set", "audit.voters=5") == 3
    assert calls == [
        ("tiny", {"run_dir": Path("r"), "overrides": ["seed=1", "ppo.epochs=2"], "dry_run": True}),
        (
            "demo",
            {
                "run_dir": Path("runs/demo"),
                "seed": 2,
                "steps": 7,
                "recipe": "tiny",
                "overrides": ["audit.voters=5"],
                "num_rows": 400,
            },
        ),
    ]


@pytest.mark.parametrize("code", [1, 3, 4])
def test_a_training_that_stopped_says_why_in_one_line(
    code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.record.run import TrainingFailedError

    def stops(*_: object, **__: object) -> int:
        raise TrainingFailedError("the worker ended with code 1", exit_code=code)

    monkeypatch.setattr("pipeline.train.train", stops)
    assert march("train", "tiny") == code
    assert capsys.readouterr().err == "march: the worker ended with code 1\n"


def test_an_interrupted_training_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.train.train", interrupted)
    assert march("train", "tiny") == 130
    assert "the same command goes on from the last checkpoint" in capsys.readouterr().err
