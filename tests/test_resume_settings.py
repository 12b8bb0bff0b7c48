"""What a resume goes on with: what the run recorded, unless its user asks for another training."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.resume import Resumed, asked_settings, gone_settings, resumed, without_gone
from reward.assignments import assign

SERVER = "reward.sampler={kind: openai, base_url: 'http://me:secret@host:1/v1', model: m}"


def changed(recipe: Recipe, *assignments: str) -> Recipe:
    """The recipe of a version with other defaults."""
    return Recipe.model_validate(assign(recipe.model_dump(mode="json"), assignments))


def resume(recorded: Recipe, then: list[str], now: list[str], name: str = "tiny") -> Resumed:
    recipe = load_recipe(name, now)
    return resumed(
        recorded,
        recipe,
        asked_then=asked_settings(load_recipe("tiny", then), "tiny", then),
        asked_now=asked_settings(recipe, name, now),
    )


def test_what_is_asked_for_is_what_the_user_says_over_the_shipped_recipes(tmp_path: Path) -> None:
    (tmp_path / "middle.yaml").write_text("extends: tiny\nppo: {actor: {lr: 1.0}}\n")
    (tmp_path / "own.yaml").write_text("extends: middle.yaml\nname: own\ncanary: {answers: 2}\n")
    path = str(tmp_path / "own.yaml")
    overrides = ["train_roles=[solver]", "guards.kl=null", SERVER]
    asked = asked_settings(load_recipe(path, overrides), path, overrides)
    sampler = ("reward.sampler", "reward.sampler.kind", "reward.sampler.model")  # base_url has another name
    assert asked == ("canary.answers", "guards.kl", "name", "ppo.actor.lr", *sampler, "train_roles")
    assert asked_settings(load_recipe("tiny"), "tiny") == ()


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        ([], ["seed=3"], "seed (recorded 0, now 3)"),
        (["seed=3"], [], "seed (recorded 3, now 0)"),
        (["seed=3"], ["seed=4"], "seed (recorded 3, now 4)"),
        ([], ["canary.answers=2"], "canary (recorded null, now {"),
        (["canary.answers=2"], ["canary=null"], 'canary (recorded {"answers": 2'),
        ([], ["data.world={kinds: [number, name]}"], "data.world.kinds"),
        ([], ["ppo.gamma=0.5", "seed=1"], "ppo.gamma (recorded 1.0, now 0.5), seed (recorded 0, now 1)"),
        ([], [SERVER, "train_roles=[solver]"], "reward.sampler (recorded null, now "),
    ],
)
def test_another_training_is_refused_and_each_setting_named(
    then: list[str], now: list[str], says: str
) -> None:
    with pytest.raises(ValueError, match="use another --run-dir for a new run, or") as refused:
        resume(load_recipe("tiny", then), then, now)
    assert f"holds a run of other settings: {says}" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_another_shipped_recipe_is_another_training() -> None:
    with pytest.raises(ValueError, match='name \\(recorded "tiny", now "tiny_kinds"\\)'):
        resume(load_recipe("tiny"), [], [], name="tiny_kinds")


def test_a_changed_default_keeps_what_was_recorded() -> None:
    recorded = changed(load_recipe("tiny", ["seed=3"]), "ppo.gamma=0.9", "guards.kl.limit=7.0")
    found = resume(recorded, ["seed=3"], ["seed=3"])
    assert found.recipe == recorded and not found.guards
    assert [one.setting for one in found.kept] == ["guards.kl.limit", "ppo.gamma"]
    assert not resume(load_recipe("tiny"), [], ["estimate.mfu=0.1", "warmup.epochs=3"]).kept


def test_asking_for_a_changed_default_is_asking_for_another_training() -> None:
    recorded = changed(load_recipe("tiny"), "ppo.gamma=0.9")
    with pytest.raises(ValueError, match=r"ppo.gamma \(recorded 0.9, now 1.0\)"):
        resume(recorded, [], ["ppo.gamma=1.0"])
    assert resume(recorded, [], ["ppo.gamma=0.9"]).recipe == recorded


def test_of_the_guards_those_that_are_asked_for_hold() -> None:
    then = ["guards.kl={limit: 0.5}"]
    recorded = changed(load_recipe("tiny", then), "guards.length.limit=0.1")
    found = resume(recorded, then, ["guards.no_claims=null"])
    assert {one.setting for one in found.guards} == {"guards.no_claims", "guards.kl.limit"}
    guards = found.recipe.guards
    assert guards.no_claims is None and guards.kl and guards.kl.limit == 1.0  # no more asked for
    assert guards.length and guards.length.limit == 0.1
    assert found.recipe.model_copy(update={"guards": recorded.guards}) == recorded


def test_settings_that_are_new_or_gone_since_then_do_not_matter() -> None:
    tree: dict[str, Any] = load_recipe("tiny", [SERVER, "train_roles=[solver]"]).model_dump(mode="json")
    before = Recipe.model_validate(tree)
    for name in ("canary", "held_out", "warmup"):
        del tree[name]
    tree["old"] = tree["ppo"]["gone"] = tree["reward"]["sampler"]["away"] = 1
    places = [("ppo", "gone"), ("reward", "sampler", "away"), ("old",)]
    assert sorted(gone_settings(tree)) == sorted(places)
    assert Recipe.model_validate(without_gone(tree)) == before and tree["old"] == 1
    assert gone_settings(before.model_dump(mode="json")) == []


def test_a_run_that_had_too_little_memory_goes_on_with_smaller_micro_batches() -> None:
    found = resume(load_recipe("tiny", ["seed=3"]), ["seed=3"], ["seed=3", "ppo.micro_batch_size=1"])
    assert found.recipe == load_recipe("tiny", ["seed=3", "ppo.micro_batch_size=1"])
    assert [one.setting for one in found.changed] == ["ppo.micro_batch_size"] and not found.guards
