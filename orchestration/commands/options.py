"""Options that several commands have, each with its help."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

set_option = partial(typer.Option, "--set", metavar="KEY=VALUE")
Overrides = Annotated[list[str] | None, set_option(help="Override a key, e.g. ppo.kl_coef=0.01; repeatable.")]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model in the registry.")]
Weights = Annotated[
    str,
    typer.Argument(
        metavar="WEIGHTS", help="Their folder, which is put into the store, or REF of a model or a lineage."
    ),
]
RegistryUri = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        metavar="URI",
        envvar="MLFLOW_TRACKING_URI",
        help="MLflow server, or sqlite:///FILE.",
        show_default=False,
    ),
]
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="Write MLflow's aliases and tags again, as it was decided.")
]
Policy = Annotated[Path | None, typer.Option(help="The gate policy in YAML.", show_default="vetted defaults")]
By = Annotated[str | None, typer.Option(help="Who decides.", show_default="MLflow's user, or the system's")]
Reason = Annotated[str, typer.Option(help="Kept with the decision.")]
Candidate = Annotated[str, typer.Option(metavar="REF", help="Version number or @ALIAS.")]
Evaluation = Annotated[str, typer.Option(metavar="DIR|REF", help="The candidate's, or artifact:REF.")]
ChampionEvaluation = Annotated[
    str | None,
    typer.Option(metavar="DIR|REF", help="The champion's, the same way; none only for the first champion."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what the gates say; change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Version number that waits.")]
Models = Annotated[list[str] | None, typer.Argument(metavar="[MODEL]...", help="All, if none is named.")]
Reference = Annotated[str, typer.Argument(metavar="MODEL@REF", help="Model, and version number or alias.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")]
ShowCommand = Annotated[bool, typer.Option("--print", help="Print vLLM's command; do not run it.")]
