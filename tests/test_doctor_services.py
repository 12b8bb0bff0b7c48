"""`march doctor`: what servers answer, over real HTTP with made-up answers."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any

import pytest

from orchestration.doctor.http import UnansweredError, get
from orchestration.doctor.mlflow_server import check_mlflow
from orchestration.doctor.ray_cluster import Node, check_ray, gather_ray, read_nodes
from orchestration.doctor.report import Finding, State
from orchestration.doctor.s3_store import S3Facts, check_s3, check_store
from pipeline.artifacts.conditions import Conditions
from pipeline.artifacts.settings import StoreSettings
from tests.canned_server import Canned, serve_canned

T = 10.0
API = "/api/2.0/mlflow"
HERE = platform.python_version()
BUSY = {"usage": {"GPU": [1.0, 1.0]}}
MLFLOW: dict[str, tuple[int, Any]] = {
    "/version": (200, "3.17.2"),
    f"{API}/experiments/search": (200, {}),
    f"{API}/registered-models/search": (200, {}),
}
_VARIABLES = (
    *("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"),
    *("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"),
)


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def by_check(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {one.check: one for one in findings}


# A request


def test_what_goes_wrong_on_the_way_is_one_line_without_secrets() -> None:
    hangs = threading.Event()
    slow = pytest.raises(UnansweredError, match=r"127\.0\.0\.1:\d+: no answer within 0\.2 s")
    with serve_canned(Canned({}, hangs=hangs)) as canned, slow:
        get(canned.address, timeout_s=0.2)
    with pytest.raises(UnansweredError, match=r"http://127\.0\.0\.1:9: nobody listens there"):
        get("http://user:secret@127.0.0.1:9/x", timeout_s=T)
    with pytest.raises(UnansweredError, match="its name is not known here"):
        get("http://no-such-host.invalid/", timeout_s=T)


# MLflow


def mlflow(client: str | None = "3.12.0", **changes: Any) -> dict[str, Finding]:
    answers = MLFLOW | changes.pop("answers", {})
    with serve_canned(Canned(answers, **changes)) as canned:
        return by_check(check_mlflow(canned.address, client=client, timeout_s=T))


@pytest.mark.parametrize(
    ("client", "version", "state", "says"),
    [
        ("3.12.0", "3.17.2", State.OK, "3.17.2 at http://127.0.0.1"),
        ("3.17.2", "3.12.0", State.WARNING, "here 3.17.2, which is newer"),
        ("3.17.2", "2.22.1", State.FAILED, "older than 3"),
        ("3.17.2", "4.0.0", State.FAILED, "here 3.17.2"),
        (None, "3.17.2", State.OK, "3.17.2"),
        ("3.17.2", "<html>", State.FAILED, "is no MLflow"),
    ],
)
def test_mlflows_version(client: str | None, version: str, state: State, says: str) -> None:
    found = mlflow(client, answers={"/version": (200, version)})["MLflow"]
    assert found.state is state and says in found.found


def test_mlflows_door(monkeypatch: pytest.MonkeyPatch) -> None:
    public = ("/version",)
    assert mlflow()["MLflow's door"].state is State.OK
    assert "closed as nobody" in mlflow(token="right", public=public)["MLflow's door"].found
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "right")
    assert mlflow(token="right", public=public)["MLflow's door"].state is State.OK
    found = mlflow(token="other", public=public)["MLflow's door"]
    assert found.state is State.FAILED and "refused as the bearer of a token" in found.found
    broken = mlflow(answers={f"{API}/registered-models/search": (500, "no such table")})["MLflow's door"]
    assert broken.state is State.FAILED and "registered models: HTTP 500, no such table" in broken.found


def test_mlflow_that_is_away_or_no_server() -> None:
    gone = by_check(check_mlflow("http://127.0.0.1:9", client=None, timeout_s=T))
    assert gone["MLflow"].state is State.FAILED and "nobody listens there" in gone["MLflow"].found
    for uri in (None, "postgresql://u:secret@h/db"):
        (found,) = check_mlflow(uri, client=None, timeout_s=T)
        assert found.state is State.SKIPPED and "secret" not in found.found


# Ray


def node(name: str, state: str = "ALIVE", **facts: Any) -> dict[str, Any]:
    """A node as Ray's dashboard of 2.55 tells it."""
    total = {"CPU": 16.0, "memory": 9e9, **({"GPU": float(len(facts["gpus"]))} if facts.get("gpus") else {})}
    raylet = {"state": state, "nodeManagerHostname": name, "resourcesTotal": total}
    gpus = facts.pop("gpus", [])
    disk = {"/": {"total": 10**12, "used": 1, "free": facts.pop("free", 9 * 10**11), "percent": 1}}
    mem = facts.pop("mem", [10**12, 9 * 10**11, 10.0, 10**11])
    return {"hostname": name, "raylet": raylet, "gpus": gpus, "disk": disk, "mem": mem}


def gpu(memory_mib: int = 81559) -> dict[str, Any]:
    return {"name": "NVIDIA H100 80GB HBM3", "memoryTotal": memory_mib, "memoryUsed": 4}


def cluster(
    *nodes: dict[str, Any], version: str = "2.55.0", python: str = HERE, load: Any = None, **how: Any
) -> Canned:
    return Canned(
        {
            "/api/version": (200, {"version": "4", "ray_version": version}),
            "/api/v0/cluster_metadata": (200, {"result": True, "data": {"pythonVersion": python}}),
            "/api/cluster_status": (200, {"data": {"clusterStatus": {"loadMetricsReport": load}}}),
            "/nodes": (200, {"result": True, "data": {"summary": list(nodes)}}),
        },
        **how,
    )


def look(canned: Canned, *, ours: str | None = "2.55.0") -> dict[str, Finding]:
    with serve_canned(canned):
        return by_check(check_ray(gather_ray(canned.address, timeout_s=T), ours=ours))


def test_a_cluster_is_its_nodes_that_live() -> None:
    found = look(cluster(node("a", gpus=[gpu()] * 8), node("b", gpus=[gpu()] * 8), node("c", "DEAD")))
    assert found["Ray"].state is State.OK
    assert found["nodes"].found == "2 alive, 32 CPUs"
    assert found["GPUs"].found == "16 on 2 nodes: NVIDIA H100 80GB HBM3, 80 GiB"


@pytest.mark.parametrize(
    ("canned", "check", "state", "says"),
    [
        (cluster(node("a"), version="2.48.0"), "Ray", State.FAILED, "2.48.0 at"),
        (cluster(node("a"), python="2.7.18"), "Ray", State.FAILED, f"Python 2.7.18; here Python {HERE}"),
        (cluster(), "nodes", State.FAILED, "none lives"),
        (cluster(node("a", gpus=[gpu()] * 8), node("b", gpus=[gpu()] * 4)), "GPUs", State.WARNING, "12 on 2"),
        (cluster(node("a")), "GPUs", State.OK, "none"),
        (cluster(node("a", gpus=[gpu()]), load=BUSY), "GPUs", State.OK, "1 on 1 node: NVIDIA"),
        (cluster(node("a", gpus=[gpu()]), load=BUSY), "GPUs", State.OK, "; 1 in use"),
        (Canned({}), "Ray", State.FAILED, "not found"),
        (Canned({"/api/version": (200, "<html>")}), "Ray", State.FAILED, "is no Ray dashboard"),
    ],
)
def test_clusters(canned: Canned, check: str, state: State, says: str) -> None:
    found = look(canned)[check]
    assert found.state is state and says in found.found


def test_a_cluster_that_wants_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert "set RAY_AUTH_TOKEN" in look(cluster(node("a"), token="right"))["Ray"].fix
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    assert "fix RAY_AUTH_TOKEN" in look(cluster(node("a"), token="right"))["Ray"].fix
    monkeypatch.setenv("RAY_AUTH_TOKEN", "right")
    assert look(cluster(node("a"), token="right"))["Ray"].state is State.OK
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("right\n")
    assert look(cluster(node("a"), token="right"))["Ray"].state is State.OK


def test_a_node_that_has_not_reported_yet_and_one_in_kubernetes() -> None:
    young = {"raylet": {"state": "ALIVE", "nodeManagerAddress": "10.0.0.1", "resourcesTotal": {"CPU": 2}}}
    pod = node("pod")
    pod["disk"] = {"/": {"total": 1, "used": 0, "free": 1, "percent": 0}}
    found = read_nodes({"data": {"summary": [young, pod]}})
    assert found[0] == Node("10.0.0.1", num_cpus=2.0)
    assert found[1].disk_free is None and found[1].memory == 10**12


# S3, by made-up facts; tests/test_doctor_live.py asks real servers

GOOD = S3Facts(
    "s3://b/p", "http://s3:8333", took_s=0.012,
    conditions=Conditions(if_none_match=True, if_match=True, atomic=True),
)  # fmt: skip


def s3(facts: S3Facts = GOOD, *, has_lock: bool = False, **changes: Any) -> dict[str, Finding]:
    from dataclasses import replace

    return by_check(check_s3(replace(facts, **changes), has_lock=has_lock))


@pytest.mark.parametrize(
    ("changes", "check", "state", "says"),
    [
        ({}, "S3 bucket", State.OK, "s3://b/p at http://s3:8333; answers in 12 ms"),
        ({}, "S3 conditions", State.OK, "has conditional writes"),
        ({"problem": "404: Not Found", "status": 404}, "S3 bucket", State.FAILED, "make the bucket"),
        ({"problem": "403: Forbidden", "status": 403}, "S3 bucket", State.FAILED, "AWS_SECRET_ACCESS_KEY"),
        (
            {"problem": "403: Forbidden", "status": 403, "skew_s": 1800.0},
            "S3 bucket",
            State.FAILED,
            "synchronise the clock, which is 30 minutes behind the server's",
        ),
        ({"problem": "Unable to locate credentials"}, "S3 bucket", State.FAILED, "set AWS_ACCESS_KEY_ID"),
        ({"problem": "Could not connect"}, "S3 bucket", State.FAILED, "fix AWS_ENDPOINT_URL"),
        (
            {"refused": {"delete": "AccessDenied"}},
            "S3 rights",
            State.FAILED,
            "allow s3:DeleteObject on s3://b/p/*",
        ),
        ({"conditions": Conditions(True, False, False)}, "S3 conditions", State.FAILED, "lacks IfMatch"),
    ],
)
def test_a_bucket(changes: dict[str, Any], check: str, state: State, says: str) -> None:
    found = s3(**changes)[check]
    assert found.state is state and says in f"{found.found} {found.fix}"


def test_a_lock_stands_in_for_conditional_writes() -> None:
    conditions = Conditions(if_none_match=True, if_match=False, atomic=False)
    assert s3(conditions=conditions, has_lock=True)["S3 conditions"].state is State.OK


def test_a_clock_that_s3_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    in_2001 = formatdate(1_000_000_000, usegmt=True)
    with serve_canned(Canned({"/b": (403, "")}, date=in_2001)) as canned:
        settings = StoreSettings(location="s3://b", endpoint=canned.address)
        (found,) = check_store(settings, timeout_s=T)
    assert found.state is State.FAILED and "403" in found.found
    assert found.fix.startswith("synchronise the clock") and "ahead of the server's" in found.fix
