"""`march doctor`.

Exit codes: 0 nothing failed (warnings may stand); 1 something failed; 2 for an option that cannot be used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestration.doctor.catalogue import Asked
    from orchestration.doctor.records import Report


def doctor(
    cluster: Annotated[
        str | None, typer.Option(metavar="URL", help="Check a Ray cluster: http://host:8265.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(metavar="RECIPE", help="Say whether this recipe fits there.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe."),
    ] = None,
    reward: Annotated[str | None, typer.Option(metavar="URL", help="A reward server to ask.")] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="URL", help="A vLLM, or OpenAI-compatible, server to ask.")
    ] = None,
    run_dir: Annotated[Path, typer.Option(help="Where runs go; its disk is looked at.")] = Path("runs"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="This check alone; may be repeated.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that a check may take.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check this machine, or a cluster, and the servers around; say what to fix.

    MLflow is MLFLOW_TRACKING_URI's, the store MARCH_ARTIFACTS's. What is not configured is skipped.

    Exit code 1 when something failed.
    """
    from orchestration.terminal.messages import warn_ignored

    if recipe is None:
        warn_ignored("without --recipe", set=overrides)
    asked = _asked(cluster, recipe, overrides or [], reward, engine, run_dir)
    report = _report(asked, only or [], timeout)
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        from rich.console import Console

        from orchestration.doctor.view import print_report

        print_report(report, Console(highlight=False))
    raise typer.Exit(report.exit_code)


def _asked(
    cluster: str | None,
    recipe: str | None,
    overrides: list[str],
    reward: str | None,
    engine: str | None,
    run_dir: Path,
) -> Asked:
    import os

    from orchestration.doctor.asking import require_url
    from orchestration.doctor.catalogue import Asked
    from orchestration.doctor.mlflow_server import VARIABLE
    from pipeline.artifacts.settings import settings_from_environment
    from pipeline.settings.recipe import load_recipe

    return Asked(
        store=settings_from_environment(),
        run_dir=run_dir,
        mlflow=os.environ.get(VARIABLE) or None,
        cluster=require_url("--cluster", cluster) if cluster else None,
        reward=require_url("--reward", reward) if reward else None,
        engine=require_url("--engine", engine) if engine else None,
        recipe=load_recipe(recipe, overrides) if recipe else None,
    )


def _report(asked: Asked, only: list[str], timeout_s: float) -> Report:
    import os
    import socket
    from datetime import UTC, datetime

    from orchestration.doctor.catalogue import sections
    from orchestration.doctor.checks import run_sections
    from orchestration.doctor.records import Report
    from reward.provenance import package_version

    return Report(
        version=package_version(),
        host=socket.gethostname(),
        at=datetime.now(UTC),
        sections=run_sections(
            sections(asked), only=only, timeout_s=timeout_s, debug=bool(os.environ.get("MARCH_DEBUG"))
        ),
    )
