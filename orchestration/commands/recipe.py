"""`march recipe`: the shipped recipes, and each setting of one with where its value comes from."""

from __future__ import annotations

from typing import Annotated

import typer

recipe = typer.Typer(
    name="recipe", no_args_is_help=True, help="Recipes: list those that are shipped, show what one comes to."
)


@recipe.command("list")
def list_recipes() -> None:
    """List the shipped recipes."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from pipeline.settings.recipe import load_recipe
    from pipeline.settings.tree import RECIPES

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "preset", "model", "rows"):
        table.add_column(column, overflow="fold")
    for path in sorted(RECIPES.glob("*.yaml")):
        one = load_recipe(path.stem)
        table.add_row(path.stem, one.preset, one.model, str(one.data.path or f"{one.data.source} world"))
    console = Console(highlight=False)
    console.print(table)
    console.print("[dim]`march recipe show NAME` shows one; `march init FOLDER` begins one of your own[/dim]")


@recipe.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a recipe, or path of a YAML file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as of training.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Those that nobody has set, too: with their defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all as JSON, by key.")] = False,
) -> None:
    """Show a recipe's settings: the value that holds, and whether file, preset or --set says so."""
    import json

    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pipeline.settings.origins import DEFAULT, settings_with_origins

    settings = settings_with_origins(name, overrides or [])
    if as_json:
        print(json.dumps({one.key: {"value": one.value, "from": one.origin} for one in settings}, indent=1))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("setting", "value", "from"):
        table.add_column(column, overflow="fold")
    shown = [one for one in settings if everything or one.origin != DEFAULT]
    for one in shown:
        value = one.value if isinstance(one.value, str) else json.dumps(one.value, ensure_ascii=False)
        table.add_row(one.key, escape(value), f"[dim]{escape(one.origin)}[/dim]")
    console = Console(highlight=False)
    console.print(table)
    if left_out := len(settings) - len(shown):
        console.print(f"[dim]{left_out} more have their defaults; --all shows them[/dim]")
