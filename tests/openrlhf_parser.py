"""OpenRLHF's own argument parser, stopped before it trains."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.launch.openrlhf_args import openrlhf_arguments
from pipeline.settings.recipe import Recipe


class ParsedError(Exception):
    """Carries OpenRLHF's parsed arguments out of its module before it trains."""


def parse_with_openrlhf(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What OpenRLHF's parser makes of the arguments, its own checks not yet applied."""
    from pipeline import cpu

    cpu.install()
    import openrlhf.utils.config as config

    def stop(parsed: Any) -> None:
        raise ParsedError(parsed)

    hierarchize = config.hierarchize
    monkeypatch.setattr(config, "hierarchize", stop)
    monkeypatch.setattr(sys, "argv", ["train_ppo_ray", *arguments])
    with pytest.raises(ParsedError) as caught:
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
    return hierarchize(caught.value.args[0])


def checked_by_openrlhf(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What `train(args)` would get: parsed, and checked and changed by OpenRLHF's own rules."""
    from pipeline import cpu

    cpu.install()
    import openrlhf.utils

    def stop(parsed: Any) -> None:
        raise ParsedError(parsed)

    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr(openrlhf.utils, "get_strategy", stop)  # the first call of train(args)
    monkeypatch.setattr(sys, "argv", ["train_ppo_ray", *arguments])
    with pytest.raises(ParsedError) as caught:
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
    parsed: SimpleNamespace = caught.value.args[0]
    return parsed


def arguments_of(recipe: Recipe, num_rows: int = 100_000, cuda: bool = False) -> list[str]:
    """A recipe's arguments, with paths that nobody reads."""
    return openrlhf_arguments(recipe, Path("run"), rows=Path("rows.jsonl"), num_rows=num_rows, cuda=cuda)
