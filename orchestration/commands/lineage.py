"""`march model lineage`: what made a model. `march model reproduce`: the commands that make it again.

REF is a run's folder, MODEL@ALIAS or MODEL@VERSION of the registry, a pointer of the artifact store, or a
digest. Of a registered version it is shown, too, who promoted it, when, and by which gates.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import options
from orchestration.commands.artifacts import StoreOption, byte_progress, open_named
from orchestration.registry.open import open_version
from orchestration.terminal.messages import output_console, warn_ignored

if TYPE_CHECKING:
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
    from dataclasses import replace

    from pipeline.lineage.show import as_rich, leaf, render_html, tree_of
    from reward.offline.files import replace_file

    if publish:
        from pipeline.lineage.publish import link_run, publish_run

        opened, run_dir = open_named(store), Path(ref)
        known = opened.resolve(parent) if parent else None
        with byte_progress("storing") as bar:
            given = evaluation or []
            digest = publish_run(opened, run_dir, evaluations=given, parent=known, advance=bar.advance)
        print(digest)
        if link:
            link_run(opened, run_dir, digest)
        return
    warn_ignored("without --publish", evaluation=evaluation, parent=parent)
    made, _, about = _find(ref, registry, store)
    root = tree_of(made) if made else leaf("what made it", None)
    if about is not None and made is not None:
        root = replace(root, below=(about, *root.below))
    elif about is not None:
        root = replace(about, below=(*about.below, root))
    if html is None:
        output_console().print(as_rich(root))
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
    from pipeline.lineage.publish import read_lineage
    from pipeline.lineage.show import commands, write_recipe

    made, location, _ = _find(ref, registry, store)
    if made is None:
        raise ValueError(f"{ref}: was registered without a lineage, so nothing says how it was made")
    folder = out or Path(f"reproduce-{re.sub(r'[^A-Za-z0-9._-]', '-', made.run)}")
    write_recipe(made, folder)
    before = read_lineage(open_named(location), made.parent.lineage) if made.parent.lineage else None
    parent = before.model.artifact if before and before.model else None
    print("\n".join(commands(made, folder, store=location, parent=parent)))


def _find(
    ref: str, registry: str | None, store: str | None
) -> tuple[Lineage | None, str | None, Node | None]:
    """A lineage, the store that it is in, and what is known of the registered version that it is of.

    A version's lineage is in the store that is named, else where its weights are; it may have none.
    """
    from orchestration.commands.promote_view import version_node
    from orchestration.registry.store import LINEAGE_TAG
    from pipeline.artifacts.address import Artifact, located, named_artifact
    from pipeline.lineage.publish import collect, read_lineage

    if Path(ref).is_dir():
        return collect(Path(ref)), None, None
    about = None
    if "@" not in ref or Path(ref).exists():
        found = named_artifact(ref, partial(open_named, store))
    else:
        decisions, version = open_version(ref, registry, open_named(store))
        about, digest = version_node(decisions, version), version.tags.get(LINEAGE_TAG)
        if digest is None:
            return None, None, about
        place = located(version.uri)
        found = Artifact(open_named(store or (place[0] if place else None)), digest)
    return read_lineage(found.store, found.digest), found.store.backend.address, about
