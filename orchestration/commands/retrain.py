"""`march retrain`.

Exit codes: 0 promoted, waiting for approval, or nothing to change; 1 a stage failed for good, or too often;
2 for what a user can fix; 3 refused by a gate; 4 inconclusive; 6 the budget is spent; 7 another process or
machine runs this job; 8 nothing is due (`--if-due`); 130 interrupted. After 1, 2, 6 and 130 the same command
goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands.options import set_option
from orchestration.terminal.messages import fail, warn_ignored

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestration.schedule.due import Report

_DECIDED = (0, 3, 4, 8)  # codes of what is no error


def retrain(
    job: Annotated[
        str, typer.Argument(help="A job's file or folder, or the name of a shipped one: tiny, smollm2.")
    ],
    assignments: Annotated[list[str] | None, set_option(help="Override a key, e.g. budget.hours=2.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run heavy stages as Ray Jobs there: http://host:8265"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the stages, what is done, and what would run.")
    ] = False,
    if_due: Annotated[
        bool, typer.Option("--if-due", help="Only if one of the job's triggers has come; for any scheduler.")
    ] = False,
    redo: Annotated[
        str | None,
        typer.Option(
            metavar="STAGE",
            help="Make a stage again though it has a result: prepare, train, evaluate, evaluate_champion.",
        ),
    ] = None,
    submit: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --if-due: what is run instead when it is due; it starts the same command elsewhere.",
        ),
    ] = None,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Stop what runs for the job here, or what it has left on its cluster."),
    ] = False,
    logs: Annotated[
        str | None, typer.Option(metavar="STAGE", help="Print the log of a stage's last attempt: train, ...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what happened as JSON.")] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="End with 0 also where nothing failed: 3, 4, 7 and 8.")
    ] = False,
) -> None:
    """Prepare, train, evaluate, publish, register, promote; each stage only if it has no valid result.

    Killed or failed, the same command goes on. Weights, rows, evaluations and what made them are in the
    artifact store (MARCH_ARTIFACTS), the stages in MLflow (MLFLOW_TRACKING_URI).
    """
    from orchestration.commands import retrain_run as does

    if cancel:
        if dry_run:
            raise ValueError("--dry-run: writes nothing, and --cancel stops what runs; leave one of them out")
        return does.cancel(does.load(job, assignments, cluster))
    if logs is not None:
        return does.print_log(does.load(job, assignments, cluster), logs)
    if submit is not None and not if_due:
        raise ValueError("--submit: needs --if-due; add it")
    if redo is not None and if_due:
        raise ValueError("--redo: is for a retraining by hand; leave --if-due out")
    if dry_run:
        warn_ignored("beside --dry-run", if_due=if_due, redo=redo, submit=submit, json=as_json)
        return does.dry_run(does.load(job, assignments, cluster))

    def act() -> Report:
        loaded = does.load(job, assignments, cluster)
        return does.retrain_if_due(job, loaded, submit) if if_due else does.retrain_now(job, loaded, redo)

    report = _report_of(act, job, raises=not as_json)
    code = 0 if exit_zero and report.ending.is_well else report.code
    if as_json:
        print(report.model_dump_json())
    if report.code not in _DECIDED:
        fail(report.line, code=code)
    if not as_json:
        print(report.line)
    raise typer.Exit(code)


def _report_of(act: Callable[[], Report], job: str, *, raises: bool) -> Report:
    """How a retraining ended, or why it could not; `raises` what a user can fix, as all commands do."""
    from orchestration.retrain.lease import BusyError
    from orchestration.retrain.loop import EndedEarlyError
    from orchestration.retrain.records import Ending
    from orchestration.retrain.transient import problem_of
    from orchestration.schedule.due import report_of

    try:
        return act()
    except EndedEarlyError as error:
        line, goes_on = str(error), "; the same command goes on"  # which the line may say already
        if error.ending in (Ending.FAILED, Ending.FIX):
            line = line.removesuffix(goes_on) + goes_on
        return report_of(job, error.ending, line, retraining=error.retraining)
    except BusyError as error:
        return report_of(job, Ending.RUNNING, str(error))
    except KeyboardInterrupt:
        line = "stopped; what is done is kept, and the same command goes on"
        return report_of(job, Ending.INTERRUPTED, line)
    except (ValueError, OSError) as error:
        problem = problem_of(error)
        if raises and not problem.transient:
            raise
        return report_of(job, Ending.FAILED if problem.transient else Ending.FIX, problem.line)
