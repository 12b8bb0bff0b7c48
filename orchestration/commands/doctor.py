"""`march doctor`.

Exit codes: 0 nothing failed (warnings may stand); 1 something failed; 2 for an option that cannot be used.
"""

from pathlib import Path
from typing import Annotated

import typer

from orchestration.commands.options import Overrides
from orchestration.terminal.messages import output_console, warn_ignored


def doctor(
    recipe: Annotated[
        str | None, typer.Option(metavar="RECIPE", help="Say whether this recipe fits here.")
    ] = None,
    overrides: Overrides = None,
    run_dir: Annotated[Path, typer.Option(help="Where runs go; its disk is looked at.")] = Path("runs"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="This check alone; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check this machine, its packages and the artifact store (MARCH_ARTIFACTS); say what to fix.

    Exit code 1 when something failed.
    """
    import os
    import socket
    from datetime import UTC, datetime

    from orchestration.doctor.checks import run_sections
    from orchestration.doctor.report import Report, print_report
    from pipeline.artifacts.settings import settings_from_environment
    from pipeline.settings.recipe import load_recipe
    from reward.provenance import package_version

    if recipe is None:
        warn_ignored("without --recipe", set=overrides)
    asked = load_recipe(recipe, overrides or []) if recipe else None
    debug = bool(os.environ.get("MARCH_DEBUG"))
    report = Report(
        version=package_version(),
        host=socket.gethostname(),
        at=datetime.now(UTC),
        sections=run_sections(settings_from_environment(), run_dir, asked, only=only or [], debug=debug),
    )
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        print_report(report, output_console(highlight=False))
    raise typer.Exit(report.exit_code)
