"""`march doctor`: what servers answer, real HTTP with made-up answers, and a real reward server."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable
from email.utils import formatdate
from typing import Any

import pytest

from orchestration.doctor.asking import UnansweredError, ask
from orchestration.doctor.clock import gather_skews
from orchestration.doctor.engine import check_engine, gather_engine
from orchestration.doctor.mlflow_server import check_mlflow, check_no_server, gather_mlflow
from orchestration.doctor.ray_cluster import Node, check_ray, gather_ray, read_nodes
from orchestration.doctor.records import Finding, State
from orchestration.doctor.reward_server import check_reward, gather_reward
from orchestration.doctor.s3_store import S3Facts, check_s3
from pipeline.artifacts.conditions import Conditions
from tests.canned_server import Canned, serve_canned
from tests.serving import TOKEN, serve_picnic

T = 10.0
API = "/api/2.0/mlflow"
HERE = platform.python_version()
BUSY = {"usage": {"GPU": [1.0, 1.0]}, "resourceDemand": [[{"GPU": 8.0}, 1]], "pgDemand": [[{}, 1]]}
MLFLOW: dict[str, tuple[int, Any]] = {
    "/version": (200, "3.17.2"),
    f"{API}/experiments/search": (200, {}),
    f"{API}/registered-models/search": (200, {}),
}
_VARIABLES = (
    *("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"),
    *("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "MARCH_REWARD_TOKEN", "OPENAI_API_KEY"),
)


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def by_check(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {one.check: one for one in findings}


# Asking


def test_what_goes_wrong_on_the_way_is_one_line_without_secrets() -> None:
    hangs = threading.Event()
    slow = pytest.raises(UnansweredError, match=r"127\.0\.0\.1:\d+: no answer within 0\.2 s")
    with serve_canned(Canned({}, hangs=hangs)) as canned, slow:
        ask(canned.address, timeout_s=0.2)
    with pytest.raises(UnansweredError, match=r"http://127\.0\.0\.1:9: nobody listens there"):
        ask("http://user:secret@127.0.0.1:9/x", timeout_s=T)
    with pytest.raises(UnansweredError, match="its name is not known here"):
        ask("http://no-such-host.invalid/", timeout_s=T)


def test_a_clock_is_compared_by_the_date_of_any_answer() -> None:
    with serve_canned(Canned({}, date=formatdate(1_000_000_000, usegmt=True))) as canned:
        (skew,) = gather_skews({"S3": canned.address, "gone": "http://127.0.0.1:9"}, timeout_s=T)
    assert skew.server == "S3" and skew.seconds < -900


# MLflow


def mlflow(client: str | None = "3.12.0", **changes: Any) -> dict[str, Finding]:
    answers = MLFLOW | changes.pop("answers", {})
    with serve_canned(Canned(answers, **changes)) as canned:
        return by_check(check_mlflow(gather_mlflow(canned.address, timeout_s=T), client=client))


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
    gone = by_check(check_mlflow(gather_mlflow("http://127.0.0.1:9", timeout_s=T), client=None))
    assert gone["MLflow"].state is State.FAILED and "nobody listens there" in gone["MLflow"].found
    assert check_no_server(None).state is State.SKIPPED
    assert "secret" not in check_no_server("postgresql://u:secret@h/db").found


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


def test_a_cluster_with_a_dead_node() -> None:
    found = look(cluster(node("a", gpus=[gpu()] * 8), node("b", gpus=[gpu()] * 8), node("c", "DEAD")))
    assert found["Ray"].state is State.OK
    assert found["nodes"].state is State.WARNING and "2 alive, 32 CPUs; 1 dead: c" in found["nodes"].found
    assert found["GPUs"].found == "16 on 2 nodes: NVIDIA H100 80GB HBM3, 80 GiB"
    assert found["memory"].state is State.OK and found["disk"].state is State.OK


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
        (cluster(node("a"), load=BUSY), "nodes", State.WARNING, "2 kinds of requests wait"),
        (cluster(node("a", mem=[10**12, 10**10, 99.0, 10**12])), "memory", State.WARNING, "on a"),
        (cluster(node("a", free=10**9)), "disk", State.WARNING, "1 GB free on a"),
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
    found, dead = read_nodes({"data": {"summary": [young, pod]}})
    assert dead == () and found[0] == Node("10.0.0.1", num_cpus=2.0)
    assert found[1].disk_free is None and found[1].memory == 10**12


# S3, by made-up facts; tests/test_doctor_live.py asks real servers

GOOD = S3Facts(
    "s3://b/p", "http://s3:8333", versioning="Enabled", took_s=0.012,
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
        ({"problem": "Unable to locate credentials"}, "S3 bucket", State.FAILED, "set AWS_ACCESS_KEY_ID"),
        ({"problem": "Could not connect"}, "S3 bucket", State.FAILED, "fix AWS_ENDPOINT_URL"),
        (
            {"refused": {"delete": "AccessDenied"}},
            "S3 rights",
            State.FAILED,
            "allow s3:DeleteObject on s3://b/p/*",
        ),
        ({"versioning": ""}, "S3 versioning", State.WARNING, "off"),
        ({"versioning": "AccessDenied: no"}, "S3 versioning", State.SKIPPED, "may not be asked"),
        ({"conditions": Conditions(True, False, False)}, "S3 conditions", State.FAILED, "lacks IfMatch"),
    ],
)
def test_a_bucket(changes: dict[str, Any], check: str, state: State, says: str) -> None:
    found = s3(**changes)[check]
    assert found.state is state and says in f"{found.found} {found.fix}"


def test_a_lock_stands_in_for_conditional_writes() -> None:
    conditions = Conditions(if_none_match=True, if_match=False, atomic=False)
    assert s3(conditions=conditions, has_lock=True)["S3 conditions"].state is State.OK


# A reward server, a real one


def test_a_reward_server_and_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve_picnic()
    try:
        missing = by_check(check_reward(gather_reward(server.url, timeout_s=T)))
        monkeypatch.setenv("MARCH_REWARD_TOKEN", "another-token-of-32-characters")
        wrong = by_check(check_reward(gather_reward(server.url, timeout_s=T)))
        monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
        right = by_check(check_reward(gather_reward(server.url, timeout_s=T)))
        other = by_check(check_reward(gather_reward(server.url, timeout_s=T), ours="9.9.9"))
    finally:
        server.close()
    assert missing["reward server"].state is State.OK
    assert missing["reward token"].found == "MARCH_REWARD_TOKEN is not set"
    assert "another than the server's" in wrong["reward token"].found
    assert {one.state for one in right.values()} == {State.OK} and "role-player" in right[
        "reward version"
    ].found
    assert other["reward version"].state is State.WARNING
    assert TOKEN not in str([missing, wrong, right])


def test_a_reward_server_that_is_not_ready_or_none() -> None:
    answers = {"/healthz": (200, {"status": "ok"}), "/readyz": (503, {"reason": "engine: away"})}
    with serve_canned(Canned(answers)) as canned:
        found = by_check(check_reward(gather_reward(canned.address, timeout_s=T)))
    assert found["reward server"].state is State.FAILED
    assert "lives, not ready: engine: away" in found["reward server"].found
    with serve_canned(Canned({})) as canned:
        found = by_check(check_reward(gather_reward(canned.address, timeout_s=T)))
    assert "is none: HTTP 404" in found["reward server"].found


# An engine

ENGINE: dict[str, tuple[int, Any]] = {
    "/v1/models": (200, {"object": "list", "data": [{"id": "m", "max_model_len": 4096}]}),
    "/version": (200, {"version": "0.29.0+cpu"}),
    "/v1/completions": (200, {"choices": [{"text": "4", "token_ids": [4]}]}),
}


def vllm(**changes: Any) -> dict[str, Finding]:
    with serve_canned(Canned(ENGINE | changes.pop("answers", {}), **changes)) as canned:
        return by_check(check_engine(gather_engine(f"{canned.address}/v1", timeout_s=T), ours="0.29.0"))


def test_an_engine_that_answers() -> None:
    found = vllm()
    assert {one.state for one in found.values()} == {State.OK}
    assert "m (4,096 tokens); vLLM 0.29.0" in found["engine"].found
    assert "with token ids" in found["engine's answer"].found


@pytest.mark.parametrize(
    ("answers", "check", "state", "says"),
    [
        ({"/version": (200, {"version": "0.11.0"})}, "engine", State.WARNING, "here 0.29.0"),
        ({"/version": (404, "")}, "engine", State.OK, "no vLLM"),
        ({"/v1/models": (200, {"data": []})}, "engine", State.FAILED, "lists no model"),
        ({"/v1/completions": (500, "EngineDeadError")}, "engine's answer", State.FAILED, "EngineDeadError"),
        ({"/v1/completions": (404, "")}, "engine's answer", State.SKIPPED, "no /v1/completions"),
        ({"/v1/completions": (200, {"choices": []})}, "engine's answer", State.OK, "without token ids"),
        ({"/server_info": (200, {})}, "engine's door", State.WARNING, "development endpoints are open"),
    ],
)
def test_engines(answers: dict[str, Any], check: str, state: State, says: str) -> None:
    found = vllm(answers=answers)[check]
    assert found.state is state and says in found.found


def test_an_engine_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the key is refused" in vllm(token="key")["engine"].found
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert vllm(token="key")["engine"].state is State.OK
