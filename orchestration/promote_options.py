"""The options of the registry's commands, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model in the registry.")]
Uri = Annotated[str, typer.Argument(metavar="URI", help="Folder of the weights, or where they are: s3://...")]
Sha256 = Annotated[
    str | None, typer.Option(help="Digest of the weights.", show_default="worked out from a folder")
]
Lineage = Annotated[str | None, typer.Option(help="Digest of the lineage record.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="Kept with the version.")]
RegistryUri = Annotated[
    str | None,
    typer.Option(
        "--registry",
        envvar="MLFLOW_TRACKING_URI",
        help="MLflow server, or sqlite:///FILE.",
        show_default=False,
    ),
]
History = Annotated[Path, typer.Option(help="Folder of the history files.")]
Policy = Annotated[Path | None, typer.Option(help="The gate policy in YAML.", show_default="vetted defaults")]
By = Annotated[str | None, typer.Option(help="Who decides.", show_default="MLflow's user, or the system's")]
Reason = Annotated[str, typer.Option(help="Kept in the history.")]
Candidate = Annotated[str, typer.Option(metavar="REF", help="Version number or @ALIAS.")]
Evaluation = Annotated[Path, typer.Option(help="Folder of the candidate's evaluation.")]
ChampionEvaluation = Annotated[
    Path | None, typer.Option(help="Folder of the champion's; none only for the first champion.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what the gates say; change nothing.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Version number that waits.")]
Models = Annotated[list[str] | None, typer.Argument(metavar="[MODEL]...", help="All, if none is named.")]
Reference = Annotated[str, typer.Argument(metavar="MODEL@REF", help="Model, and version number or alias.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")]
ShowCommand = Annotated[bool, typer.Option("--print", help="Print vLLM's command; do not run it.")]
