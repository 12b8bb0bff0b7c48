"""Shared by the tests of alerts and dashboards: what they ask, and whether Grafana knows all of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import typing
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

import pydantic
import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

MONITORING = Path(__file__).parents[1] / "infra" / "monitoring"
SELECTOR = re.compile(r"(march_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
# The gate installs it, and fails without it.
needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool") and not os.environ.get("CI"), reason="no promtool (Debian: prometheus)"
)


def alert_rules(file: str) -> list[dict[str, Any]]:
    """The rules of all groups of a file."""
    groups = yaml.safe_load((MONITORING / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def read_dashboard(file: str) -> dict[str, Any]:
    """A dashboard."""
    found: dict[str, Any] = json.loads((MONITORING / file).read_text())
    return found


def panels_of(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels that ask something."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def asked_of(rules: Iterable[dict[str, Any]], dashboard: dict[str, Any]) -> list[tuple[str, str]]:
    """Alert or panel, and its expression."""
    found = [(rule["alert"], rule["expr"]) for rule in rules]
    return found + [
        (panel["title"], target["expr"]) for panel in panels_of(dashboard) for target in panel["targets"]
    ]


def promql(expression: str, *, rate: str = "1m") -> str:
    """A panel's expression as Grafana sends it."""
    return re.sub(r"\$(job|retrain_job)\b", ".*", expression.replace("$__rate_interval", rate))


def mistyped(model: object, where: str) -> list[str]:
    """Fields of a Grafana model, and of those in it, that do not hold what the model says that they hold."""
    if isinstance(model, dict | list):
        inner = model.items() if isinstance(model, dict) else enumerate(model)
        return [found for key, value in inner for found in mistyped(value, f"{where}/{key}")]
    if isinstance(model, Enum) or not type(model).__module__.startswith("grafana_foundation_sdk"):
        return []
    found = []
    for name, hint in typing.get_type_hints(type(model)).items():
        value = getattr(model, name)
        settings = pydantic.ConfigDict(arbitrary_types_allowed=True)
        try:
            if value is not None:
                pydantic.TypeAdapter(dict[str, hint], config=settings).validate_python({"": value})
        except pydantic.ValidationError as error:
            found.append(f"{where}/{name}: {value!r}: {error.errors()[0]['msg']}")
        found += mistyped(value, f"{where}/{name}")
    return found


def lost(given: Any, kept: Any, where: str = "") -> list[str]:
    """What stands in a JSON value and not in another."""
    if isinstance(given, dict) and isinstance(kept, dict):
        missing = [f"{where}/{key}" for key in given if key not in kept]
        return missing + [
            found
            for key in given.keys() & kept.keys()
            for found in lost(given[key], kept[key], f"{where}/{key}")
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [found for place, pair in pairs for found in lost(*pair, f"{where}/{place}")]
    return [] if given == kept else [where]


def faults_of(dashboard: dict[str, Any]) -> list[str]:
    """What Grafana's models find wrong with a dashboard: fields that they do not know or of another type."""
    plugins.register_default_plugins()
    model = Dashboard.from_json(dashboard)
    return mistyped(model, "") + lost(dashboard, json.loads(JSONEncoder().encode(model)))
