"""The cluster's manifests are what Kubernetes, KubeRay, Kueue, KEDA and the Prometheus operator accept.

`MARCH_CRDS=FOLDER` with real definitions of custom resources replaces the schemas of tests/data/kubernetes.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from cronsim import CronSim

from tests.kubernetes_files import (
    KUBERNETES,
    OVERLAYS,
    VERSIONS,
    built,
    built_from,
    named,
    of_kind,
    problems,
)

CLUSTER_WIDE = {"Namespace", "PriorityClass", "ResourceFlavor", "ClusterQueue", "WorkloadPriorityClass"}
ALERTS = KUBERNETES.parent / "monitoring" / "alerts.yaml"
RULE = KUBERNETES / "components" / "observed" / "alerts.yaml"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_fits_its_schema(overlay: str, version: str) -> None:
    found = [problem for one in built(overlay) for problem in problems(one, version)]
    assert found == []
    assert len(built(overlay)) > 20


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", "spec/replica", 2),
        ("RayJob", "spec/entryPoint", "march"),
        ("RayJob", "spec/rayClusterSpec/headGroupSpec/template/spec/container", []),
        ("ClusterQueue", "spec/resourceGroups/0/flavors/0/quota", 1),
        ("ScaledObject", "spec/triggers/0/metadata", 5),
        ("ServiceMonitor", "spec/endpoints/0/tokn", "x"),
        ("PrometheusRule", "spec/groups/0/rules/0/alarm", "x"),
        ("NetworkPolicy", "spec/ingres", []),
    ],
)
def test_schemas_find_what_is_wrong(kind: str, path: str, value: Any) -> None:
    one = copy.deepcopy(of_kind(built("single-node-gpu"), kind)[0])
    *parents, leaf = path.split("/")
    node: Any = one
    for parent in parents:
        node = node[int(parent) if parent.isdigit() else parent]
    node[leaf] = value
    assert problems(one, VERSIONS[-1])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_belongs_to_the_cluster_is_apart_from_the_application(overlay: str) -> None:
    folder = KUBERNETES / "overlays" / overlay
    app, cluster = built_from(folder), built_from(folder / "cluster")
    assert {one["metadata"].get("namespace") for one in app} == {"march"}
    assert {one["kind"] for one in cluster} == CLUSTER_WIDE
    assert not {one["kind"] for one in app} & CLUSTER_WIDE
    keys = [(one["kind"], one["metadata"]["name"]) for one in (*app, *cluster)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_look_comes_every_ten_minutes_and_one_at_a_time(overlay: str) -> None:
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    spec = named(built(overlay), "CronJob", "retrain")["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    ZoneInfo(spec["timeZone"])
    first = next(CronSim(spec["schedule"], datetime(2026, 1, 3, tzinfo=UTC)))
    assert first == datetime(2026, 1, 3, 0, 10, tzinfo=UTC)


def test_the_alerts_are_those_of_monitoring() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    assert yaml.safe_load(RULE.read_text())["spec"]["groups"] == groups, (
        f"write {RULE} anew: its lines down to `spec:`, then, indented by two, what "
        "yaml.safe_dump({'groups': GROUPS}, sort_keys=False, width=120) makes of alerts.yaml's groups"
    )


def test_every_file_is_used() -> None:
    named_files = {
        path.parent / name
        for path in KUBERNETES.rglob("kustomization.yaml")
        for name in _files_of(yaml.safe_load(path.read_text()))
    }
    there = {path for path in KUBERNETES.rglob("*") if path.is_file()} - {KUBERNETES / "README.md"}
    there -= set(KUBERNETES.rglob("kustomization.yaml"))
    assert {path.resolve() for path in named_files if path.is_file()} == {path.resolve() for path in there}


def _files_of(tree: dict[str, Any]) -> list[str]:
    generated = [
        name.rpartition("=")[2]
        for one in tree.get("configMapGenerator", [])
        for name in (*one.get("files", []), *one.get("envs", []))
    ]
    return [*tree.get("resources", []), *generated]


def test_paths_in_the_image_are_those_of_this_package() -> None:
    inside = "/opt/march/lib/python3.11/site-packages/"
    root, found = Path(__file__).parents[1], 0
    for path in KUBERNETES.rglob("*.yaml"):
        for word in path.read_text().replace("}", " ").split():
            if inside in word:
                found += 1
                assert (root / word.partition(inside)[2]).exists(), f"{path}: {word}"
    assert found
