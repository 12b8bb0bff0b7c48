"""A lineage for people: as a tree of its fields, and as the commands that make the model again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.text import Text
from rich.tree import Tree

from pipeline.lineage.record import EvaluationRecord, Lineage, Surroundings
from pipeline.settings.tree import flatten
from reward.offline.excerpt import printable
from reward.offline.files import replace_file
from reward.offline.page import render_page
from reward.offline.terminal import spoken
from reward.types import Record

NOT_RECORDED = "not recorded"
_TEMPLATES = Path(__file__).parent / "templates"
_STYLE = ".tree, .tree ul { list-style: none; padding-left: 1.2rem; } .tree code { overflow-wrap: anywhere; }"
_LONG = {"recipe", "settings", "files"}  # `march model reproduce` writes the first two, the store lists files
RECIPE_FILE = "recipe.yaml"


@dataclass(frozen=True)
class Node:
    label: str
    value: str = ""
    below: tuple[Node, ...] = ()


def tree_of(lineage: Lineage) -> Node:
    """The whole record, and of the recipe its preset."""
    return node_of("run", lineage, leaf("preset", str(lineage.recipe.get("preset") or "none")))


def node_of(label: str, record: Record, *more: Node) -> Node:
    """A record; its first field says what it is."""
    (_, first), *rest = record
    below = (node for name, value in rest if name not in _LONG for node in _nodes(spoken(name), value))
    return Node(label, _text(first), (*more, *below))


def leaf(label: str, value: str | None) -> Node:
    return Node(label, value or NOT_RECORDED)


def as_rich(node: Node) -> Tree:
    tree = Tree(Text.assemble((printable(node.label), "bold"), " ", (printable(node.value), "cyan")))
    for one in node.below:
        tree.add(as_rich(one))
    return tree


def render_html(root: Node) -> str:
    """A page of a tree; it works from a disk."""
    return render_page("lineage.html", folder=_TEMPLATES, style=_STYLE, root=root)


def _nodes(label: str, value: object) -> Iterator[Node]:
    """A line, or one for each record of several."""
    if isinstance(value, Record):
        yield node_of(label, value)
    elif isinstance(value, tuple) and value:
        yield from (node_of(label, one) for one in value)
    elif isinstance(value, dict) and value:
        yield Node(label, "", tuple(leaf(str(name), _text(one)) for name, one in value.items()))
    else:
        yield leaf(label, _text(value))


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value in (None, (), {}) else str(value)


def write_recipe(lineage: Lineage, folder: Path) -> Path:
    """Writes the recipe; ValueError where another one is."""
    import yaml

    path, text = folder / RECIPE_FILE, yaml.safe_dump(lineage.recipe, sort_keys=False)
    if path.exists() and path.read_text() != text:
        raise ValueError(f"{path}: is there already, with another recipe; give another --out")
    replace_file(path, text)
    return path


def commands(
    lineage: Lineage, folder: Path, *, store: str | None = None, parent: str | None = None
) -> list[str]:
    """Lines for a shell; what cannot be made sure of is a comment before the line that it concerns.

    A lineage is another's text: what it says is quoted, and a comment is one line.

    Args:
        lineage: Of the model.
        folder: Where the recipe was written, and where data and the run go.
        store: Where rows and parent are; None: in the store that is set then.
        parent: Digest of the weights that it starts from, where they are in the store; else the recipe's
            model is taken.
    """
    lines = _code(lineage.surroundings[-1] if lineage.surroundings else None)
    if len(lineage.surroundings) > 1:
        lines.insert(0, f"# the run went on in {len(lineage.surroundings)} surroundings; these are the last")
    train = ["march", "train", str(folder / RECIPE_FILE), "--run-dir", str(folder / "run")]
    if lineage.data and lineage.is_of_prepared_rows:
        lines += _data_lines(lineage, folder, store)
        train += ["--set", f"data.path={folder / 'data'}"]
    if lineage.parent.weights_sha256 is not None:
        lines.append(f"# it starts from {lineage.parent.name}: {lineage.parent.weights_sha256}")
    if parent is not None:
        lines.append(_get(parent, folder / "parent", store))
        train += ["--set", f"model={folder / 'parent'}"]
    lines.append(shlex.join(train))
    for place, one in enumerate(lineage.evaluations, start=1):
        lines += _evaluation_lines(one, folder, place)
    if lineage.model and lineage.model.weights_sha256:
        lines.append(f"# the weights then (another training's differ): {lineage.model.weights_sha256}")
    return [printable(line.replace("\n", " ")) for line in lines]


def _code(around: Surroundings | None) -> list[str]:
    if around is None or around.git_commit is None:
        return ["# which commit it was trained by is not recorded"]
    lines = [shlex.join(["git", "checkout", around.git_commit])]
    if around.git_dirty:
        lines.insert(
            0, f"# files differed from this commit (diff {around.git_diff_sha256}); they are not kept"
        )
    lines += [
        f"echo {shlex.quote(f'{digest}  {name}')} | sha256sum -c" for name, digest in around.locks.items()
    ]
    return [*lines, "make .venv/ready"]


def _get(digest: str, folder: Path, store: str | None) -> str:
    at = ["--store", store] if store else []
    return shlex.join(["march", "artifacts", "get", digest, str(folder), *at])


def _data_lines(lineage: Lineage, folder: Path, store: str | None) -> list[str]:
    assert lineage.data is not None
    if lineage.data.artifact:
        return [_get(lineage.data.artifact, folder / "data", store)]
    inputs = ", ".join(f"{name} ({digest[:12]})" for name, digest in lineage.data.inputs.items())
    return [
        f"# prepare the rows again from {inputs or lineage.data.source}; train.jsonl must have the digest "
        f"{lineage.data.rows_sha256}"
    ]


def _evaluation_lines(one: EvaluationRecord, folder: Path, place: int) -> list[str]:
    command = ["march", "evaluate", str(folder / "run" / "model")]
    command += ["--out", str(folder / f"evaluation-{place}")]
    for name, source in one.sources.items():
        command += ["--benchmark", f"{name}={source}"]
    command += _measured_by(one.settings)
    judge = f' --judge "$JUDGE_URL" --judge-model {shlex.quote(one.judge)}' if one.judge else ""
    note = f"# its settings then: {one.settings_sha256}; the new results.json says whether they are the same"
    note += "" if one.settings else "; they are not recorded, so these are the defaults"
    return [note, shlex.join(command) + judge]


def _measured_by(settings: Mapping[str, JsonValue]) -> list[str]:
    """The options with which an evaluation was made, whatever is the default by then."""
    words, flat = list[str](), flatten(settings)
    for option, key in (("--generations", "num_generations"), ("--limit", "limit"), ("--audit", "audit")):
        words += [option, str(flat[key])] if flat.get(key) else []
    for name, value in flat.items():
        key = name.removeprefix("judge.")
        if key.startswith(("generation.", "judging.")):
            words += ["--set", f"{key}={'null' if value is None else value}"]
    return words
