"""A recipe's YAML as one tree: a file may say `extends: NAME` and then holds only what differs.

Mappings are merged key by key; anything else (a number, a list, null) replaces what the base says. A base is
a recipe of `pipeline/recipes/`, or a path beside the file that names it. Below all of them is the preset
that the merged tree names (`pipeline/settings/presets/`). `pipeline.settings.recipe` checks the whole, so an
unknown key is refused wherever it is.
"""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from pipeline.redaction import redact
from reward.assignments import read_settings
from reward.problems import SAID_WHOLE, shown

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
PRESETS = Path(__file__).resolve().parent / "presets"
_EXTENDS = "extends"


def recipe_file(name_or_path: str, *, beside: Path = Path()) -> Path:
    """The file of a recipe, by path seen from the folder `beside` or by name; FileNotFoundError for none."""
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
    return _merged(layers(path))


def read_own(path: Path) -> dict[str, Any]:
    """Reads, as `read_tree`, a user's own files alone: without the shipped recipes."""
    return _merged([layer for layer in layers(path) if layer[0].resolve().parent != RECIPES])


def layers(path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """What a recipe's file and those that it extends say, each without `extends`, the recipe itself last."""
    found: list[tuple[Path, dict[str, Any]]] = []
    file: Path | None = path
    while file is not None:
        if file.resolve() in (known := [one.resolve() for one, _ in found]):
            names = " -> ".join(one.name for one in (*known, file))
            raise ValueError(f"{file.name}: extends: recipes go round in a circle ({names}); leave one out")
        tree = read_settings(file, see="docs/recipes.md")
        base = tree.pop(_EXTENDS, None)
        if not isinstance(base, str | None):
            raise ValueError(f"{file.name}: extends: {base!r} is no name; write one recipe's name or path")
        found.append((file, tree))
        file = None if base is None else recipe_file(base, beside=file.parent)
    return found[::-1]


def with_preset(tree: dict[str, Any], *, named_in: Path) -> dict[str, Any]:
    """Puts the preset that a merged tree names below its keys; ValueError where there is no such preset."""
    name, known = tree.get("preset"), sorted(path.stem for path in PRESETS.glob("*.yaml"))
    if name is None:
        return tree
    if name not in known:
        raise ValueError(f"{named_in.name}: preset: {name!r} is unknown; use {' or '.join(known)}")
    return merge(preset_layer(name), tree)


def preset_layer(name: str) -> dict[str, Any]:
    """What a known preset says."""
    return read_settings(PRESETS / f"{name}.yaml", see="docs/presets.md")


def _merged(trees: Sequence[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    return reduce(merge, (tree for _, tree in trees), dict[str, Any]())


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` with what `over` says: mappings key by key, anything else as a whole."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names, as `--set` takes them; an empty group is a value."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def explain(path: Path, overrides: Sequence[str], problem: ErrorDetails) -> str:
    """One of the `problems` of a recipe in one line, with the file or the `--set` that it is about."""
    key, text, given = ".".join(str(part) for part in problem["loc"]), problem["msg"], problem["input"]
    said = [assignment.partition("=")[0].strip() for assignment in overrides]
    if any(f"{key}.".startswith(f"{one}.") for one in said):
        where = f"--set {key}"
    else:
        # A rule over several fields names those that it read; its input is the whole group.
        group = f"{key}." if key else ""
        read = [one.removeprefix(group) for one in said if one.startswith(group)]
        is_set = isinstance(given, dict) and any(re.search(rf"\b{re.escape(one)}\b", text) for one in read)
        where = ": ".join(filter(None, ["--set" if is_set else path.name, key]))
    if problem["type"] == "tuple_type":
        return f"{where}: {shown(given)} is no list; write [{given!s:.80}]"
    found = redact(given) if isinstance(given, str) else given
    is_whole = isinstance(given, dict) or problem["type"] in SAID_WHOLE
    return f"{where}: {text}" + ("" if is_whole else f" (got {shown(found)})")
