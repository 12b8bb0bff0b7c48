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
        ("train_roles=[solver, solver]", "train_roles"),
        ("audit.structured=all", "audit.structured: all constrains the checker"),
        ("ppo.estimator=rloo", "rollout.samples_per_query: 1"),
        ("ppo.reward_scalars=1/0", "ppo.reward_scalars"),
        ("audit.reward_supported=1", "audit.reward_supported"),
        ("ppo.truncated_reward=0", "ppo.truncated_reward"),
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


@pytest.mark.parametrize(
    ("overrides", "rows", "divisor"),
    [
        ([], {"solver": 1, "checker": 1}, None),
        (["train_roles=[solver]"], {"solver": 1}, None),
        (["checker_turns=all"], {"solver": 1, "checker": 3}, None),
        (["train_roles=[solver, checker, proposer]"], {"solver": 1, "checker": 1, "proposer": 1}, None),
        (["ppo.loss_scale=paper"], {"solver": 1, "checker": 1}, 128),
        (["ppo.loss_scale=paper", "checker_turns=all"], {"solver": 1, "checker": 3}, 128),
        (["ppo.loss_scale=paper", "train_roles=[solver]"], {"solver": 1}, 64),
    ],
)
def test_the_methods_switches_decide_the_rows_and_the_divisor(
    overrides: list[str], rows: dict[str, int], divisor: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.trainer import optimizer_steps

    recipe = load_recipe("tiny", overrides)
    assert (recipe.rows_by_role, recipe.loss_divisor) == (rows, divisor)
    parsed = parse_with_openrlhf(arguments_of(recipe), monkeypatch)
    assert parsed.train.batch_size == recipe.rows_per_step == 64 * sum(rows.values())
    num_rows = 40 * 64 * sum(rows.values())
    assert optimizer_steps(num_rows=num_rows, batch_size=parsed.train.batch_size, passes=1) == 40


@pytest.mark.parametrize("estimator", ["rloo", "reinforce_baseline", "group_norm", "dr_grpo"])
def test_group_estimators_are_passed_on_by_openrlhfs_names(
    estimator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped = [f"ppo.estimator={estimator}", "rollout.samples_per_query=4"]
    parsed = parse_with_openrlhf(arguments_of(load_recipe("tiny", grouped)), monkeypatch)
    assert (parsed.algo.advantage.estimator, parsed.rollout.n_samples_per_prompt) == (estimator, 4)
    assert parsed.train.batch_size == 64 * 4 * 2
    with pytest.raises(ValueError, match=r"ppo: gamma: 0.9 with estimator"):
        load_recipe("tiny", [*grouped, "ppo.gamma=0.9"])


def test_a_trained_proposer_is_sampled_as_the_actor_scores_it() -> None:
    three = "train_roles=[solver, checker, proposer]"
    with pytest.raises(ValueError, match=r"audit.proposer: temperature and top_p must equal"):
        load_recipe("tiny", [three, "audit.proposer.temperature=0.5"])
    with pytest.raises(ValueError, match=r"audit.structured: proposer constrains the proposer"):
        load_recipe("tiny", [three, "audit.structured=proposer"])
    assert load_recipe("tiny", ["audit.structured=proposer"]).audit.structured == "proposer"
