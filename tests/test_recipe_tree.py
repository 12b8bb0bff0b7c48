"""A recipe that extends another: deep merge, and every wrong chain is one clear line."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.settings.recipe import load_recipe
from pipeline.settings.tree import RECIPES, merge, read_tree


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": {"d": 2}}}, {"a": {"c": {"e": 3}}}, {"a": {"b": 1, "c": {"d": 2, "e": 3}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_mappings_are_merged_and_all_else_replaces(
    base: dict[str, Any], over: dict[str, Any], merged: dict[str, Any]
) -> None:
    before = repr(base)
    assert merge(base, over) == merged
    assert repr(base) == before


def test_a_base_is_a_shipped_recipe_or_a_file_beside_and_chains_go_on(tmp_path: Path) -> None:
    write(tmp_path, middle="extends: tiny\nseed: 3\nppo: {kl_coef: 0.5}\n")
    write(tmp_path, leaf="extends: middle.yaml\nname: leaf\nppo: {actor: {lr: 1.0}}\n")
    recipe, tiny = load_recipe(str(tmp_path / "leaf.yaml")), load_recipe("tiny")
    assert (recipe.name, recipe.seed, recipe.ppo.kl_coef, recipe.ppo.actor.lr) == ("leaf", 3, 0.5, 1.0)
    assert recipe.audit == tiny.audit and recipe.ppo.critic == tiny.ppo.critic


def test_the_digest_is_of_the_merged_tree_and_of_nothing_that_only_estimates_read(tmp_path: Path) -> None:
    write(tmp_path, child="extends: tiny\nseed: 3\n")
    child = load_recipe(str(tmp_path / "child.yaml"))
    assert child.digest == load_recipe("tiny", ["seed=3"]).digest != load_recipe("tiny").digest
    assert load_recipe("tiny", ["estimate.mfu=0.1"]).digest == load_recipe("tiny").digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: a.yaml", "a.yaml -> b.yaml -> a.yaml"),
        ("extends: b.yaml", "b.yaml -> b.yaml"),
        ("extends: [tiny]", "b.yaml: extends: ['tiny'] is no name"),
        ("extends: no-such", "recipe 'no-such': no such file and no such recipe; there are: 2wiki"),
        ("extends: tiny\nppo: {learning_rate: 1}", "ppo.learning_rate: unknown key"),
        ("extends: tiny\nextend: tiny", "extend: unknown key"),
        ("- a\n- b", "b.yaml: holds no mapping of keys; see docs/recipes.md"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_chain_is_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    write(tmp_path, a="extends: b.yaml\n", b=text)
    with pytest.raises((ValueError, FileNotFoundError), match=r".") as caught:
        load_recipe(str(tmp_path / "a.yaml"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_base_cannot_be_set_from_the_command_line() -> None:
    with pytest.raises(ValueError, match="extends: unknown key"):
        load_recipe("tiny", ["extends=tiny"])


def test_the_shipped_recipes_copy_nothing_of_their_base() -> None:
    for path in RECIPES.glob("*.yaml"):
        lines = [line for line in path.read_text().splitlines() if line and not line.lstrip().startswith("#")]
        assert "extends" not in read_tree(path)
        assert len(lines) < 25 or not any(line.startswith("extends") for line in lines)
