"""A Ray cluster over its dashboard's HTTP API: version, and each node's GPUs, memory and disk.

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

from orchestration.doctor.asking import Answer, UnansweredError, ask
from orchestration.doctor.records import Finding, failed, ok, warning

MIB, GIB, GB = 1024**2, 1024**3, 1e9
_NAME, _NODES, _GPUS, _MEMORY, _DISK = "Ray", "nodes", "GPUs", "memory", "disk"
_VERSION, _METADATA, _SUMMARY = "/api/version", "/api/v0/cluster_metadata", "/nodes?view=summary"
_STATUS = "/api/cluster_status"
_FULL, _CROWDED = 0.95, 0.9
_LEAST_DISK = 20 * GB
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
    memory_free: int | None = None
    disk_free: int | None = None


@dataclass(frozen=True)
class RayFacts:
    """What the cluster said."""

    address: str
    problem: str | None = None
    status: int | None = None  # HTTP of the first answer
    has_token: bool = False
    version: str | None = None
    python: str | None = None
    nodes: tuple[Node, ...] = ()
    dead: tuple[str, ...] = ()
    gpus_in_use: float = 0.0
    num_waiting: int = 0  # kinds of tasks, actors and placement groups that find no free resources


def gather_ray(address: str, *, timeout_s: float) -> RayFacts:
    """Four requests; nothing is submitted."""
    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else None
    has_token = bool(token)

    def get(path: str) -> Answer:
        return ask(f"{address}{path}", timeout_s=timeout_s, headers=headers)

    try:
        version = get(_VERSION)
        if not version.is_good:
            return RayFacts(address, problem=version.line, status=version.status, has_token=has_token)
        metadata, summary, status = (get(path) for path in (_METADATA, _SUMMARY, _STATUS))
    except UnansweredError as error:
        return RayFacts(address, problem=str(error), has_token=has_token)
    nodes, dead = read_nodes(summary.read())
    in_use, num_waiting = read_load(status.read())
    return RayFacts(
        address,
        status=version.status,
        has_token=has_token,
        version=version.read().get("ray_version"),
        python=_data(metadata.read()).get("pythonVersion"),
        nodes=nodes,
        dead=dead,
        gpus_in_use=in_use,
        num_waiting=num_waiting,
    )


def read_nodes(summary: Mapping[str, Any]) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes that live, and the names of those that died, from the dashboard's summary."""
    rows = [row for row in _data(summary).get("summary") or [] if isinstance(row, dict)]
    alive = [row for row in rows if _raylet(row).get("state") == "ALIVE"]
    dead = tuple(_name(row) for row in rows if _raylet(row).get("state") == "DEAD")
    return tuple(_node(row) for row in alive), dead


def read_load(status: Mapping[str, Any]) -> tuple[float, int]:
    """GPUs in use, and kinds of requests that wait, from what the autoscaler last wrote down."""
    load = (_data(status).get("clusterStatus") or {}).get("loadMetricsReport") or {}
    in_use = (load.get("usage") or {}).get("GPU") or [0.0]
    return float(in_use[0]), sum(len(load.get(name) or ()) for name in ("resourceDemand", "pgDemand"))


def check_ray(facts: RayFacts, *, ours: str | None) -> Iterator[Finding]:
    """Judges them; `ours` is Ray's version here, or that of the pin."""
    if facts.problem is not None:
        yield failed(_NAME, f"{facts.address}: {facts.problem}", _fix_of(facts))
        return
    yield _version(facts, ours)
    if not facts.nodes:
        yield failed(_NODES, "none lives", "look at the head's log; `ray status` says what it waits for")
        return
    yield _nodes(facts)
    yield _gpus(facts)
    yield _memory(facts.nodes)
    yield _disk(facts.nodes)


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


def _nodes(facts: RayFacts) -> Finding:
    cpus = sum(node.num_cpus for node in facts.nodes)
    found = f"{len(facts.nodes)} alive, {cpus:g} CPUs"
    if facts.dead:
        found += f"; {len(facts.dead)} dead: {', '.join(facts.dead[:3])}"
        return warning(_NODES, found, "look at what ended them: `ray list nodes`")
    if facts.num_waiting:
        fix = "wait for what runs, or give it more nodes: `ray status` says what is asked for"
        return warning(_NODES, f"{found}; {facts.num_waiting} kinds of requests wait for resources", fix)
    return ok(_NODES, found)


def _gpus(facts: RayFacts) -> Finding:
    nodes = facts.nodes
    with_gpus = [node for node in nodes if node.num_gpus]
    if not with_gpus:
        return ok(_GPUS, "none")
    kinds = sorted({name for node in with_gpus for name in node.gpu_names}) or ["logical, no node shows one"]
    sizes = [node.gpu_memory for node in with_gpus if node.gpu_memory]
    memory = f", {min(sizes) / GIB:.0f} GiB" if sizes else ""
    where = f"{len(with_gpus)} node{'s' if len(with_gpus) > 1 else ''}"
    found = f"{sum(node.num_gpus for node in nodes):g} on {where}: {', '.join(kinds)}{memory}"
    found += f"; {facts.gpus_in_use:g} in use" if facts.gpus_in_use else ""
    if len({node.num_gpus for node in with_gpus}) > 1:
        fix = "cluster.gpus_per_node counts the same on each node; the smallest binds"
        return warning(_GPUS, f"{found}; not the same number on each", fix)
    return ok(_GPUS, found)


def _memory(nodes: tuple[Node, ...]) -> Finding:
    known = [node for node in nodes if node.memory and node.memory_free is not None]
    if not known:
        return ok(_MEMORY, "no node tells it yet")
    least = min(known, key=lambda node: node.memory_free or 0)
    size, free = least.memory or 0, least.memory_free or 0
    found = f"{free / GIB:,.0f} GiB free of {size / GIB:,.0f} on {least.name}, which has least"
    if 1 - free / size > _CROWDED:
        fix = f"end what fills it: Ray kills workers at {_FULL:.0%}"
        return warning(_MEMORY, found, fix)
    return ok(_MEMORY, found)


def _disk(nodes: tuple[Node, ...]) -> Finding:
    known = [node for node in nodes if node.disk_free is not None]
    if not known:
        return ok(_DISK, "no node tells it (in Kubernetes Ray does not)")
    least = min(known, key=lambda node: node.disk_free or 0)
    free = least.disk_free or 0
    found = f"{free / GB:,.0f} GB free on {least.name}, which has least"
    if free < _LEAST_DISK:
        return warning(_DISK, found, "remove old runs there, or mount a larger volume")
    return ok(_DISK, found)


def _fix_of(facts: RayFacts) -> str:
    if facts.status == 401:
        return f"set {_TOKEN} to the cluster's token"
    if facts.status == 403:
        return f"fix {_TOKEN}: it is not the cluster's"
    if facts.status is not None:
        return "give the address of Ray's dashboard: http://HEAD:8265"
    return "start it, or fix --cluster; through a firewall: kubectl port-forward svc/HEAD 8265"


def _node(row: Mapping[str, Any]) -> Node:
    raylet, gpus = _raylet(row), [one for one in row.get("gpus") or [] if isinstance(one, dict)]
    total = raylet.get("resourcesTotal") or {}
    memory = row.get("mem") or [None, None]
    sizes = [int(size) * MIB for one in gpus if (size := one.get("memoryTotal"))]
    return Node(
        name=_name(row),
        num_gpus=float(total.get("GPU", 0)),
        gpu_names=tuple(sorted({str(one.get("name")) for one in gpus})),
        gpu_memory=min(sizes, default=None),
        num_cpus=float(total.get("CPU", 0)),
        memory=memory[0],
        memory_free=memory[1],
        disk_free=_free(row.get("disk") or {}),
    )


def _free(disks: Mapping[str, Any]) -> int | None:
    """Of the fullest; Ray says 1 byte where it was told not to look."""
    free = [int(one["free"]) for one in disks.values() if isinstance(one, dict) and one.get("total", 0) > 1]
    return min(free, default=None)


def _raylet(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("raylet")
    return found if isinstance(found, dict) else {}


def _name(row: Mapping[str, Any]) -> str:
    raylet = _raylet(row)
    return str(row.get("hostname") or raylet.get("nodeManagerHostname") or raylet.get("nodeManagerAddress"))


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    found = answer.get("data")
    return found if isinstance(found, dict) else {}


def _token() -> str | None:
    if token := os.environ.get(_TOKEN):
        return token
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    return path.read_text().strip() if path.is_file() else None
