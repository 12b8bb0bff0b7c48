"""Presets are defaults below a recipe's own keys, and each is what its page says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.tree import PRESETS, RECIPES
from reward.config import AuditConfig

PAGE = Path(__file__).parents[1] / "docs" / "presets.md"
OWN = "name: own\nmodel: tiny\ndata: {source: tiny, max_steps: 2}\n"


def leaves(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def preset(name: str) -> dict[str, Any]:
    return dict(leaves(yaml.safe_load((PRESETS / f"{name}.yaml").read_text())))


def own(folder: Path, text: str, *overrides: str) -> Recipe:
    (folder / "own.yaml").write_text(OWN + text)
    return load_recipe(str(folder / "own.yaml"), list(overrides))


@pytest.mark.parametrize("name", ["paper", "march"])
def test_a_preset_is_what_a_recipe_without_keys_of_its_own_has(name: str, tmp_path: Path) -> None:
    recipe = own(tmp_path, f"preset: {name}\n")
    merged = dict(leaves(recipe.model_dump(mode="json")))
    assert {key: merged[key] for key in preset(name)} == preset(name)
    assert recipe.preset == merged["preset"] == name  # so MLflow and lineage have it
    assert recipe.has_critic is (name == "paper")


def test_own_keys_and_set_are_above_the_preset_and_set_exchanges_it(tmp_path: Path) -> None:
    text = "preset: march\nppo: {estimator: gae}\naudit: {voters: 5}\n"
    recipe = own(tmp_path, text, "rollout.samples_per_query=2")
    assert (recipe.ppo.estimator, recipe.audit.voters, recipe.rollout.samples_per_query) == ("gae", 5, 2)
    assert (recipe.ppo.whitening_floor, recipe.audit.refute_without_claims) == (0.1, True)
    changed = own(tmp_path, text, "preset=paper")
    assert (changed.ppo.whitening_floor, changed.audit.kinds, changed.audit.voters) == (1e-4, ("number",), 5)


def test_a_recipe_without_a_preset_has_the_default_of_each_setting(tmp_path: Path) -> None:
    recipe = own(tmp_path, "")
    assert recipe.preset is None and recipe.audit == AuditConfig()


def test_a_base_names_the_preset_of_what_extends_it_unless_that_names_another(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(OWN + "preset: march\n")
    (tmp_path / "same.yaml").write_text("extends: base.yaml\n")
    (tmp_path / "other.yaml").write_text("extends: base.yaml\npreset: paper\n")
    assert load_recipe(str(tmp_path / "same.yaml")).ppo.estimator == "rloo"
    assert load_recipe(str(tmp_path / "other.yaml")).ppo.estimator == "gae"


@pytest.mark.parametrize("name", ["mrach", "[paper]", "1", "../presets/paper"])
def test_an_unknown_preset_is_one_clear_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"own.yaml: preset: .* is unknown; use march or paper$"):
        own(tmp_path, f"preset: {name}\n")


def test_both_presets_settle_the_same_settings_and_the_page_shows_their_values() -> None:
    paper, march = preset("paper"), preset("march")
    assert paper.keys() == march.keys()
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    shown = {row[0].strip("| `"): (row[1], row[2]) for row in rows}
    assert shown == {key: (said(paper[key]), said(march[key])) for key in paper}


def said(value: object) -> str:
    """A value as the page writes it."""
    return (", ".join(value) or "`[]`") if isinstance(value, list) else str(json.dumps(value)).strip('"')


def test_the_paper_pays_an_answer_for_the_claims_that_were_made_alone(tmp_path: Path) -> None:
    audit = own(tmp_path, "preset: paper\n").audit
    assert (audit.reward_supported, audit.reward_refuted, audit.uncovered) == (0.0, -1.0, "ignore")


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")))
def test_a_shipped_recipe_names_its_preset(name: str) -> None:
    assert load_recipe(name).preset == ("march" if name.startswith("smollm2") else "paper")
