"""Settings from a command line: `--set dotted.key=value`, the value in YAML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def assign(tree: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Puts "dotted.key=value" assignments into a tree of settings, in order, and returns the tree.

    Raises:
        ValueError: an assignment has no "=", goes through a value, or its value is not YAML; one line.
    """
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator or not key.strip():
            mend = "write it as dotted.key=value, such as checker.temperature=0.2"
            raise ValueError(f"--set {assignment!r}: {mend}")
        *parents, leaf = key.strip().split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ValueError(
                    f"--set {assignment!r}: {parent!r} is a value, not a group of keys; set it once"
                )
        node[leaf] = _value(assignment, value)
    return tree


def _value(assignment: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"--set {assignment!r}: not YAML ({problem:.120}); quote it") from None
