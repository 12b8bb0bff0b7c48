"""`march world`: the rows of a world whose truth is known, as files, and how many there are of what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands.options import set_option
from orchestration.terminal.messages import output_console

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.worlds.wiki.world import WikiWorld
    from pipeline.worlds.world import WorldRow


def world(
    out: Annotated[
        Path | None, typer.Option(help="Write train.jsonl and held_out.jsonl there; else only count.")
    ] = None,
    overrides: Annotated[
        list[str] | None, set_option(help="As data.wiki of a recipe, e.g. num_documents=5.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Print so many rows of the held-out split.")] = 0,
) -> None:
    """Make questions with known answers out of real paragraphs: count them, look at them, write them.

    A line has id, query and documents, as `march prepare jsonl` reads them, and asked: what the answers are.
    """
    from pipeline.settings.worlds import WikiSettings
    from pipeline.worlds.wiki.world import WikiWorld
    from pipeline.worlds.world import SPLITS
    from reward.assignments import assign
    from reward.offline.files import refuse_inputs, replace_file

    settings = WikiSettings.model_validate(assign({}, overrides or []))
    made = WikiWorld(settings)
    inputs = [file for file in (settings.train_file, settings.held_out_file) if file is not None]
    files = {split: out / f"{split}.jsonl" for split in SPLITS} if out is not None else {}
    for file in files.values():
        refuse_inputs(file, inputs)
    for split, file in files.items():
        replace_file(file, (f"{_line(row)}\n" for row in made.rows(split)))
    console = output_console(highlight=False)
    console.print(_counts(made))
    for row in made.rows("held_out")[:show]:
        console.print_json(_line(row))
    if out is not None:
        print(f"{out}: train.jsonl, held_out.jsonl")


def _line(row: WorldRow) -> str:
    tree = row.query.model_dump() | {"asked": [one.model_dump() for one in row.asked]}
    return json.dumps(tree, ensure_ascii=False)


def _counts(made: WikiWorld) -> Table:
    from pipeline.worlds.wiki.world import count_rows
    from pipeline.worlds.world import SPLITS
    from reward.offline.terminal import plain_table

    counts = {split: count_rows(made.rows(split)) for split in SPLITS}
    table = plain_table("", "rows that ask for", "train", "held out")
    for what in sorted(counts["train"].keys() | counts["held_out"].keys()):
        table.add_row(what, *(f"{counts[split][what]:,}" for split in SPLITS))
    table.add_row("in all", *(f"{counts[split].total():,}" for split in SPLITS), style="bold")
    return table
