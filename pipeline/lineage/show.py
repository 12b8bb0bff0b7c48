"""A lineage as a tree, for a terminal and for a page: its fields in their order, whatever they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

from pipeline.lineage.record import Lineage
from reward.offline.excerpt import printable
from reward.offline.page import render_page
from reward.offline.terminal import spoken
from reward.types import Record

NOT_RECORDED = "not recorded"
_TEMPLATES = Path(__file__).parent / "templates"
_STYLE = ".tree, .tree ul { list-style: none; padding-left: 1.2rem; } .tree code { overflow-wrap: anywhere; }"
_LONG = {"recipe", "files"}  # `march model reproduce` writes the one, the store lists the other


@dataclass(frozen=True)
class Node:
    """A line of the tree and what is below it."""

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
    """A line that may be missing."""
    return Node(label, value or NOT_RECORDED)


def as_rich(node: Node) -> Tree:
    """The same for a terminal."""
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
