"""The alert rules and the dashboard: Prometheus and Grafana can load them, and they ask only for what the
server exposes.

PromQL is read by a parser that follows Prometheus' own, the dashboard by Grafana's generated models. Where
`promtool` is installed (Debian: `prometheus`), it checks the rules and plays an attack through one.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

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
from tests.role_server import Start, start_servers  # noqa: F401

RULES = alert_rules("alerts.yaml")
DASHBOARD = read_dashboard("dashboard.json")
PANELS = panels_of(DASHBOARD)


@pytest.fixture
def exposed(start: Start) -> dict[str, set[str]]:
    """Labels by the name of each series of a server that has seen every kind of event once."""
    running = start()
    running.audit()
    running.audit("I do not know.")
    labels: dict[str, set[str]] = {}
    for line in running.http.get("/metrics").text.splitlines():
        if kind := re.fullmatch(r"# TYPE (\w+) (\w+)", line):
            suffixes = ("_bucket", "_sum", "_count") if kind[2] == "histogram" else ("",)
            labels |= {kind[1] + suffix: {"le"} if suffix == "_bucket" else set() for suffix in suffixes}
        elif series := re.match(r"(\w+)\{(.*)\}", line):
            labels.setdefault(series[1], set()).update(re.findall(r'(\w+)="', series[2]))
    return labels


def expressions() -> list[tuple[str, str]]:
    return [*asked_of(RULES, DASHBOARD), ("job", DASHBOARD["templating"]["list"][1]["query"])]


def test_alerts_and_panels_name_only_what_the_server_exposes(exposed: dict[str, set[str]]) -> None:
    asked = 0
    for where, expression in expressions():
        for name, selector in SELECTOR.findall(expression):
            asked += 1
            assert name in exposed, f"{where}: {name} is no metric of the server"
            labels = set(LABEL.findall(selector)) - {"job"}
            assert labels <= exposed[name], f"{where}: {name} has no label {labels - exposed[name]}"
    assert asked > 40


def test_what_has_not_happened_is_zero(start: Start) -> None:
    """A series that begins with its first event shows no rise, and an alert on that rise is silent."""
    text = start().http.get("/metrics").text
    assert 'march_files_refused{what="tokens"} 0.0' in text
    assert 'march_connections_refused_total{reason="slow"} 0.0' in text


def test_expressions_are_promql() -> None:
    for where, expression in expressions()[:-1]:  # the last is Grafana's own
        try:
            promql_parser.parse(promql(expression))
        except ValueError as error:
            raise AssertionError(f"{where}: {error}") from error


@needs_promtool
def test_prometheus_loads_alerts_and_panels(tmp_path: Path) -> None:
    names = [f"panel:{place}" for place in range(len(expressions()) - 1)]
    recorded = [
        {"record": name, "expr": promql(expression)}
        for name, (_, expression) in zip(names, expressions()[:-1], strict=True)
    ]
    panels = tmp_path / "panels.yaml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    for rules in (MONITORING / "alerts.yaml", panels):
        subprocess.run(["promtool", "check", "rules", str(rules)], check=True, capture_output=True)


@needs_promtool
def test_an_alert_tells_of_knocks_and_not_of_a_mistake(tmp_path: Path) -> None:
    def series(job: str, values: str) -> dict[str, str]:
        return {
            "series": f'march_requests_refused_total{{job="{job}",reason="token_wrong"}}',
            "values": values,
        }

    rule = next(rule for rule in RULES if rule["alert"] == "MarchWrongTokens")
    fired = {"exp_labels": {"job": "knocked", **rule["labels"]}, "exp_annotations": rule["annotations"]}
    test = {
        "interval": "1m",
        "input_series": [series("knocked", "0+10x30"), series("mistaken", "0 0 5 5x30")],
        "alert_rule_test": [{"eval_time": "30m", "alertname": rule["alert"], "exp_alerts": [fired]}],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(MONITORING / "alerts.yaml")], "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    assert {
        "MarchUnscored",
        "MarchNoClaimsRising",
        "MarchAgreementFalling",
        "MarchQueueFull",
        "MarchSamplerFailures",
        "MarchWrongTokens",
    } <= {rule["alert"] for rule in RULES}
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "action"} and rule["labels"]["severity"] in (
            "page",
            "ticket",
        )
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_the_dashboard_has_what_grafana_needs() -> None:
    def inside(panel: dict[str, Any]) -> bool:
        place = panel["gridPos"]
        return place["x"] + place["w"] <= 24 and place["w"] > 0 and place["h"] > 0

    assert DASHBOARD["uid"] and DASHBOARD["schemaVersion"] >= 36 and all(map(inside, DASHBOARD["panels"]))
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${source}" and panel["targets"] and panel["description"]


def test_grafanas_models_know_all_of_the_dashboard() -> None:
    assert faults_of(DASHBOARD) == []


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ("gridPos", "h", "tall"),
        ("options", "lgend", {}),
        ("targets", "expr", 5),
        ("fieldConfig", "default", {}),
    ],
)
def test_grafanas_models_find_what_is_wrong(place: str, key: str, value: Any) -> None:
    dashboard = json.loads(json.dumps(DASHBOARD))
    part = dashboard["panels"][1][place]
    (part[0] if isinstance(part, list) else part)[key] = value
    assert faults_of(dashboard)


def test_every_metric_of_ours_is_shown(exposed: dict[str, set[str]]) -> None:
    shown = {name for _, expression in expressions() for name, _ in SELECTOR.findall(expression)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    ours = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed if not name.endswith("_created")}
    assert ours == families
