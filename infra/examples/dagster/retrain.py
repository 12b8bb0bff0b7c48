"""`march retrain` under Dagster: by the clock, and when the rows are other ones.

    MARCH=/opt/march/bin/march MARCH_JOB=/etc/march/shop.yaml MARCH_ROWS=/srv/rows dagster dev -f retrain.py

`march retrain` knows itself what is done already and goes on where it was, so a retry is the same command.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

MARCH, JOB = os.environ.get("MARCH", "march"), os.environ.get("MARCH_JOB", "tiny")
MANIFEST = Path(os.environ.get("MARCH_ROWS", "rows")) / "manifest.json"
BUSY, FOR_A_PERSON = 7, (2, 6)  # it runs elsewhere; settings to fix, budget spent


@dg.op(retry_policy=dg.RetryPolicy(max_retries=2, delay=600, backoff=dg.Backoff.EXPONENTIAL))
def retrain(context: dg.OpExecutionContext) -> None:
    """Prepares, trains, evaluates, publishes, registers, promotes."""
    cause = f"dagster run {context.run_id}"
    code = subprocess.run([MARCH, "retrain", JOB, "--cause", cause], check=False).returncode
    if code == BUSY:
        context.log.warning("the job runs already, here or on another machine")
    elif code != 0:
        raise dg.Failure(f"march retrain ended with {code}", allow_retries=code not in FOR_A_PERSON)


@dg.job(tags={"dagster/concurrency_key": f"march-{JOB}"})
def retraining() -> None:
    """One retraining."""
    retrain()


nightly = dg.ScheduleDefinition(
    job=retraining, cron_schedule="30 2 * * 1-5", execution_timezone="Europe/Berlin"
)


@dg.sensor(job=retraining, minimum_interval_seconds=300)
def new_rows(_context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One run for each content of the rows: Dagster starts no second one for the same key."""
    if MANIFEST.is_file():
        yield dg.RunRequest(run_key=json.loads(MANIFEST.read_text())["rows_sha256"])
    else:
        yield dg.SkipReason(f"{MANIFEST} is not there; march prepare writes it last")


defs = dg.Definitions(jobs=[retraining], schedules=[nightly], sensors=[new_rows])
