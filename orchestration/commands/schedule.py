"""`march schedule`: a timer. `march status`: retrainings, triggers, who is champion, what waits."""

from pathlib import Path
from typing import Annotated

import typer

from orchestration.terminal.messages import output_console, warn_ignored

_UNREADABLE = 2


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
    from orchestration.commands.retrain_run import demand_triggers, load
    from orchestration.schedule.timer import serve

    loaded = {name: load(name, None, None) for name in jobs}
    for name, job in loaded.items():
        demand_triggers(name, job)
    serve({name: job.name for name, job in loaded.items()}, every_s=every, host=host, port=port)


def status(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Job files.")],
    html: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show the state of retrainings: stages, triggers, champion, budgets, and what waits for approval.

    It ends with 2 where MLflow or the decisions could not be read.
    """
    import os

    from orchestration.schedule.status import print_status, read_status
    from orchestration.schedule.status_page import status_page
    from reward.offline.files import replace_file

    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # a look does not wait for a server
    if as_json:
        warn_ignored("beside --json", html=html)
    found = read_status(jobs)
    if as_json:
        print(found.model_dump_json(indent=2))
    elif html is not None:
        replace_file(html, status_page(found))
        print(html)
    else:
        print_status(found, output_console())
    if any(job.problems for job in found.jobs):
        raise SystemExit(_UNREADABLE)
