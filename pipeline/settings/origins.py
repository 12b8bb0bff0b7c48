"""Each setting of a recipe with where its value comes from, for `march recipe show`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.settings.recipe import load_recipe
from pipeline.settings.tree import RECIPES, flatten, layers, preset_layer, recipe_file
from reward.assignments import assign

DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    key: str  # dotted, as `--set` takes it
    value: Any  # as JSON has it
    origin: str  # "--set", a file, "recipe NAME", "preset NAME" or "default"


def settings_with_origins(name_or_path: str, overrides: Sequence[str] = ()) -> list[Setting]:
    """Returns every setting of a recipe, in the order of the tree; raises as `load_recipe` does."""
    recipe = load_recipe(name_or_path, list(overrides))
    weakest_first = [
        (f"recipe {file.stem}" if file.resolve().parent == RECIPES else str(file), tree)
        for file, tree in layers(recipe_file(name_or_path))
    ]
    weakest_first.append(("--set", assign({}, overrides)))
    if recipe.preset is not None:
        weakest_first.insert(0, (f"preset {recipe.preset}", preset_layer(recipe.preset)))
    strongest_first = weakest_first[::-1]
    return [
        Setting(key, value, next((name for name, tree in strongest_first if _says(tree, key)), DEFAULT))
        for key, value in flatten(recipe.model_dump(mode="json")).items()
    ]


def _says(tree: Any, key: str) -> bool:
    """Whether a layer decides a setting: by its key, or by a value in the place of a group above it."""
    for part in key.split("."):
        if not isinstance(tree, Mapping):
            return True
        if part not in tree:
            return False
        tree = tree[part]
    return True
