"""`march retrain --if-due` under Airflow: a DAG of one task, every ten minutes.

    cp march_retrain.py $AIRFLOW_HOME/dags/; export MARCH=/opt/march/bin/march MARCH_JOB=/etc/march/shop.yaml

The job's own `triggers` (times, new data, drift) say when a retraining starts, and the next look tries again
what failed: so there are no retries here. Its stages are in MLflow and in `march status`. They are no tasks
of Airflow: a second place that says what is done would have to be kept in step with the first.
"""

import os
import subprocess
from datetime import timedelta

import pendulum
from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

MARCH, JOB = os.environ.get("MARCH", "march"), os.environ.get("MARCH_JOB", "tiny")
DECIDED = {0: "promoted, or waits for approval", 3: "refused", 4: "inconclusive"}
NOTHING = {7: "the job runs already, here or on another machine", 8: "nothing is due"}


@dag(
    schedule=timedelta(minutes=10),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["march"],
)
def march_retrain() -> None:
    """Prepares, trains, evaluates, publishes, registers, promotes, if one of the job's triggers has come."""

    @task
    def retrain() -> str:
        code = subprocess.run([MARCH, "retrain", JOB, "--if-due"], check=False).returncode
        if code in NOTHING:
            raise AirflowSkipException(NOTHING[code])
        if code not in DECIDED:
            raise AirflowFailException(f"march retrain ended with {code}; its last line says why")
        return DECIDED[code]

    retrain()


march_retrain()
