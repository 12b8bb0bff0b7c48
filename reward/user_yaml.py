"""YAML that users write: safe types alone, no key twice in a mapping, where the last would win unseen, and no
aliases that make gigabytes of a few lines.
"""

from itertools import chain
from typing import Any

import yaml

_MOST_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _num_values(node, {}) > _MOST_VALUES:
            raise ValueError(f"over {_MOST_VALUES} values, with what aliases repeat; write less")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            line, known = key.start_mark.line + 1, (key.tag, key.value)
            if known in lines:
                where = f"line {line}" if lines[known] == line else f"lines {lines[known]} and {line}"
                raise ValueError(f"{key.value}: given twice, in {where}; keep one")
            lines[known] = line
        return node


def _num_values(node: yaml.Node, known: dict[int, int]) -> int:
    """Values of a node, each as often as aliases repeat it; too many where it is within itself."""
    if id(node) not in known:
        known[id(node)] = _MOST_VALUES + 1
        inside = node.value if isinstance(node, yaml.SequenceNode) else ()
        inside = chain(*node.value) if isinstance(node, yaml.MappingNode) else inside
        known[id(node)] = 1 + sum(_num_values(one, known) for one in inside)
    return known[id(node)]


def load_yaml(text: str) -> Any:
    """Reads one document.

    Raises:
        yaml.YAMLError: it is not YAML.
        ValueError: a key is given twice, aliases repeat too much, or a date or number is none; one line.
    """
    return yaml.load(text, Loader=_Loader)
