"""`march retrain --if-due` under Dagster, every ten minutes.

    MARCH=/opt/march/bin/march MARCH_JOB=/etc/march/shop.yaml dagster dev -f retrain.py

The job's own `triggers` (times, new data, drift) say when a retraining starts, and the next look tries again
what failed: so there are no sensor and no retries here.
"""

import os
import subprocess

import dagster as dg

MARCH, JOB = os.environ.get("MARCH", "march"), os.environ.get("MARCH_JOB", "tiny")
SAID = {
    0: "promoted, or waits for approval",
    3: "refused",
    4: "inconclusive",
    7: "the job runs already, here or on another machine",
    8: "nothing is due",
}


@dg.op
def retrain(context: dg.OpExecutionContext) -> None:
    """Prepares, trains, evaluates, publishes, registers, promotes, if one of the job's triggers has come."""
    code = subprocess.run([MARCH, "retrain", JOB, "--if-due"], check=False).returncode
    if code not in SAID:
        raise dg.Failure(f"march retrain ended with {code}; its last line says why", allow_retries=False)
    context.log.info(SAID[code])


@dg.job(tags={"dagster/concurrency_key": f"march-{JOB}"})
def retraining() -> None:
    """One look at the job, and the retraining if it is due."""
    retrain()


looks = dg.ScheduleDefinition(job=retraining, cron_schedule="*/10 * * * *")

defs = dg.Definitions(jobs=[retraining], schedules=[looks])
