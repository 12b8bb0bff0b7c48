"""A recipe's YAML as one tree: a file may say `extends: NAME` and then holds only what differs.

Mappings are merged key by key; anything else (a number, a list, null) replaces what the base says. A base is
a recipe of `pipeline/recipes/`, or a path beside the file that names it. `pipeline.settings.recipe` checks
the merged tree, so an unknown key is refused wherever it stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reward.assignments import read_settings

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
_EXTENDS = "extends"


def recipe_file(name_or_path: str, *, beside: Path = Path()) -> Path:
    """Returns the file of a recipe by path, seen from the folder `beside`, or by name.

    Raises:
        FileNotFoundError: there is none.
    """
    for path in (beside / name_or_path, RECIPES / f"{name_or_path}.yaml"):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in RECIPES.glob("*.yaml")))
    raise FileNotFoundError(f"recipe {name_or_path!r}: no such file and no such recipe; there are: {known}")


def read_tree(path: Path) -> dict[str, Any]:
    """Reads a recipe's file, and what it extends, into one tree without `extends`.

    Raises:
        FileNotFoundError: a base is not there.
        ValueError: a file is not YAML or no mapping, `extends` is no name, or a recipe extends itself.
    """
    return _read(path, above=())


def read_own(path: Path) -> dict[str, Any]:
    """Reads what a user's own file says, and what it extends of their own: without the shipped recipes.

    Raises:
        FileNotFoundError, ValueError: as `read_tree` does.
    """
    return _read(path, above=(), own_only=True)


def _read(path: Path, above: tuple[Path, ...], *, own_only: bool = False) -> dict[str, Any]:
    if own_only and path.resolve().parent == RECIPES:
        return {}
    chain = (*above, path.resolve())
    if path.resolve() in above:
        names = " -> ".join(file.name for file in chain)
        raise ValueError(f"{path.name}: extends: recipes go round in a circle ({names}); leave one out")
    tree = read_settings(path, see="docs/recipes.md")
    base = tree.pop(_EXTENDS, None)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise ValueError(f"{path.name}: extends: {base!r} is no name; write one recipe's name or path")
    return merge(_read(recipe_file(base, beside=path.parent), chain, own_only=own_only), tree)


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` with what `over` says: mappings key by key, anything else as a whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
