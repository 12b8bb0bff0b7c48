"""Requests, quotas and volumes of the cluster's overlays are those of their recipes' estimates."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest

from orchestration.retrain.evaluation import check_evaluation
from orchestration.retrain.job import Job, load_job
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import Estimate, estimate
from pipeline.settings.recipe import Recipe, load_recipe
from tests.benchmark_files import FOLDERS
from tests.kubernetes_files import OVERLAYS, built, containers, named, of_kind, pods, quantity

GPU_OVERLAYS = OVERLAYS[1:]


def job_of(overlay: str, folder: Path) -> tuple[Job, Recipe]:
    file = folder / "job.yaml"
    file.write_text(named(built(overlay), "ConfigMap", "retrain-job")["data"]["job.yaml"])
    job = load_job(str(file))
    overrides = [one for one in job.recipe.overrides if not one.startswith("model=")]  # in a cluster's cache
    return job, load_recipe(job.recipe.name, overrides)


def ray_pods(overlay: str) -> list[tuple[int, dict[str, str]]]:
    """How many of each, and what one requests."""
    spec = named(built(overlay), "RayJob", "retrain")["spec"]["rayClusterSpec"]
    groups = [(1, spec["headGroupSpec"])] + [
        (one["replicas"], one) for one in spec.get("workerGroupSpecs", [])
    ]
    return [
        (count, one["template"]["spec"]["containers"][0]["resources"]["requests"]) for count, one in groups
    ]


def memory_gib(plan: Estimate, gpus: int) -> int:
    """The rule of infra/kubernetes/README.md."""
    return 16 * ceil((plan.memory.host_per_node / GIB + 8 * gpus + 16) / 16)


def volume_gib(plan: Estimate) -> int:
    """The rule of infra/kubernetes/README.md."""
    held = plan.storage.kept + plan.storage.checkpoint + 2 * plan.storage.model
    return 100 * ceil(held / GIB / 100)


@pytest.mark.parametrize("overlay", GPU_OVERLAYS)
def test_the_second_retraining_fits_the_volume_since_finished_checkpoints_go(
    overlay: str, tmp_path: Path
) -> None:
    """Weights are in S3; on the volume are checkpoints, the model at the end, and the parent's weights."""
    job, recipe = job_of(overlay, tmp_path)
    assert job.retention.keep_last is not None
    held = estimate(recipe).storage
    one = held.kept + held.checkpoint + 2 * held.model  # as infra/kubernetes/README.md counts it
    second = one + 2 * held.model  # the first one's, and as the parent's weights in the cache
    assert second <= volume_gib(estimate(recipe)) * GIB


@pytest.mark.parametrize("overlay", GPU_OVERLAYS)
def test_requests_are_those_of_the_estimate(overlay: str, tmp_path: Path) -> None:
    _, recipe = job_of(overlay, tmp_path)
    plan, cluster = estimate(recipe), recipe.cluster
    assert not plan.warnings
    requests = ray_pods(overlay)
    assert sum(count for count, _ in requests) == cluster.num_nodes
    for _, one in requests:
        assert one["nvidia.com/gpu"] == str(cluster.gpus_per_node)
        assert one["memory"] == f"{memory_gib(plan, cluster.gpus_per_node)}Gi"
        assert one["cpu"] == str(4 * cluster.gpus_per_node + 8)
    claim = named(built(overlay), "PersistentVolumeClaim", "work")["spec"]
    assert claim["resources"]["requests"]["storage"] == f"{volume_gib(plan)}Gi"
    assert claim["accessModes"] == ["ReadWriteMany" if cluster.num_nodes > 1 else "ReadWriteOnce"]


def test_the_smoke_test_declares_the_gpus_that_its_roles_ask_for(tmp_path: Path) -> None:
    _, recipe = job_of("cpu-smoke", tmp_path)
    spec = named(built("cpu-smoke"), "RayJob", "retrain")["spec"]["rayClusterSpec"]["headGroupSpec"]
    assert spec["rayStartParams"]["num-gpus"] == str(recipe.num_gpus)
    assert spec["rayStartParams"]["num-cpus"] == str(recipe.num_gpus + 2)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_quota_is_one_training(overlay: str) -> None:
    objects = built(overlay)
    (look,) = containers(pods(objects)["CronJob/retrain"])
    labels = dict(word.split("=") for word in look["args"][-1].split()[-2:])
    queue = named(objects, "LocalQueue", labels["kueue.x-k8s.io/queue-name"])
    named(objects, "WorkloadPriorityClass", labels["kueue.x-k8s.io/priority-class"])
    (group,) = named(objects, "ClusterQueue", queue["spec"]["clusterQueue"])["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    named(objects, "ResourceFlavor", flavor["name"])
    quota = {one["name"]: quantity(str(one["nominalQuota"])) for one in flavor["resources"]}
    needed: dict[str, float] = {}
    for count, one in ray_pods(overlay):
        for name, text in one.items():
            needed[name] = needed.get(name, 0.0) + count * quantity(text)
    assert set(quota) == set(group["coveredResources"]) == set(needed)
    if overlay in GPU_OVERLAYS:
        assert quota == needed
    else:
        assert all(needed[name] <= quota[name] < 2 * needed[name] + 1 for name in quota)


@pytest.mark.parametrize("overlay", GPU_OVERLAYS)
def test_the_evaluation_of_a_job_is_not_refused_after_the_training(overlay: str, tmp_path: Path) -> None:
    job, _ = job_of(overlay, tmp_path)
    here = {name: FOLDERS[name] for name in job.evaluation.benchmarks}
    check_evaluation(job.evaluation.model_copy(update={"benchmarks": here}))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_jobs_and_recipes_are_read(overlay: str, tmp_path: Path) -> None:
    job, recipe = job_of(overlay, tmp_path)
    assert str(job.folder).startswith("/var/lib/march/")
    assert recipe.cluster.ray_address == "auto"
    if recipe.cluster.num_nodes > 1:
        assert recipe.reward.host == named(built(overlay), "Service", "trainer")["metadata"]["name"]
    services = [
        one["data"] for one in of_kind(built(overlay), "ConfigMap") if one["metadata"]["name"] == "services"
    ]
    stored = job.store.location or services[0]["MARCH_ARTIFACTS"]
    assert stored.startswith(("s3://march-artifacts/", "/var/lib/march/"))
