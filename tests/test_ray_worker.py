"""What Ray's workers get of the driver's variables, where secrets go, and how large the object store is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline import cpu
from pipeline.launch import ray_worker
from pipeline.launch.ray_start import OBJECT_STORE_BYTES, object_store_bytes, start_ray
from pipeline.settings.recipe import load_recipe

SECRETS = {
    "MARCH_REWARD_TOKEN": "a", "MARCH_SIGNING_KEY": "b", "HF_TOKEN": "c", "MLFLOW_TRACKING_PASSWORD": "d",
    "OTEL_EXPORTER_OTLP_HEADERS": "authorization=e", "https_proxy": "http://me:pw@proxy:3128",
}  # fmt: skip
PLAIN = {
    "NCCL_SOCKET_IFNAME": "eth0", "HF_HOME": "/models", "MLFLOW_TRACKING_URI": "http://mlflow:5000",
    "HTTP_PROXY": "http://proxy:3128", "no_proxy": "10.0.0.0/8", "MARCH_TRAINER_SETTINGS": "{}",
}  # fmt: skip


class Store:
    """Stands for Ray's key-value store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: dict[str, str] = {}
        place = "ray.experimental.internal_kv._internal_kv"
        monkeypatch.setattr(f"{place}_put", lambda key, value, namespace: self.kept.update({key: value}))
        monkeypatch.setattr(f"{place}_get", lambda key, namespace: self.kept.get(key))
        monkeypatch.setattr(f"{place}_del", lambda key, namespace: self.kept.pop(key))


def test_what_other_nodes_cannot_know_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {name: value for name, value in (PLAIN | SECRETS).items() if not name.startswith("MARCH_")}
    for name, value in (wanted | {"HOME": "/me", "CUDA_VISIBLE_DEVICES": "0", "HFX": "no"}).items():
        monkeypatch.setenv(name, value)
    found = ray_worker.passed_on()
    assert wanted.items() <= found.items()
    assert not found.keys() & {"HOME", "CUDA_VISIBLE_DEVICES", "HFX", "PATH"}


def test_no_secret_is_in_what_ray_shows_and_every_worker_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    store, given = Store(monkeypatch), dict[str, Any]()
    shown, secrets = ray_worker.parted(PLAIN | SECRETS)
    assert (shown, secrets) == (PLAIN, SECRETS)

    monkeypatch.setattr("ray.init", lambda **options: given.update(options))
    monkeypatch.setattr("ray.get_runtime_context", lambda: type("Context", (), {"gcs_address": "here"}))
    recipe = load_recipe("tiny", ["cluster.ray_address=auto"])
    assert start_ray(recipe, shown | ray_worker.key_of("r1"), cuda=False) == "here"
    runtime = given["runtime_env"]
    assert not any(value in json.dumps(runtime) for value in SECRETS.values() if len(value) > 1)
    assert not runtime["env_vars"].keys() & SECRETS.keys()
    assert runtime["worker_process_setup_hook"] == f"{ray_worker.__name__}.{ray_worker.begin.__name__}"

    with ray_worker.handed_over("r1", secrets):
        assert in_a_worker(runtime["env_vars"], monkeypatch).items() >= (PLAIN | SECRETS).items()
    assert not store.kept


def in_a_worker(variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a worker after its start."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", dict(variables))
        patch.setattr(cpu, "install", lambda: None)
        ray_worker.begin()
        return dict(os.environ)


def test_a_worker_without_its_secrets_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    Store(monkeypatch)
    monkeypatch.setattr(ray_worker, "_COMES_WITHIN_S", 0.1)
    with pytest.raises(TimeoutError, match="did not come"):
        in_a_worker(ray_worker.key_of("r1"), monkeypatch)


def test_a_ray_that_is_gone_hides_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    Store(monkeypatch).kept = {}
    with pytest.raises(RuntimeError, match="the training's"), ray_worker.handed_over("r1", {}):
        monkeypatch.setattr("ray.experimental.internal_kv._internal_kv_del", None)
        raise RuntimeError("the training's")


def test_the_object_store_is_of_the_size_that_a_step_takes() -> None:
    gib = 1024**3
    assert object_store_bytes(load_recipe("tiny"), 24 * gib) == OBJECT_STORE_BYTES
    large = load_recipe("llama31_8b_stem", ["rollout.batch_size=512"])
    needed = object_store_bytes(large, 2000 * gib)
    assert needed == large.rows_per_step * large.max_model_len * 256 > 4 * OBJECT_STORE_BYTES
    assert object_store_bytes(large, 5 * gib) == int(1.5 * gib)  # Ray's own share
