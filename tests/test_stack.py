"""The one-machine stack of infra/compose, its services as processes with compose.yaml's own commands.

PostgreSQL, SeaweedFS, MLflow, vLLM, the reward server, the schedule and Prometheus are real; Grafana is not
here, so its dashboards' queries are put to Prometheus. `make test-stack` runs all of it; the gate, whose
retrainings are in test_retrain_whole.py, what is not `long`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestration.registry.store import LINEAGE_TAG, Registry
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Ending
from pipeline.artifacts.backend import MovedError
from pipeline.artifacts.s3 import S3Backend
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_damage
from pipeline.lineage.publish import read_lineage
from pipeline.tiny.demonstrations import write_answer
from pipeline.tiny.world import sample_worlds
from tests.compose_file import FOLDER
from tests.monitoring import alert_rules, asked_of, promql, read_dashboard
from tests.retrain_process import write_small_job
from tests.schedule_jobs import wait_until
from tests.stack_docker import docker_for
from tests.stack_process import Stack, make_stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.training]

STORING, SERVICES = ("mlflow",), ("reward", "schedule", "prometheus")  # each with all that it needs
MODEL, JOB, ROWS = "stack-solver", "small", "rows.jsonl"
WORLDS = sample_worlds(6, seed=1, split="held_out")  # the only ones that the tiny policy can audit
DASHBOARDS = ("dashboard.json", "dashboard-schedule.json")
# What these few minutes hold no data for, and why.
ABSENT = {
    "UNSCORED by reason": "no audit failed",
    "Next time by the clock": "the job has no cron trigger",
    "Refuted answers": "the job has no drift trigger",
    "Sampler failures": "no engine failed",
    "Certificates read": "there is no TLS",
    "Weights in training": "a frozen model has no version",
    "Requests without a valid token": "nobody came without a token",
    "Refused": "nothing was refused",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, up, with a job that is retrained when rows arrive.

    Prometheus scrapes every second instead of four times a minute.
    """
    jobs = tmp_path_factory.mktemp("jobs")
    write_small_job(
        jobs,
        model=JOB,
        smoke=False,
        registry={"model": MODEL, "policy": "policy.yaml"},
        work="runs/retrain",
        triggers={"data": {"paths": [ROWS]}},
    )
    with make_stack({"JOBS": str(jobs), "JOB": JOB, "EVERY": "1", "MODEL_NAME": MODEL}) as made:
        settings = Path(made.machine.local("prometheus", "/etc/prometheus/prometheus.yaml"))
        settings.write_text(settings.read_text().replace("15s", "1s"))
        made.up(*SERVICES)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in made.env("schedule").items():
                if name.startswith(("AWS_", "MLFLOW_", "MARCH_")):
                    patch.setenv(name, value)
            yield made


@pytest.fixture(scope="module")
def retrained(stack: Stack) -> Stack:
    """The stack, after rows arrived and the schedule had its job retrained."""
    Path(stack.machine.local("schedule", f"/etc/march/jobs/{ROWS}")).write_text("of today")
    ledger = Ledger(stack.url("mlflow", 5000))
    wait_until(lambda: [one for one in ledger.retrainings(JOB) if one.is_closed], "it never ends", 900)
    return stack


def store_of(stack: Stack) -> ArtifactStore:
    return open_store(StoreSettings(location="s3://march-artifacts", endpoint=stack.url("s3", 8333)))


def registry_of(stack: Stack) -> Registry:
    return Registry(stack.url("mlflow", 5000))


def asked(stack: Stack, expression: str) -> list[dict[str, Any]]:
    """What Prometheus answers."""
    url = f"{stack.url('prometheus', 9090)}/api/v1/query"
    answer = httpx.post(url, data={"query": expression}, trust_env=False).json()
    assert answer["status"] == "success", (expression, answer)
    return list(answer["data"]["result"])


def kept(stack: Stack) -> dict[str, object]:
    """What must outlive anything: champion, its lineage and weights, retrainings, in full and verified."""
    store, registry = store_of(stack), registry_of(stack)
    assert not list(find_damage(store, store.manifests(), read=True))
    (version,) = registry.versions(MODEL)
    lineage = read_lineage(store, version.tags[LINEAGE_TAG])
    assert lineage.model is not None and lineage.model.weights_sha256 == version.sha256
    return {
        "aliases": registry.aliases(MODEL),
        "version": (version.version, version.uri, version.sha256, dict(version.tags)),
        "lineage": lineage,
        "retrainings": [one.outcome for one in Ledger(registry.uri).retrainings(JOB)],
        "manifests": sorted(store.manifests()),
    }


def test_audits_over_http(stack: Stack) -> None:
    token = {"Authorization": f"Bearer {stack.secret('march_reward_token')}"}
    url, verdicts = f"{stack.url('reward', 8000)}/v1/audit", []
    for world in WORLDS:
        response = write_answer([(fact, fact.value) for fact in world.asked])
        body = {"query": world.query.model_dump(mode="json"), "response": response}
        assert httpx.post(url, json=body, trust_env=False).status_code == 401
        answer = httpx.post(url, json=body, headers=token, timeout=200, trust_env=False)
        assert answer.status_code == 200, answer.text
        verdicts.append(answer.json()["verdict"])
    assert "SUPPORTED" in [one["outcome"] for one in verdicts], verdicts


def test_mlflow_lets_nobody_in_without_a_password_or_by_another_name(stack: Stack) -> None:
    url = f"{stack.url('mlflow', 5000)}/api/2.0/mlflow/registered-models/search"
    who = ("march", stack.secret("mlflow_password"))
    assert httpx.get(url, trust_env=False).status_code == 401
    assert httpx.get(url, auth=who, trust_env=False).status_code == 200
    rebound = httpx.get(url, auth=who, headers={"Host": "evil.example"}, trust_env=False)
    assert rebound.status_code == 403


def test_of_many_that_move_a_pointer_at_once_one_wins_without_a_lock(stack: Stack) -> None:
    """SeaweedFS compares and sets, which Swift, the S3 of other tests, does not."""
    store = store_of(stack)
    assert isinstance(store.backend, S3Backend)
    store.backend.demand_conditions()
    first, *others = [store.publish(kind=f"racer {number}").digest for number in range(9)]

    def wins(name: str, digest: str) -> bool:
        with suppress(MovedError):
            store.move(name, digest, expected=first)
            return True
        return False

    with ThreadPoolExecutor(len(others)) as pool:
        for number in range(10):
            name = f"race/{number}"
            store.move(name, first, expected=None)
            won = [one for one, has in zip(others, pool.map(partial(wins, name), others), strict=True) if has]
            assert won == [store.pointed(name)]


@pytest.mark.long
def test_the_schedule_retrains_and_promotes(retrained: Stack) -> None:
    found = kept(retrained)
    assert found["aliases"] == {"champion": "1"} and found["retrainings"] == [Ending.PROMOTED]


@pytest.mark.long
def test_vllm_serves_the_champion_after_its_promotion_and_from_its_start(retrained: Stack) -> None:
    def names() -> set[str]:
        answer = httpx.get(f"{retrained.url('vllm', 8001)}/v1/models", trust_env=False)
        return {one["id"] for one in answer.json()["data"]}

    wait_until(lambda: f"{MODEL}@1" in names(), "the champion is not served", 600)
    retrained.down()
    retrained.up(*SERVICES)
    assert names() == {MODEL, f"{MODEL}@1"}


def test_prometheus_reaches_all(stack: Stack) -> None:
    jobs = {one["metric"]["job"]: one["value"][1] for one in asked(stack, "up")}
    assert jobs == dict.fromkeys(("reward", "schedule", "vllm", "s3", "prometheus"), "1")


@pytest.mark.long
def test_every_panel_has_data(retrained: Stack) -> None:
    empty = set()
    for file in DASHBOARDS:
        for title, expression in asked_of((), read_dashboard(file)):
            found = asked(retrained, promql(expression, rate="10m"))
            if not any(one["value"][1] != "NaN" for one in found):
                empty.add(title)
    assert empty <= set(ABSENT), empty - set(ABSENT)


def test_prometheus_has_every_alert_and_none_fires(stack: Stack) -> None:
    url = f"{stack.url('prometheus', 9090)}/api/v1/rules"
    groups = httpx.get(url, trust_env=False).json()["data"]["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    files = ("alerts.yaml", "alerts-schedule.yaml", "alerts-stack.yaml")
    assert set(rules) == {rule["alert"] for file in files for rule in alert_rules(file)}
    assert {name: rule["lastError"] for name, rule in rules.items() if rule["health"] != "ok"} == {}
    assert [name for name, rule in rules.items() if rule["state"] == "firing"] == []


@pytest.mark.long
def test_down_and_up_loses_nothing(retrained: Stack) -> None:
    before = kept(retrained)
    retrained.down()
    retrained.up(*STORING, "prometheus")
    assert kept(retrained) == before
    assert asked(retrained, "max_over_time(march_retrainings_total{result='ended'}[1h]) == 1")


@pytest.mark.long
def test_a_backup_brings_champion_lineage_and_weights_back(retrained: Stack, tmp_path: Path) -> None:
    retrained.up(*STORING)
    before = kept(retrained)
    with docker_for(retrained) as env:
        run_script("backup.sh", retrained, env)
        retrained.down()
        for name in ("postgres-data", "s3-data"):
            empty(retrained.machine.volume(name))
        assert run_script("restore.sh", retrained, env).endswith("Z\n")
    retrained.up(*STORING)
    assert kept(retrained) == before
    weights = registry_of(retrained).versions(MODEL)[0]
    manifest = store_of(retrained).get(weights.uri.rpartition("/")[2], tmp_path / "weights")
    assert {file.path for file in manifest.files} >= {"config.json", "model.safetensors"}


def run_script(name: str, stack: Stack, env: Mapping[str, str]) -> str:
    """Runs backup.sh or restore.sh; what it said."""
    command = ["sh", str(FOLDER / name), str(stack.machine.folder / "backup")]
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def empty(folder: Path) -> None:
    """A volume as it is when it is new."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
