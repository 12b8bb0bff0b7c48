"""YAML that users write: safe types alone, and no key twice in a mapping, where the last would win unseen."""

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
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


def load_yaml(text: str) -> Any:
    """Reads one document.

    Raises:
        yaml.YAMLError: it is not YAML.
        ValueError: a key is given twice, or a date or number is none; one line.
    """
    return yaml.load(text, Loader=_Loader)
