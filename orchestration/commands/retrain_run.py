"""What `march retrain` does: the loop at once, or if a trigger has come; its dry run, its end, its logs."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from orchestration.registry.open import open_decisions
from orchestration.retrain.inputs import make_plan
from orchestration.retrain.job import Job, job_file, load_job
from orchestration.retrain.lease import BusyError, Lease, lease_of, lock_file, only_here
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.local_stage import LOG_FILE, LocalStage
from orchestration.retrain.loop import Place, planned, retrain
from orchestration.retrain.ray_jobs import RayStage, is_living, jobs_of, open_client
from orchestration.retrain.records import Ending, Stage, StageRequest
from orchestration.retrain.results import Results, open_job_store
from orchestration.retrain.retention import prune_after
from orchestration.retrain.triggers import Cause
from orchestration.retrain.view import Watch, outcome_line, stages_table
from orchestration.schedule.due import Look, Report, look_around, report_of
from orchestration.schedule.status import missing_registry
from orchestration.terminal.messages import error_console, fail, output_console
from pipeline.artifacts.settings import settings_from_environment
from pipeline.artifacts.store import ArtifactStore
from pipeline.launch.signals import terminable
from pipeline.settings.recipe import load_recipe

# A decision is made once (docs/retraining.md), and what lies between costs nothing.
_REDONE = (Stage.PREPARE, Stage.TRAIN, Stage.EVALUATE, Stage.EVALUATE_CHAMPION)
_LIMIT_S = 120.0  # a command stops its stage, which may be a job of a cluster, and writes that down


def load(name: str, assignments: list[str] | None, cluster: str | None) -> Job:
    """The job, with every address and folder as the environment has them now.

    Its recipe and its gates are read, too: what cannot be used is refused before anything is written.
    """
    given = [*(assignments or ()), *([f"cluster.address={cluster}"] if cluster else ())]
    job = load_job(name, given)
    load_recipe(job.recipe.name, job.recipe_overrides)
    job.registry.read_policy()
    store = settings_from_environment(job.store.location, job.store.endpoint)
    location = store.location if store.is_s3 else str(Path(store.location).absolute())
    return job.model_copy(
        update={
            "store": job.store.model_copy(update={"location": location, "endpoint": store.endpoint}),
            "registry": job.registry.model_copy(update={"uri": job.registry.address}),
            "work": job.work.absolute(),
        }
    )


def demand_triggers(name: str, job: Job) -> None:
    """Raises ValueError for a job that nothing can make due."""
    if job.triggers.is_empty:
        raise ValueError(f"{name}: triggers: there is none; add cron, data or drift")


def retrain_now(name: str, job: Job, redo: str | None) -> Report:
    """Retrains whatever the triggers say; when it ends well, those that had come by now are settled."""
    if redo is not None and redo not in _REDONE:
        raise ValueError(f"--redo: {redo!r} is none of {', '.join(_REDONE)}")
    with only_here(job.folder) as here, terminable():
        store = open_job_store(job)
        lease = lease_of(job, here)
        with lease.held():
            look = _look(name, job, store)
            by_hand = look.model_copy(update={"seen": look.seen.model_copy(update={"causes": ()})})
            return _run(name, job, store, lease, by_hand, "by hand", Stage(redo) if redo else None)


def retrain_if_due(name: str, job: Job, submit: str | None) -> Report:
    """Retrains, or runs a command that starts it elsewhere, if a trigger has come.

    The triggers are looked at twice: before the lease, so that it costs nothing where nothing is due, and
    under it, where no other machine can have retrained meanwhile.
    """
    demand_triggers(name, job)
    with only_here(job.folder) as here, terminable():
        store = open_job_store(job)
        before = _look(name, job, store)
        if not before.is_due:
            return _not_due(name, before)
        if Cause.DATA in before.seen.causes and job.triggers.data is not None:
            time.sleep(job.triggers.data.settle_s)
        # What is submitted has this folder on a shared volume: its lease is not this process's.
        holder = here if submit is None else uuid.uuid4().hex
        lease = lease_of(job, holder)
        with lease.held() if submit is None else nullcontext(lease.demand_free()):
            look = _look(name, job, store).unless_changing(before)
            if not look.is_due:
                return _not_due(name, look)
            if submit is None:
                return _run(name, job, store, lease, look, look.why)
            make_plan(job)  # what the retraining would refuse is refused before machines are paid for
    if code := subprocess.call(shlex.split(submit), stdin=subprocess.DEVNULL):
        return report_of(name, Ending.FAILED, f"--submit: {submit!r} ended with {code}", look=look)
    return report_of(name, Ending.SUBMITTED, f"submitted: {look.why}", look=look)


def print_log(job: Job, stage: str) -> None:
    """Prints the log of a stage's last attempt.

    Raises:
        FileNotFoundError: there is none.
        ValueError: there is no such stage.
    """
    if stage not in list(Stage):
        raise ValueError(f"--logs: {stage!r} is none of {', '.join(Stage)}")
    text, place = _last_log(job, Stage(stage).result_name)
    print(f"march: {place}", file=sys.stderr)
    print(text, end="")


def cancel(job: Job) -> None:
    """Stops the command that runs the job here; where none does, jobs that one has left on the cluster."""
    found = list(_holders(job))
    for pid in found:
        os.kill(pid, signal.SIGTERM)  # as a terminal's Ctrl-C: in order, and written down
    until, stopped = time.monotonic() + _LIMIT_S, [f"process {pid}" for pid in found]
    while True:
        try:
            # Where no retraining has left a folder, none is made to say so.
            with only_here(job.folder) if job.folder.is_dir() else nullcontext(uuid.uuid4().hex) as here:
                if not found:
                    lease = lease_of(job, here)
                    lease.demand_free()
                    stopped = list(_stopped_jobs(job))
            break
        except BusyError as error:
            if not found:
                fail(f"{error}; cancel it there", code=Ending.RUNNING.code)
            if time.monotonic() > until:
                line = f"process {found[0]} has not stopped after {_LIMIT_S:.0f} s"
                fail(line, code=Ending.FAILED.code)
            time.sleep(0.2)
    goes_on = "; what is done is kept, and the same command goes on"
    print(f"stopped {', '.join(stopped)}{goes_on}" if stopped else f"nothing runs for {job.name}")


def dry_run(job: Job) -> None:
    """Prints the stages; starts and writes nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        if missing_registry(job.registry.address):  # MLflow makes a database that is not there
            empty = job.registry.model_copy(update={"uri": f"sqlite:///{scratch}/mlflow.db"})
            job = job.model_copy(update={"registry": empty})
        place = _place(job, open_job_store(job), None, Watch(error_console().status(""), job.budget))
        found = planned(place)
        start = f"version {found.parent.version}" if found.parent.version else found.parent.uri
        note = "reused: has a result; waiting: would run, unless its inputs have a result by then"
        if found.state.is_final:
            note = "it is finished: nothing is done again"
        title = f"{found.job}  {found.id[:8]}  starts from {start}"
        output_console().print(stages_table(found, job.budget, title=title, note=note))


def _look(name: str, job: Job, store: ArtifactStore) -> Look:
    history = Ledger(job.registry.address).retrainings(job.name)
    return look_around(job, job_file(name).absolute().parent, store.pointed, history, time.time())


def _not_due(name: str, look: Look) -> Report:
    return report_of(name, Ending.GAVE_UP if look.gave_up else Ending.NOT_DUE, str(look), look=look)


def _run(
    name: str, job: Job, store: ArtifactStore, lease: Lease, look: Look, cause: str, redo: Stage | None = None
) -> Report:
    with error_console().status("") as running:
        place = _place(job, store, lease, Watch(running, job.budget))
        done = retrain(place, cause=cause, seen=look.seen, redo=redo)
    prune_after(job, store, place.decisions)
    assert done.outcome is not None, "it ended"
    line = outcome_line(done, job, place.decisions.state())
    return report_of(name, done.outcome, line, look=look, retraining=done)


def _place(job: Job, store: ArtifactStore, lease: Lease | None, watch: Watch) -> Place:
    registry = job.registry
    ledger = Ledger(registry.address)  # before the registry, which makes no database
    return Place(
        plan=make_plan(job),
        decisions=open_decisions(registry.model, registry.address, store),
        results=Results(store, job.name),
        ledger=ledger,
        lease=lease,
        start=_start(job),
        watch=watch,
    )


def _start(job: Job) -> Callable[[StageRequest], LocalStage | RayStage]:
    if job.cluster is None:
        return LocalStage
    return lambda request: RayStage(request) if request.stage.is_heavy else LocalStage(request)


def _last_log(job: Job, stage: str) -> tuple[str, str]:
    files = job.folder.glob(f"{stage}-*/{LOG_FILE}")
    file = max(files, key=lambda one: one.stat().st_mtime, default=None)
    if file is not None:
        return file.read_text(errors="replace"), str(file)
    if job.cluster is not None:
        client = open_client(job.cluster.address)
        last = max(jobs_of(client, job, stage), key=lambda one: one.start_time or 0, default=None)
        if last is not None:
            return client.get_job_logs(last.submission_id), f"Ray job {last.submission_id}"
    raise FileNotFoundError(f"{job.folder}: holds no log of {stage}; it has not run here")


def _holders(job: Job) -> Iterator[int]:
    """Processes that have the job's lock open."""
    lock = lock_file(job.folder).resolve()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            has_it = any(one.readlink() == lock for one in (process / "fd").iterdir())
        except OSError:
            continue  # gone, or another user's
        if has_it and int(process.name) != os.getpid():
            yield int(process.name)


def _stopped_jobs(job: Job) -> Iterator[str]:
    if job.cluster is None:
        return
    client = open_client(job.cluster.address)
    for one in jobs_of(client, job):
        if is_living(one):
            client.stop_job(one.submission_id)
            yield f"Ray job {one.submission_id}"
