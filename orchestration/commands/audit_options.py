"""The options of `march audit`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

BELOW_THRESHOLD = 3  # exit code
_MODEL, _PEOPLE = "With a model", "For people and for CI"

Source = Annotated[
    Path, typer.Argument(metavar="IN", help="Rows: a .jsonl, .csv or .parquet file, or RAGTruth's folder.")
]
Out = Annotated[Path | None, typer.Option(help="Verdicts, one a row, in order; resumed if it is there.")]
Format = Annotated[
    Literal["jsonl", "csv", "parquet", "ragtruth"] | None,
    typer.Option("--format", help="What IN is.", show_default="by its name"),
]
Limit = Annotated[int | None, typer.Option(min=1, help="First rows only.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start again instead of resuming.")]
MaxDocumentsChars = Annotated[
    int | None, typer.Option(help="Most characters of a row's documents.", show_default="1000000")
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other setting, such as structured=none, early_stop=true, checks=[yes_no_fields] or "
        "checker.temperature=0.2 (reward/config.py, AuditConfig).",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model folder or name for vLLM here, or URL of an OpenAI-compatible server.",
        rich_help_panel=_MODEL,
    ),
]
ModelName = Annotated[
    str | None, typer.Option(help="The model's name, when --model is a URL.", rich_help_panel=_MODEL)
]
Prompts = Annotated[
    str | None,
    typer.Option(
        help="full, compact, or a YAML file like them.", show_default="full", rich_help_panel=_MODEL
    ),
]
Voters = Annotated[
    int | None,
    typer.Option(help="Independent checks of each claim; odd.", show_default="3", rich_help_panel=_MODEL),
]
Seed = Annotated[
    int | None,
    typer.Option(help="The same seed and model give the same verdicts.", rich_help_panel=_MODEL),
]
Concurrency = Annotated[int, typer.Option(min=1, max=1024, help="Audits at once.", rich_help_panel=_MODEL)]
Html = Annotated[Path | None, typer.Option(help="Write a page to read, too.", rich_help_panel=_PEOPLE)]
Compare = Annotated[
    Path | None,
    typer.Option(
        metavar="OTHER",
        help="Show what changed since another audit, by its verdicts.",
        rich_help_panel=_PEOPLE,
    ),
]
Review = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="Write the claims for people to check; `march review` scores the filled file.",
        rich_help_panel=_PEOPLE,
    ),
]
Explain = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="Show one row's whole path instead of auditing all.", rich_help_panel=_PEOPLE
    ),
]
FailUnder = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="SHARE",
        help=f"Exit with code {BELOW_THRESHOLD} when a smaller share of all rows is SUPPORTED; rows that are "
        "NO_CLAIMS or UNSCORED count against it.",
        rich_help_panel=_PEOPLE,
    ),
]
