"""`march model lineage`: what made a model. `march model reproduce`: the commands that make it again.

REF is a run's folder, MODEL@ALIAS or MODEL@VERSION of the registry, a pointer of the artifact store, or a
digest. Of a registered version it is shown, too, who promoted it, when, and by which gates.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import promote_options as options
from orchestration.commands.artifacts import StoreOption, byte_progress, open_named
from orchestration.registry.open import open_version
from orchestration.terminal.messages import warn_ignored

if TYPE_CHECKING:
    from rich.tree import Tree

    from orchestration.registry.store import ModelVersion
    from pipeline.artifacts.address import Artifact
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
    parent: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Lineage of what it started from; --publish.")
    ] = None,
    link: Annotated[
        bool, typer.Option(help="Name it in the run's MLflow tags, with its page; --publish.")
    ] = True,
    registry: options.RegistryUri = None,
    store: StoreOption = None,
) -> None:
    """Show what made a model, as a tree; or publish what made a run's."""
    from rich.console import Console

    from pipeline.lineage.show import render_html
    from reward.offline.files import replace_file

    if publish:
        from pipeline.lineage.publish import link_run, publish_run

        opened, run_dir = open_named(store), Path(ref)
        known = opened.resolve(parent) if parent else None
        with byte_progress("storing", None) as advance:
            digest = publish_run(opened, run_dir, evaluations=evaluation or [], parent=known, advance=advance)
        print(digest)
        if link:
            link_run(opened, run_dir, digest)
        return
    warn_ignored("without --publish", evaluation=evaluation, parent=parent)
    root = _tree(ref, registry, store)
    if html is None:
        Console().print(_as_rich(root))
    else:
        replace_file(html, render_html(root))
        print(html)


def reproduce(
    ref: _Ref,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the recipe is written, and data and run will go.", show_default="reproduce-RUN"
        ),
    ] = None,
    registry: options.RegistryUri = None,
    store: StoreOption = None,
) -> None:
    """Write the recipe of a model and print the commands that make the model again."""
    from pipeline.lineage.reproduce import commands, write_recipe

    lineage, location = _resolve(ref, registry, store)
    folder = out or Path(f"reproduce-{lineage.run}")
    write_recipe(lineage, folder)
    print("\n".join(commands(lineage, folder, store=location)))


def _tree(ref: str, registry: str | None, store: str | None) -> Node:
    """What made it; of a registered version also where it is and what was decided about it."""
    from dataclasses import replace

    from orchestration.registry.store import LINEAGE_TAG
    from orchestration.registry.version_tree import version_node
    from pipeline.lineage.publish import read_lineage
    from pipeline.lineage.show import leaf, tree_of

    if not _is_registered(ref):
        return tree_of(_resolve(ref, registry, store)[0])
    decisions, version = open_version(ref, registry, open_named(store))
    about = version_node(decisions, version)
    if LINEAGE_TAG not in version.tags:
        return replace(about, below=(*about.below, leaf("what made it", None)))
    found = _lineage_of(decisions.model, version, store)
    root = tree_of(read_lineage(found.store, found.digest))
    return replace(root, below=(about, *root.below))


def _is_registered(ref: str) -> bool:
    return "@" in ref and not Path(ref).exists()


def _resolve(ref: str, registry: str | None, store: str | None) -> tuple[Lineage, str | None]:
    """The lineage that a reference names, and the store that it came from; None of a run's folder."""
    from pipeline.artifacts.address import named_artifact
    from pipeline.lineage.collect import collect
    from pipeline.lineage.publish import read_lineage

    if Path(ref).is_dir():
        return collect(Path(ref)), None
    if _is_registered(ref):
        decisions, version = open_version(ref, registry, open_named(store))
        found = _lineage_of(decisions.model, version, store)
    else:
        found = named_artifact(ref, partial(open_named, store))
    return read_lineage(found.store, found.digest), found.store.backend.address


def _lineage_of(model: str, version: ModelVersion, store: str | None) -> Artifact:
    """The lineage of a version: in the store that is named, else where its weights are."""
    from orchestration.registry.store import LINEAGE_TAG
    from pipeline.artifacts.address import Artifact, located

    digest = version.tags.get(LINEAGE_TAG)
    if digest is None:
        raise ValueError(f"{model} version {version.version}: was registered without a lineage (--lineage)")
    place = located(version.uri)
    return Artifact(open_named(store or (place[0] if place else None)), digest)


def _as_rich(node: Node) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    from reward.offline.excerpt import printable

    tree = Tree(Text.assemble((printable(node.label), "bold"), " ", (printable(node.value), "cyan")))
    for one in node.below:
        tree.add(_as_rich(one))
    return tree
