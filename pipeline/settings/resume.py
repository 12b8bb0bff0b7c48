"""What the settings of a resume are: those that its run recorded, unless the user asks for others.

A run records all of its settings, so an upgrade of this package changes none of them.

| a setting | the run goes on with |
|---|---|
| whose default, or shipped recipe, says something else today | what it recorded |
| that the run did not record, since it is new | today's default, which is chosen to change nothing |
| that it recorded and this version no longer has | nothing; `gone_settings` names it |
| of `guards` that the user asks for otherwise | what is asked for: guards judge a training, no more |
| a `micro_batch_size` that the user asks for otherwise | what is asked for: memory may have been too little |
| any other that the user asks for otherwise, or no longer asks for | refused |

The user asks with `--set` and in files of their own; shipped recipes are defaults, but for their name.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from pipeline.redaction import one_line
from pipeline.settings.recipe import NOT_TRAINED_BY, Recipe
from pipeline.settings.tree import read_own, recipe_file
from reward.assignments import assign

_NAME, _GUARDS = "name", "guards"
_MAY_CHANGE = (_GUARDS, "ppo.micro_batch_size", "rollout.micro_batch_size")


@dataclass(frozen=True)
class Difference:
    """A setting whose value today is not the recorded one."""

    setting: str  # dotted
    recorded: JsonValue
    now: JsonValue

    def __str__(self) -> str:
        return f"{self.setting} (recorded {_shown(self.recorded)}, now {_shown(self.now)})"


@dataclass(frozen=True)
class Resumed:
    recipe: Recipe
    kept: tuple[Difference, ...]  # nobody asked for them, so the recorded values hold
    changed: tuple[Difference, ...]  # of guards and micro-batches: the values of now hold

    @property
    def guards(self) -> tuple[Difference, ...]:
        """Those of the changed ones that are guards."""
        return tuple(one for one in self.changed if _is_about(one.setting, _GUARDS))


def asked_settings(
    recipe: Recipe, name_or_path: str, overrides: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The settings that the user gives: dotted, each as deep as `recipe`, which is made of them, has it."""
    tree = assign(read_own(recipe_file(name_or_path)), overrides or ())
    merged = recipe.model_dump(mode="json")
    return tuple(sorted({".".join(path) for path in _leaves(tree, merged) if path}))


def resumed(recorded: Recipe, now: Recipe, *, asked_then: Sequence[str], asked_now: Sequence[str]) -> Resumed:
    """Settles what a run goes on with.

    Args:
        recorded: The settings of the run, with today's default for each that it did not record.
        now: The settings as they would be for a new run.
        asked_then, asked_now: Those that the user gave at its start (none where that was not recorded), and
            gives now.

    Raises:
        ValueError: the user asks for another training; each setting is named.
    """
    asked = {_NAME, *asked_then, *asked_now}
    found = list(_differences(recorded.model_dump(mode="json"), now.model_dump(mode="json")))
    given = [one for one in found if any(_is_about(one.setting, setting) for setting in asked)]
    changed = tuple(one for one in given if any(_is_about(one.setting, name) for name in _MAY_CHANGE))
    if refused := [one for one in given if one not in changed]:
        raise ValueError(
            f"holds a run of other settings: {', '.join(map(str, refused))}; use another --run-dir for a new "
            "run, or the recorded values to resume (only `guards` and "
            "`micro_batch_size` may change)"
        )
    kept = tuple(one for one in found if one not in given)
    tree, of_now = recorded.model_dump(mode="json"), now.model_dump(mode="json")
    for group, name in {tuple(one.setting.split(".")[:2]) for one in changed}:  # a guard is taken whole
        tree[group][name] = of_now[group][name]
    return Resumed(Recipe.model_validate(tree), kept, changed)


def gone_settings(recorded: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The places in a recorded recipe of settings that this version does not have."""
    try:
        Recipe.model_validate(recorded)
    except ValidationError as error:
        unknown = [one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"]
        return [_place(recorded, loc) for loc in unknown]
    return []


def without_gone(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded recipe as this version can read it."""
    tree = deepcopy(dict(recorded))
    for *parents, leaf in gone_settings(recorded):
        node = tree
        for parent in parents:
            node = node[parent]
        del node[leaf]
    return tree


def _place(tree: Mapping[str, Any], loc: Sequence[str | int]) -> tuple[str, ...]:
    """A place without the names of union members, which pydantic puts between the keys."""
    place: list[str] = []
    node: Any = tree
    for part in map(str, loc):
        if isinstance(node, Mapping) and part in node:
            place.append(part)
            node = node[part]
    return tuple(place)


def _leaves(
    tree: Mapping[str, Any], merged: JsonValue, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Where a tree has values; a key that the merged tree knows by another name counts as its group."""
    for key, value in tree.items():
        if not isinstance(merged, dict) or key not in merged:
            yield above
        elif isinstance(value, Mapping) and value:
            yield from _leaves(value, merged[key], (*above, key))
        else:
            yield (*above, key)


def _differences(recorded: JsonValue, now: JsonValue, above: tuple[str, ...] = ()) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in sorted(recorded.keys() | now.keys()):
            if above or key not in NOT_TRAINED_BY:
                yield from _differences(recorded.get(key), now.get(key), (*above, key))
    elif recorded != now:
        yield Difference(".".join(above), recorded, now)


def _is_about(one: str, other: str) -> bool:
    """Whether one of two settings is the other, or holds it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _shown(value: JsonValue) -> str:
    return f"{one_line(json.dumps(value)):.80}"
