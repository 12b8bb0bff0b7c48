"""`march schedule`: runs `march retrain JOB --if-due` again and again, until it is stopped."""

from __future__ import annotations

from typing import Annotated

import typer


def schedule(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Job files that have triggers.")],
    every: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="From one look at a job to the next.")
    ] = 300.0,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Of /healthz and /metrics; 0: any.")] = 5002,
    host: Annotated[
        str, typer.Option(help="Address of those; they are open, so leave loopback only behind a firewall.")
    ] = "127.0.0.1",
) -> None:
    """Run `march retrain JOB --if-due` for each job every few minutes, where no other timer does.

    systemd's timers, cron, a CronJob or Airflow do the same (infra/). SIGTERM stops retrainings in order; the
    next one goes on with them.
    """
    from orchestration.schedule.timer import serve

    serve(jobs, every_s=every, host=host, port=port)
