"""Options that several commands have, each with its help."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

set_option = partial(typer.Option, "--set", metavar="KEY=VALUE")
Overrides = Annotated[list[str] | None, set_option(help="Override a key, e.g. ppo.kl_coef=0.01; repeatable.")]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model in the registry.")]
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
Policy = Annotated[Path | None, typer.Option(help="The gate policy in YAML.", show_default="vetted defaults")]
By = Annotated[str | None, typer.Option(help="Who decides.", show_default="MLflow's user, or the system's")]
Reason = Annotated[str, typer.Option(help="Kept with the decision.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Version number that waits.")]
