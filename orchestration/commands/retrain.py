"""`march retrain`.

Exit codes: 0 there is a decision (promoted, waiting for approval, refused, inconclusive, nothing to change);
1 a stage failed for good, or too often; 2 for what a user can fix; 6 the budget is spent; 7 another process
or machine runs this job; 130 interrupted. In each case the same command goes on where it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.terminal.messages import error_console, fail
from pipeline.launch.signals import terminable

if TYPE_CHECKING:
    from orchestration.retrain.attempt import Place, Start, Watch
    from orchestration.retrain.job import Job
    from orchestration.retrain.lease import Lease
    from orchestration.retrain.records import Retraining
    from pipeline.artifacts.store import ArtifactStore

FAILED, OVER_BUDGET, BUSY, INTERRUPTED = 1, 6, 7, 130


def retrain(
    job: Annotated[str, typer.Argument(help="A job's YAML file, or the name of one that is shipped: tiny.")],
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. budget.hours=2."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run heavy stages as Ray Jobs there: http://host:8265"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the stages, what is done, and what would run.")
    ] = False,
    cause: Annotated[str, typer.Option(help="What started it; kept in MLflow.")] = "by hand",
) -> None:
    """Prepare, train, evaluate, publish, register, promote; each stage only if its result does not stand.

    Killed or failed, the same command goes on. Weights, rows, evaluations and what made them are in the
    artifact store (MARCH_ARTIFACTS), the stages in MLflow (MLFLOW_TRACKING_URI).
    """
    from orchestration.retrain.attempt import LeaseLostError, OverBudgetError, StageFailedError
    from orchestration.retrain.lease import BusyError
    from orchestration.retrain.transient import problem_of
    from orchestration.retrain.view import outcome_line

    try:
        given = _job(job, assignments, cluster)
        if dry_run:
            _dry_run(given)
        else:
            print(outcome_line(_run(given, cause), given.registry.policy))
    except StageFailedError as error:
        goes_on = "; the same command goes on"  # which the stage's line may say already
        fail(str(error).removesuffix(goes_on) + goes_on, code=error.problem.exit_code)
    except OverBudgetError as error:
        fail(str(error), code=OVER_BUDGET)
    except (BusyError, LeaseLostError) as error:
        fail(str(error), code=BUSY)
    except KeyboardInterrupt:
        fail("stopped; what is done stands, and the same command goes on", code=INTERRUPTED)
    except ValueError as error:
        if (problem := problem_of(error)).transient:
            fail(problem.line, code=FAILED)
        raise


def _job(name: str, assignments: list[str] | None, cluster: str | None) -> Job:
    """The job, with every address and folder as the environment has them now."""
    from orchestration.retrain.job import load_job
    from pipeline.artifacts.settings import settings_from_environment

    given = [*(assignments or ()), *([f"cluster.address={cluster}"] if cluster else ())]
    job = load_job(name, given)
    store = settings_from_environment(job.store.location, job.store.endpoint)
    location = store.location if store.is_s3 else str(Path(store.location).absolute())
    return job.model_copy(
        update={
            "store": job.store.model_copy(update={"location": location, "endpoint": store.endpoint}),
            "registry": job.registry.model_copy(
                update={"uri": job.registry.address, "history": job.registry.history.absolute()}
            ),
            "work": job.work.absolute(),
        }
    )


def _run(job: Job, cause: str) -> Retraining:
    from orchestration.retrain.lease import Lease, only_here
    from orchestration.retrain.loop import retrain as run_loop
    from orchestration.retrain.view import LiveWatch
    from orchestration.retrain.workshop import open_job_store

    with only_here(job.folder) as here, terminable(), LiveWatch(error_console(), job.budget) as watch:
        store = open_job_store(job)
        lease = Lease(store.backend, job.name, holder=here, period_s=job.lease_s)
        with lease.held():
            return run_loop(_place(job, store, lease, watch), cause=cause)


def _place(job: Job, store: ArtifactStore, lease: Lease | None, watch: Watch) -> Place:
    from orchestration.registry.desk import open_desk
    from orchestration.retrain.attempt import Place
    from orchestration.retrain.inputs import make_plan
    from orchestration.retrain.ledger import Ledger
    from orchestration.retrain.results import Results

    registry = job.registry
    return Place(
        plan=make_plan(job),
        desk=open_desk(registry.model, registry.address, registry.history),
        results=Results(store, job.name),
        ledger=Ledger(registry.address),
        lease=lease,
        start=_start(job),
        watch=watch,
    )


def _start(job: Job) -> Start:
    """Where stages run."""
    from orchestration.retrain.local_stage import LocalStage

    if job.cluster is None:
        return LocalStage
    from orchestration.retrain.ray_jobs import RayStage

    return lambda request: RayStage(request) if request.stage.is_heavy else LocalStage(request)


def _dry_run(job: Job) -> None:
    """Prints the stages; starts and writes nothing."""
    from rich.console import Console

    from orchestration.retrain.inputs import give
    from orchestration.retrain.loop import standing_stages
    from orchestration.retrain.view import LiveWatch, plan_table
    from orchestration.retrain.workshop import open_job_store

    place = _place(job, open_job_store(job), None, LiveWatch(error_console(), job.budget))
    given = give(place.plan, place.desk)
    left = place.ledger.find(job, given)
    parent = left.parent if left else given.parent
    Console().print(plan_table(given, parent, standing_stages(place, parent), left, job.budget))
