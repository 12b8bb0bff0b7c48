"""The alert rules and the dashboard: they parse, and ask only for what the server exposes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.role_server import Start, start_servers  # noqa: F401

MONITORING = Path(__file__).parents[1] / "infra" / "monitoring"
GROUPS = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SELECTOR = re.compile(r"(march_\w+)(?:\{([^}]*)\})?")
LABELLED_LATER = ("march_connections_refused_total", "march_certificates_read_total")  # by their first event
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


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
    found = [(rule["alert"], rule["expr"]) for rule in RULES]
    found += [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
    return [*found, ("job", DASHBOARD["templating"]["list"][1]["query"])]


def test_alerts_and_panels_name_only_what_the_server_exposes(exposed: dict[str, set[str]]) -> None:
    asked = 0
    for where, expression in expressions():
        for name, selector in SELECTOR.findall(expression):
            asked += 1
            assert name in exposed, f"{where}: {name} is no metric of the server"
            labels = set(LABEL.findall(selector)) - {"job"}
            if name not in LABELLED_LATER:
                assert labels <= exposed[name], f"{where}: {name} has no label {labels - exposed[name]}"
    assert asked > 40


def test_expressions_are_balanced() -> None:
    for where, expression in expressions():
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), where


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    assert {
        "MarchUnscored",
        "MarchNoClaimsRising",
        "MarchAgreementFalling",
        "MarchQueueFull",
        "MarchSamplerFailures",
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


def test_every_metric_of_ours_is_shown(exposed: dict[str, set[str]]) -> None:
    shown = {name for _, expression in expressions() for name, _ in SELECTOR.findall(expression)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    ours = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed if not name.endswith("_created")}
    assert ours == families
