"""Alerts and dashboard of the schedule and of the stack: they ask only for what is exposed, and all of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import Counter, Gauge

from orchestration.schedule import timer
from tests.monitoring import (
    LABEL,
    MONITORING,
    SELECTOR,
    alert_rules,
    asked_of,
    faults_of,
    needs_promtool,
    panels_of,
    promql,
    read_dashboard,
)

SCHEDULE, STACK = alert_rules("alerts-schedule.yaml"), alert_rules("alerts-stack.yaml")
DASHBOARD = read_dashboard("dashboard-schedule.json")
ASKED = asked_of([*SCHEDULE, *STACK], DASHBOARD)


@pytest.fixture
def exposed() -> dict[str, set[str]]:
    """Labels by the name of each series of the timer."""
    found = [one for one in vars(timer).values() if isinstance(one, Gauge | Counter)]
    return {one._name + ("_total" if isinstance(one, Counter) else ""): set(one._labelnames) for one in found}


def test_alerts_and_panels_ask_for_what_the_schedule_exposes_and_for_all_of_it(
    exposed: dict[str, set[str]],
) -> None:
    found = [(where, *selected) for where, expression in ASKED for selected in SELECTOR.findall(expression)]
    for where, name, selector in found:
        assert name in exposed, f"{where}: {name} is no metric of the schedule"
        assert set(LABEL.findall(selector)) <= exposed[name], where
    assert {name for _, name, _ in found} == set(exposed)


def test_no_label_of_ours_is_one_of_prometheus(exposed: dict[str, set[str]]) -> None:
    """It renames a scraped `job` or `instance`, and an expression that names it finds nothing."""
    assert not {"job", "instance"} & set().union(*exposed.values())


def test_expressions_are_promql() -> None:
    for where, expression in ASKED:
        try:
            promql_parser.parse(promql(expression))
        except ValueError as error:
            raise AssertionError(f"{where}: {error}") from error


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    for rule in [*SCHEDULE, *STACK]:
        assert set(rule["annotations"]) == {"summary", "action"} and "for" in rule
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_grafanas_models_know_all_of_the_dashboard() -> None:
    assert faults_of(DASHBOARD) == []
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels_of(DASHBOARD):
        assert panel["datasource"]["uid"] == "${source}" and panel["description"]


def played(tmp_path: Path, alert: str, series: dict[str, str], at: str, **labels: str) -> None:
    """Plays series through the alerts and expects one with these labels; without labels, none of its name."""
    file = "alerts-stack.yaml" if alert in {rule["alert"] for rule in STACK} else "alerts-schedule.yaml"
    rule: dict[str, Any] = next(one for one in [*SCHEDULE, *STACK] if one["alert"] == alert)
    fired = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": rule["annotations"]}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": [fired] if labels else []}],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(MONITORING / file)], "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_a_trigger_that_starts_nothing_is_told_and_one_whose_retraining_runs_is_not(tmp_path: Path) -> None:
    series = {
        'march_retraining_due{retrain_job="stuck",cause="cron"}': "1x500",
        'march_retraining_running{retrain_job="stuck"}': "0x500",
        'march_retraining_due{retrain_job="busy",cause="cron"}': "1x500",
        'march_retraining_running{retrain_job="busy"}': "1x500",
    }
    played(tmp_path, "MarchRetrainingDoesNotStart", series, "7h", retrain_job="stuck")


@needs_promtool
def test_drift_is_told_until_a_retraining_for_it_has_ended(tmp_path: Path) -> None:
    drift = {'march_retraining_due{retrain_job="shop",cause="drift"}': "0x9 1x29 0x30"}
    played(tmp_path, "MarchDrift", drift, "20m", retrain_job="shop")
    played(tmp_path, "MarchDrift", drift, "45m")


@needs_promtool
def test_a_service_that_is_not_reached_and_a_disk_that_fills_are_told(tmp_path: Path) -> None:
    played(tmp_path, "MarchTargetDown", {'up{job="s3"}': "1 0x20", 'up{job="vllm"}': "1x20"}, "10m", job="s3")
    space = {
        'SeaweedFS_volumeServer_resource{name="/data",type="all",job="s3"}': "100x30",
        'SeaweedFS_volumeServer_resource{name="/data",type="avail",job="s3"}': "9x30",
    }
    played(tmp_path, "MarchStoreFilling", space, "20m", name="/data", job="s3")
