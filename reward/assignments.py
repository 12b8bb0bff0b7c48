"""Settings as a tree of keys: a YAML file, and `--set dotted.key=value` over it, the value in YAML."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_settings(file: Path, *, see: str, named: str | None = None) -> dict[str, Any]:
    """Reads a YAML file that holds a mapping of keys.

    Messages name what describes its keys (`see`), and the option or key that names the file (`named`).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not UTF-8, not YAML, gives a key twice, or is no mapping; one line.
    """
    import yaml

    from reward.user_yaml import load_yaml

    where = f"{named}: {file}" if named else f"{file}"
    if not file.is_file():
        raise FileNotFoundError(f"{where}: no such file; fix the path")
    try:
        tree = load_yaml(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{where}: not UTF-8; save it as UTF-8") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if not isinstance(tree, dict):
        raise ValueError(f"{where}: holds no mapping of keys; see {see}")
    return tree


def assign(tree: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Puts "dotted.key=value" assignments into a tree of settings, in order, and returns the tree.

    Raises:
        ValueError: an assignment has no "=", goes through a value, or its value is not YAML; one line.
    """
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        if not separator or not key.strip():
            fix = "write it as dotted.key=value, such as checker.temperature=0.2"
            raise ValueError(f"--set {assignment!r}: {fix}")
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

    from reward.user_yaml import load_yaml

    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"--set {assignment!r}: not YAML ({problem:.120}); quote it") from None
    except ValueError as error:
        raise ValueError(f"--set {assignment!r}: {error}") from None
