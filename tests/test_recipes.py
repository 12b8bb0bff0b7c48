"""Recipes load, and what OpenRLHF would break in silence is refused with the field's name."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config import RECIPES, Recipe, load_recipe
from pipeline.openrlhf_args import num_steps, openrlhf_arguments

ALL_RECIPES = sorted(path.stem for path in RECIPES.glob("*.yaml"))


class ParsedError(Exception):
    """Carries OpenRLHF's parsed arguments out of its module before it trains."""


def parse_with_openrlhf(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
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


def arguments_of(recipe: Recipe, num_rows: int = 100_000, cuda: bool = False) -> list[str]:
    return openrlhf_arguments(
        recipe, rows=Path("rows.jsonl"), num_rows=num_rows, checkpoints=Path("c"), output=Path("m"), cuda=cuda
    )


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_shipped_recipes_parse_with_openrlhfs_own_parser(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(name)
    parsed = parse_with_openrlhf(arguments_of(recipe), monkeypatch)
    assert parsed.rollout.batch_size == recipe.rollout.batch_size
    assert parsed.train.batch_size == 2 * recipe.rollout.batch_size * recipe.rollout.samples_per_query
    assert parsed.algo.kl.init_coef == recipe.ppo.kl_coef
    assert parsed.train.dynamic_batch_enable is False  # it would never train injected rows
    assert parsed.vllm.sync_backend == "gloo"


@pytest.mark.parametrize("warmup", [0, 1, 5, 7])
@pytest.mark.parametrize("steps", [40, 49, 1000])
def test_warm_up_takes_exactly_its_steps(warmup: int, steps: int) -> None:
    import math

    recipe = load_recipe("tiny", [f"data.max_steps={steps}", f"ppo.actor.warmup_steps={warmup}"])
    arguments = arguments_of(recipe)
    ratio = float(arguments[arguments.index("--actor.lr_warmup_ratio") + 1])
    assert math.ceil(steps * ratio) == warmup


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("ppo.learning_rate=1", "ppo.learning_rate: unknown key"),
        ("audit.voters=4", "voters: 4 is even"),
        ("audit.checker.temperature=0.3", "audit.checker"),
        ("rollout.micro_batch_size=48", "rollout.micro_batch_size: 48 does not divide"),
        ("ppo.micro_batch_size=3", "ppo.micro_batch_size: 3 does not divide"),
        ("train_roles=[proposer]", "train_roles"),
        ("checkpoint.keep=1", "checkpoint.keep"),
        ("audit.reward_no_claims=0.5", "reward_no_claims"),
        ("data={source: prepared}", "path: missing"),
        ("model.x=1", "'model' is a value"),
        ("seed=[1", "--set 'seed=[1': not YAML"),
        ("nonsense", "write it as dotted.key=value"),
    ],
)
def test_a_bad_setting_is_one_clear_line(override: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_recipe("tiny", [override])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_recipe_names_those_that_exist() -> None:
    with pytest.raises(FileNotFoundError, match="tiny"):
        load_recipe("no-such-recipe")


def test_too_few_rows_are_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="fewer than the 40 steps"):
        num_steps(load_recipe("tiny"), num_rows=64 * 39)
