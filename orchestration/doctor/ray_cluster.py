"""A Ray cluster over its dashboard's HTTP API: version, nodes and their GPUs.

The token is where Ray looks for it: RAY_AUTH_TOKEN, the file RAY_AUTH_TOKEN_PATH, or ~/.ray/auth_token. Ray
itself is not imported. What a node does not tell (a compiler, its limits) `march doctor` on that node does.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from orchestration.doctor.http import UnansweredError, get, line_of, object_of
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.estimate.memory import GIB

_MIB = 1024**2
_NAME, _NODES, _GPUS = "Ray", "nodes", "GPUs"
_VERSION, _METADATA, _SUMMARY = "/api/version", "/api/v0/cluster_metadata", "/nodes?view=summary"
_STATUS = "/api/cluster_status"
_TOKEN = "RAY_AUTH_TOKEN"


@dataclass(frozen=True)
class Node:
    """One node that lives; bytes, None for what it does not tell."""

    name: str
    num_gpus: float = 0.0  # that Ray gives out
    gpu_names: tuple[str, ...] = ()
    gpu_memory: int | None = None  # of its smallest
    num_cpus: float = 0.0
    memory: int | None = None
    disk_free: int | None = None


@dataclass(frozen=True)
class RayFacts:
    """What the cluster said."""

    address: str
    problem: str | None = None
    status: int | None = None  # HTTP of the first answer
    version: str | None = None
    python: str | None = None
    nodes: tuple[Node, ...] = ()
    gpus_in_use: float = 0.0


def gather_ray(address: str, *, timeout_s: float) -> RayFacts:
    """Four requests; nothing is submitted."""
    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else None

    def ask(path: str) -> httpx.Response:
        return get(f"{address}{path}", timeout_s=timeout_s, headers=headers)

    try:
        version = ask(_VERSION)
        if not version.is_success:
            return RayFacts(address, problem=line_of(version), status=version.status_code)
        metadata, summary, status = (object_of(ask(path)) for path in (_METADATA, _SUMMARY, _STATUS))
    except UnansweredError as error:
        return RayFacts(address, problem=str(error))
    load = (_data(status).get("clusterStatus") or {}).get("loadMetricsReport") or {}
    return RayFacts(
        address,
        status=version.status_code,
        version=object_of(version).get("ray_version"),
        python=_data(metadata).get("pythonVersion"),
        nodes=read_nodes(summary),
        gpus_in_use=float(((load.get("usage") or {}).get("GPU") or [0.0])[0]),
    )


def read_nodes(summary: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes that live, from the dashboard's summary."""
    rows = [row for row in _data(summary).get("summary") or [] if isinstance(row, dict)]
    return tuple(_node(row) for row in rows if (row.get("raylet") or {}).get("state") == "ALIVE")


def check_ray(facts: RayFacts, *, ours: str | None) -> Iterator[Finding]:
    """Judges them; `ours` is Ray's version here."""
    if facts.problem is not None:
        yield failed(_NAME, f"{facts.address}: {facts.problem}", _fix_of(facts))
        return
    yield _version(facts, ours)
    if not facts.nodes:
        yield failed(_NODES, "none lives", "look at the head's log; `ray status` says what it waits for")
        return
    cpus = sum(node.num_cpus for node in facts.nodes)
    yield ok(_NODES, f"{len(facts.nodes)} alive, {cpus:g} CPUs")
    yield _gpus(facts)


def _version(facts: RayFacts, ours: str | None) -> Finding:
    here = platform.python_version()
    found = f"{facts.version} at {facts.address}, Python {facts.python or 'unknown'}"
    if facts.version is None:
        return failed(_NAME, f"{facts.address} is no Ray dashboard", "give its address: http://HEAD:8265")
    if ours and facts.version != ours:
        return failed(_NAME, f"{found}; here {ours}", "install one version of Ray on both sides")
    if facts.python and facts.python.split(".")[:2] != here.split(".")[:2]:
        return failed(_NAME, f"{found}; here Python {here}", "use one minor version of Python on both sides")
    return ok(_NAME, found)


def _gpus(facts: RayFacts) -> Finding:
    with_gpus = [node for node in facts.nodes if node.num_gpus]
    if not with_gpus:
        return ok(_GPUS, "none")
    kinds = sorted({name for node in with_gpus for name in node.gpu_names}) or ["logical, no node shows one"]
    sizes = [node.gpu_memory for node in with_gpus if node.gpu_memory]
    memory = f", {min(sizes) / GIB:.0f} GiB" if sizes else ""
    where = f"{len(with_gpus)} node{'s' if len(with_gpus) > 1 else ''}"
    found = f"{sum(node.num_gpus for node in with_gpus):g} on {where}: {', '.join(kinds)}{memory}"
    found += f"; {facts.gpus_in_use:g} in use" if facts.gpus_in_use else ""
    if len({node.num_gpus for node in with_gpus}) > 1:
        fix = "cluster.gpus_per_node counts the same on each node; the smallest binds"
        return warning(_GPUS, f"{found}; not the same number on each", fix)
    return ok(_GPUS, found)


def _fix_of(facts: RayFacts) -> str:
    if facts.status == 401:
        return f"set {_TOKEN} to the cluster's token"
    if facts.status == 403:
        return f"fix {_TOKEN}: it is not the cluster's"
    if facts.status is not None:
        return "give the address of Ray's dashboard: http://HEAD:8265"
    return "start it, or fix --cluster; through a firewall: kubectl port-forward svc/HEAD 8265"


def _node(row: Mapping[str, Any]) -> Node:
    raylet = row.get("raylet") or {}
    gpus = [one for one in row.get("gpus") or () if isinstance(one, dict)]
    total = raylet.get("resourcesTotal") or {}
    disks = [one for one in (row.get("disk") or {}).values() if isinstance(one, dict)]
    name = row.get("hostname") or raylet.get("nodeManagerHostname") or raylet.get("nodeManagerAddress")
    return Node(
        name=str(name),
        num_gpus=float(total.get("GPU", 0)),
        gpu_names=tuple(sorted({str(one.get("name")) for one in gpus})),
        gpu_memory=min((int(size) * _MIB for one in gpus if (size := one.get("memoryTotal"))), default=None),
        num_cpus=float(total.get("CPU", 0)),
        memory=(row.get("mem") or [None])[0],
        # Of the fullest; Ray says 1 byte where it was configured not to look, as in Kubernetes.
        disk_free=min((int(one["free"]) for one in disks if one.get("total", 0) > 1), default=None),
    )


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    found = answer.get("data")
    return found if isinstance(found, dict) else {}


def _token() -> str | None:
    if token := os.environ.get(_TOKEN):
        return token
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    return path.read_text().strip() if path.is_file() else None
