"""`march lineage`: what made a model. `march reproduce`: the commands that make it again.

REF is a run's folder, MODEL@ALIAS of the registry, a pointer of the artifact store, or a digest.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.artifacts_command import EndpointOption, StoreOption, open_named
from orchestration.messages import warn_ignored

if TYPE_CHECKING:
    from rich.tree import Tree

    from pipeline.lineage.record import Lineage
    from pipeline.lineage.show import Node

_Ref = Annotated[
    str, typer.Argument(metavar="REF", help="A run's folder, MODEL@ALIAS, a pointer or a digest.")
]


def lineage(
    ref: _Ref,
    html: Annotated[Path | None, typer.Option(help="Write a page.")] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put a run's weights, rows and record into the store.")
    ] = False,
    evaluation: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="An evaluation of the run's model; --publish.")
    ] = None,
    gate_report: Annotated[
        Path | None, typer.Option(help="JSON of the gates; --publish.", exists=True, dir_okay=False)
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Lineage of what it started from; --publish.")
    ] = None,
    store: StoreOption = None,
    endpoint: EndpointOption = None,
) -> None:
    """Show what made a model, as a tree; or publish what made a run's."""
    from rich.console import Console

    from pipeline.lineage.publish import publish_run
    from pipeline.lineage.show import render_html, tree_of
    from reward.offline.files import replace_file

    if publish:
        opened = open_named(store, endpoint)
        known = opened.resolve(parent) if parent else None
        published = publish_run(
            opened, Path(ref), evaluations=evaluation or (), gate_report=gate_report, parent=known
        )
        print(published.digest)
        return
    warn_ignored("without --publish", evaluation=evaluation, gate_report=gate_report, parent=parent)
    found = _resolve(ref, store, endpoint)
    if html is None:
        Console().print(_as_rich(tree_of(found)))
    else:
        replace_file(html, render_html(found))
        print(html)


def reproduce(
    ref: _Ref,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the recipe is written, and data and run will go.", show_default="reproduce-RUN"
        ),
    ] = None,
    store: StoreOption = None,
    endpoint: EndpointOption = None,
) -> None:
    """Write the recipe of a model and print the commands that make the model again."""
    from pipeline.lineage.reproduce import commands, write_recipe

    found = _resolve(ref, store, endpoint)
    folder = out or Path(f"reproduce-{found.run}")
    write_recipe(found, folder)
    print("\n".join(commands(found, folder)))


def _resolve(ref: str, store: str | None, endpoint: str | None) -> Lineage:
    from pipeline.lineage.resolve import resolve_lineage

    return resolve_lineage(ref, partial(open_named, store, endpoint), _registered)


def _registered(ref: str) -> str:
    """The digest of a registered model's lineage."""
    raise ValueError(f"{ref}: no model registry is set up here; give the digest of its lineage")


def _as_rich(node: Node) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text.assemble((node.label, "bold"), " ", (node.value, "cyan")))
    for one in node.below:
        tree.add(_as_rich(one))
    return tree
