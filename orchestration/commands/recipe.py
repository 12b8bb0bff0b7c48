"""`march recipe`: the shipped recipes, and each setting of one with where its value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands.options import Overrides
from orchestration.terminal.messages import output_console

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

recipe = typer.Typer(
    name="recipe", no_args_is_help=True, help="Recipes: list those that are shipped, show what one comes to."
)


@recipe.command("list")
def list_recipes() -> None:
    """List the shipped recipes."""
    from pipeline.settings.recipe import load_recipe
    from pipeline.settings.tree import RECIPES

    found = ((path.stem, load_recipe(path.stem)) for path in sorted(RECIPES.glob("*.yaml")))
    rows = [
        (name, one.preset or "", one.model, str(one.data.path or f"{one.data.source} world"))
        for name, one in found
    ]
    hint = "`march recipe show NAME` shows one; `march init FOLDER` begins one of your own"
    _print(("name", "preset", "model", "rows"), rows, hint)


@recipe.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a recipe, or path of a YAML file.")],
    overrides: Overrides = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Those that nobody has set, too: with their defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all as JSON, by key.")] = False,
) -> None:
    """Show a recipe's settings: the value that holds, and whether file, preset or --set says so."""
    import json

    from pipeline.settings.origins import DEFAULT, settings_with_origins

    settings = settings_with_origins(name, overrides or [])
    if as_json:
        print(json.dumps({one.key: {"value": one.value, "from": one.origin} for one in settings}, indent=1))
        return
    rows = [
        (
            one.key,
            one.value if isinstance(one.value, str) else json.dumps(one.value, ensure_ascii=False),
            one.origin,
        )
        for one in settings
        if everything or one.origin != DEFAULT
    ]
    left_out = len(settings) - len(rows)
    hint = f"{left_out} more have their defaults; --all shows them" if left_out else ""
    _print(("setting", "value", "from"), rows, hint)


def _print(columns: Sequence[str], rows: Iterable[Sequence[str]], hint: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table
    from rich.text import Text

    heads = (Column(name, overflow="fold") for name in columns)
    table = Table(*heads, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    output_console(highlight=False).print(table, Text(hint, style="dim"))
