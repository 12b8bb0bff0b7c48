"""`march schedule`: starts retrainings when their triggers come, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestration.schedule.options import FOLDER, PORT, OnStop

FolderOption = Annotated[Path, typer.Option(metavar="DIR", help="Of its journals and its database.")]


def schedule(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Job files that have triggers.")],
    folder: FolderOption = FOLDER,
    on_stop: Annotated[
        OnStop, typer.Option(help="On SIGTERM: leave retrainings running, or wait for them.")
    ] = OnStop.LEAVE,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of /healthz and /metrics on loopback; 0: any.")
    ] = PORT,
) -> None:
    """Run a service that retrains jobs by the clock, by new data, or by drift of production answers.

    Each retraining is a `march retrain` in a process of its own. Triggers survive a restart of the service;
    what it missed meanwhile is found when it starts. `march status` shows all of it.
    """
    from orchestration.schedule.jobs import scheduled_jobs
    from orchestration.schedule.service import Service
    from reward.serving.logs import configure_logging

    configure_logging("auto")
    Service(scheduled_jobs(jobs), folder, on_stop=on_stop, port=port).run()
