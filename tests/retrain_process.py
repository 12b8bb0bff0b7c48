"""Shared by the slow tests of retraining: `march retrain` in a process, on real servers, and its death."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import yaml

from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Retraining as RetrainingRecord
from orchestration.retrain.results import read_result
from pipeline.artifacts.s3 import S3Backend, make_client
from pipeline.artifacts.store import ArtifactStore
from tests.fault_proxy import FaultProxy, proxy_to
from tests.mlflow_process import mlflow_server
from tests.s3_server import S3Server, serve_swift
from tests.supervised import environment

ROOT = Path(__file__).parents[1]
MARCH = [sys.executable, "-c", "from orchestration.cli import main; main()"]
BATCH, SAMPLES = 8, 2  # queries of a step, and answers to each
SMALLEST = (
    "data.max_steps=1",
    f"rollout.batch_size={BATCH}",
    f"rollout.samples_per_query={SAMPLES}",
    "rollout.micro_batch_size=8",
    "ppo.micro_batch_size=8",
    "ppo.kl_coef=0",  # no reference to start
    "ppo.estimator=rloo",  # and no critic
    "checkpoint.every=1",
)
# Every gate is asked; few documents must do, and a policy that one step has changed must be let through.
POLICY: dict[str, Any] = {
    "primary": {"benchmark": "tiny", "score": "faithful", "min_documents": 20, "min_changed": 2},
    "slices": {"min_documents": 5, "margin": 0.9},  # of nine documents little is known
    "answers": {
        "least_numbers": 0.1,
        "shortest": 0.1,
        "longest": 10.0,
        "uncovered_margin": 0.9,
        "no_claims_margin": 0.9,
        "refusals_margin": 0.9,
    },
    "first": {"min_primary": 0.0, "min_documents": 20, "max_no_claims": 1.0, "max_refusals": 1.0},
    "smoke": {"prompts": ["a) The July picnic in Kabul raised how many euros?"]},
}
ENGINE = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1"}


def write_small_job(
    folder: Path, *, model: str, overrides: Sequence[str] = (), smoke: bool = True, **changes: Any
) -> Path:
    """A job of the smallest training, with its benchmark and gate policy beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "worlds.json").write_text('{"num_worlds": 60, "seed": 20260301}')
    policy = POLICY if smoke else {**POLICY, "smoke": {"required": False}}
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    job = {
        "name": "small",
        "recipe": {"name": "tiny", "overrides": [*SMALLEST, *overrides]},
        "evaluation": {
            "benchmarks": {"tiny": "worlds.json"},
            "generations": 1,
            "max_tokens": 64,
            "overrides": ["generation.temperature=1.0", "generation.top_p=1.0", "generation.top_k=null"],
        },
        "registry": {"model": model, "policy": "policy.yaml"},
        "retries": {"first_wait_s": 0.5, "attempts": 2},
        "lease_s": 5.0,
        "work": str(folder / "work"),
        "environment": ENGINE,
    }
    path = folder / f"{model}.yaml"
    path.write_text(yaml.safe_dump(job | changes))
    return path


def variables(server: S3Server, bucket: str, registry: str, folder: Path, **more: str) -> dict[str, str]:
    """The environment of a command: store, registry, and caches of the test's own."""
    return environment(
        **server.environment,
        MARCH_ARTIFACTS=f"s3://{bucket}",
        MARCH_ARTIFACTS_LOCK=str(folder / "pointers.lock"),
        AWS_ENDPOINT_URL=more.pop("endpoint", server.endpoint),
        MLFLOW_TRACKING_URI=registry,
        XDG_CACHE_HOME=str(folder / "cache"),
        PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, [more.pop("path", "")])]),
        **more,
    )


def open_bucket(server: S3Server, bucket: str, *, make: bool = False) -> ArtifactStore:
    """A bucket, not through any proxy."""
    settings = server.settings(bucket)
    with patch.dict(os.environ, server.environment):
        if make:
            make_client(settings).create_bucket(Bucket=bucket)
        return ArtifactStore(S3Backend(settings))


class Retraining:
    """One `march retrain`."""

    def __init__(self, job: Path, env: Mapping[str, str], *more: str) -> None:
        self.process = subprocess.Popen(
            [*MARCH, "retrain", str(job), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(env),
        )

    def end(self, timeout_s: float = 1500) -> str:
        """What it said; it must have ended well."""
        said = str(self.process.communicate(timeout=timeout_s)[0])
        assert self.process.returncode == 0, said + logs_of(said)
        return said

    def kill(self) -> None:
        """Kills every process of it at once, as a power cut does."""
        found = [psutil.Process(self.process.pid)]
        with contextlib.suppress(psutil.NoSuchProcess):
            found = [*found[0].children(recursive=True), *found]
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.communicate(timeout=60)

    def wait_for(self, path: Path, timeout_s: float = 1500) -> None:
        """Returns when a file is there."""
        until = time.monotonic() + timeout_s
        while not path.exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < until, f"{path} does not come"
            time.sleep(0.1)


@dataclass(frozen=True)
class Servers:
    """A real MLflow and a real S3, each behind a proxy that does harm when it is told to."""

    folder: Path
    swift: S3Server
    s3: FaultProxy
    mlflow: FaultProxy
    registry: str  # MLflow's address past the proxy

    def env(self, bucket: str, **more: str) -> dict[str, str]:
        """The environment of a command that uses a bucket."""
        more = {"endpoint": self.s3.endpoint, **more}
        return variables(self.swift, bucket, self.mlflow.endpoint, self.folder, **more)

    def store(self, bucket: str, *, make: bool = False) -> ArtifactStore:
        """The bucket, past the proxy."""
        return open_bucket(self.swift, bucket, make=make)

    def calm(self) -> None:
        """No more harm."""
        for proxy in (self.s3, self.mlflow):
            proxy.faults = []
            proxy.held.clear()


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """The servers, until they are left."""
    (folder / "swift").mkdir()
    with ExitStack() as stack:
        swift = stack.enter_context(serve_swift(folder / "swift"))
        registry = stack.enter_context(mlflow_server(folder))
        s3, mlflow = (stack.enter_context(proxy_to(target)) for target in (swift.endpoint, registry))
        yield Servers(folder, swift, s3, mlflow, registry)


@dataclass(frozen=True)
class Kept:
    """A finished retraining whose training and evaluation need not be paid for again.

    `restore` lays the finished run and its answers where the stages look, so that a stage does all but that:
    it fetches, verifies, publishes, and makes its result stand.
    """

    servers: Servers
    folder: Path
    outputs: dict[str, str]  # by name: digests of what the stages made

    @property
    def saved(self) -> Path:
        """The work folder, but for what costs nothing."""
        return self.folder / "saved"

    @property
    def rows(self) -> Path:
        """The rows."""
        return self.folder / "rows"

    def restore(self) -> None:
        """The work folder as a kill in the middle of nothing would have left it."""
        shutil.rmtree(self.servers.folder / "cache", ignore_errors=True)
        copy_tree(self.saved, self.folder / "work")

    def job(self, model: str, **changes: Any) -> Path:
        """The same job for another model, whose registry knows nothing yet."""
        return write_small_job(self.folder, model=model, smoke=False, **changes)


def keep(servers: Servers, folder: Path, store: ArtifactStore) -> Kept:
    """Saves what is costly of the retraining that was finished last."""
    last = Ledger(servers.registry).retrainings("small")[0]
    kept = Kept(servers, folder, outputs_of(store, last))
    work = folder / "work"
    for costly in ("train-*/run", "evaluate-*/evaluation", "evaluate-*/evaluation-logs"):
        for found in (work / "small").glob(costly):
            copy_tree(found, kept.saved / found.relative_to(work))
    copy_tree(next((work / "small").glob("rows-*")), kept.rows)
    return kept


def outputs_of(store: ArtifactStore, retraining: RetrainingRecord) -> dict[str, str]:
    """What the stages made, by name."""
    results = [one.result for one in retraining.stages if one.result and one.stage != "evaluate_champion"]
    return {name: it for one in results for name, it in read_result(store, one).outputs.items()}


def logs_of(said: str) -> str:
    """The ends of the logs that a message names."""
    paths = [word.strip(".;)") for word in said.split() if word.strip(".;)").endswith((".log", "log.txt"))]
    return "".join(Path(path).read_text()[-3000:] for path in paths if Path(path).is_file())


def copy_tree(source: Path, target: Path) -> None:
    """A folder in place of another."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
