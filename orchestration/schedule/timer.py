"""`march schedule`: a timer for a machine without one. It runs `march retrain JOB --if-due`, again and again.

It decides nothing and keeps nothing: it may be killed, started twice, or replaced by systemd's timers or
cron. Its figures, at /metrics, are those of the commands' reports. Their label is `retrain_job`: Prometheus
has a label `job` of its own, which would hide it.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from prometheus_client import Counter, Gauge, start_http_server
from pydantic import ValidationError

from orchestration.schedule.due import Look, Report

_MARCH = (sys.executable, "-c", "from orchestration.cli import main; main()")
_TURN_S = 1.0
_RETRAINS_AFTER_S = 60.0  # a command that only looks has ended by then
_JOB = ["retrain_job"]
RUNNING = Gauge("march_retraining_running", "A retraining is running", _JOB)
FAILURES = Gauge("march_retraining_failures", "Failures in a row", _JOB)
NEXT = Gauge("march_retraining_next_seconds", "Next time by the clock, since 1970", _JOB)
DUE = Gauge(
    "march_retraining_due", "A trigger has come, and no retraining has ended for it", [*_JOB, "cause"]
)
UNREADABLE = Gauge("march_trigger_unreadable", "What a trigger looks at cannot be read", [*_JOB, "cause"])
RATE = Gauge("march_drift_refuted_rate", "Of the last look's answers", _JOB)
LOW = Gauge("march_drift_refuted_low", "Lower bound of that rate", _JOB)
ENDED = Counter("march_retrainings", "Retrainings that ended", [*_JOB, "result"])


def take_turns(job: str, label: str, every_s: float, stop: threading.Event) -> None:
    """Runs a job's commands, one every so many seconds, until `stop` is set; what runs then ends in order."""
    for result in ("ended", "failed"):
        ENDED.labels(label, result)  # shown as 0, so that the first one is a rise

    def show_why() -> None:  # its own report comes when it ends
        RUNNING.labels(label).set(True)
        show_triggers(label, _look(_printed([*_MARCH, "status", job, "--json"], stop)))

    said = ""
    while not stop.is_set():
        began = time.monotonic()
        printed = _printed([*_MARCH, "retrain", job, "--if-due", "--json"], stop, on_retraining=show_why)
        line = note(label, printed)
        if line != said:  # most looks find nothing new
            say(f"{label}: {line}")
            said = line
        RUNNING.labels(label).set(False)
        stop.wait(began + every_s - time.monotonic())


def _printed(
    command: Sequence[str], stop: threading.Event, *, on_retraining: Callable[[], None] = lambda: None
) -> str:
    """What a command prints; it is ended in order when `stop` is set."""
    began, has_told = time.monotonic(), False
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    while True:
        try:
            return process.communicate(timeout=_TURN_S)[0]
        except subprocess.TimeoutExpired:
            if stop.is_set():
                process.terminate()
                return process.communicate()[0]
            if not has_told and time.monotonic() - began > _RETRAINS_AFTER_S:
                on_retraining()
                has_told = True


def _look(status: str) -> Look | None:
    """The look at a job's triggers in what `march status --json` prints; None: it could not be made."""
    try:
        return Look.model_validate(json.loads(status)["jobs"][0]["look"])
    except ValueError:
        return None


def say(line: str) -> None:
    """A line for whoever reads the log."""
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {line}", file=sys.stderr, flush=True)


def note(job: str, printed: str) -> str:
    """Takes figures from the last line that a command has printed, and returns what it says.

    One that was killed has printed none.
    """
    try:
        report = Report.model_validate_json(printed.strip().rpartition("\n")[2])
    except ValidationError:
        FAILURES.labels(job).set(1)
        return "ended without a report; its own lines are above"
    failures = report.look.num_failures if report.look and not report.retraining else 0
    failed = report.code != 0 and not report.ending.is_well
    FAILURES.labels(job).set(max(failures, failed))
    if report.retraining:  # each look at a job that gave up would count, too
        ENDED.labels(job, "failed" if failed else "ended").inc()
    show_triggers(job, report.look, settled=report.retraining is not None and not failed)
    return report.line


def show_triggers(job: str, look: Look | None, *, settled: bool = False) -> None:
    """Takes figures from a look; `settled`: a retraining for all that it found has ended well since."""
    for one in look.triggers if look else ():
        DUE.labels(job, one.cause).set(one.is_due and not settled)
        UNREADABLE.labels(job, one.cause).set(bool(one.problem))
        if one.next_at is not None:
            NEXT.labels(job).set(one.next_at)
        if one.drift is not None and one.drift.rate is not None:
            RATE.labels(job).set(one.drift.rate)
        if one.drift is not None and one.drift.low is not None:
            LOW.labels(job).set(one.drift.low)


def serve(jobs: Mapping[str, str], *, every_s: float, host: str, port: int) -> None:
    """Takes turns until SIGTERM or SIGINT; then stops what is running in order.

    `jobs` are the jobs' files with their own names: files of several are often called alike.

    Raises:
        ValueError: the address cannot be listened on.
    """
    try:
        server, _ = start_http_server(port, host)
    except OSError as error:
        fix = "stop what uses it, or set another --port or --host"
        raise ValueError(f"--port: cannot listen on {host}:{port} ({error.strerror}); {fix}") from error
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    say(f"looks at {', '.join(jobs.values())} every {every_s:g} s; {host}:{server.server_port}/metrics")
    turns = [threading.Thread(target=take_turns, args=(*job, every_s, stop)) for job in jobs.items()]
    for one in turns:
        one.start()
    while all(one.is_alive() for one in turns) and not stop.wait(_TURN_S):
        pass
    stop.set()
