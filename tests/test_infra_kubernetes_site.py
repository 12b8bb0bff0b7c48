"""What differs from cluster to cluster: DNS, identities, networks, images, namespaces; each in one place."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes_files import (
    KUBERNETES,
    OVERLAYS,
    VERSIONS,
    Manifest,
    built,
    built_from,
    containers,
    named,
    of_kind,
    pods,
    problems,
)
from tests.monitoring import needs_promtool

DIGESTS = KUBERNETES.parent / "images" / "digests.sh"
IDENTITIES = ("aws-irsa", "aws-pod-identity", "gke-identity")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(KUBERNETES, tmp_path / "kubernetes"))


def lets_out(objects: tuple[Manifest, ...], pod: str, address: str, port: int, protocol: str = "TCP") -> bool:
    """Whether a policy lets a pod reach an address."""
    for policy in of_kind(objects, "NetworkPolicy"):
        labels = policy["spec"]["podSelector"].get("matchLabels", {})
        if labels not in ({}, {"app.kubernetes.io/name": pod}):
            continue
        for rule in policy["spec"].get("egress", []):
            ports = [(one["protocol"], one["port"]) for one in rule.get("ports", [])]
            blocks = [peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer]
            if (not ports or (protocol, port) in ports) and any(_holds(one, address) for one in blocks):
                return True
    return False


def _holds(block: dict[str, Any], address: str) -> bool:
    found = ipaddress.ip_address(address)
    excepted = [ipaddress.ip_network(one) for one in block.get("except", [])]
    return found in ipaddress.ip_network(block["cidr"]) and not any(found in one for one in excepted)


@pytest.mark.parametrize("pod", ["reward", "vllm", "training", "retrain"])
@pytest.mark.parametrize("address", ["169.254.20.10", "10.96.0.10", "172.20.0.10", "169.254.169.254"])
def test_every_pod_asks_the_names_of_nodes_and_clouds(pod: str, address: str) -> None:
    """NodeLocal DNSCache, the service's address on the node (kubeadm, EKS), and Google's Cloud DNS."""
    objects = built("single-node-gpu")
    assert lets_out(objects, pod, address, 53, "UDP") and lets_out(objects, pod, address, 53)
    assert not lets_out(objects, pod, "8.8.8.8", 53, "UDP")


@pytest.mark.parametrize("pod", ["training", "retrain"])
def test_no_pod_reaches_the_metadata_service_unless_an_identity_needs_it(tree: Path, pod: str) -> None:
    reached = {
        "aws-pod-identity": [("169.254.170.23", 80)],
        "gke-identity": [("169.254.169.254", 80), ("169.254.169.252", 988)],
    }
    everything = {one for found in reached.values() for one in found}
    for identity in (None, *IDENTITIES):
        objects = with_component(tree, identity) if identity else built("single-node-gpu")
        open_now = {one for one in everything if lets_out(objects, pod, *one)}
        assert open_now == set(reached.get(identity or "", []))
        assert not lets_out(objects, "reward", "169.254.169.254", 80)
        assert lets_out(objects, pod, "52.94.1.1", 443)  # a token service


def with_component(tree: Path, name: str, overlay: str = "single-node-gpu") -> tuple[Manifest, ...]:
    """An overlay with one more component."""
    file = tree / "overlays" / overlay / "kustomization.yaml"
    before = file.read_text()
    given = yaml.safe_load(before)
    given["components"].insert(0, f"../../components/{name}")
    file.write_text(yaml.safe_dump(given))
    try:
        return built_from(file.parent)
    finally:
        file.write_text(before)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identities_are_the_accounts(tree: Path, identity: str) -> None:
    objects = with_component(tree, identity)
    assert [problem for one in objects for problem in problems(one, VERSIONS[-1])] == []
    annotations = [
        named(objects, "ServiceAccount", name)["metadata"].get("annotations", {})
        for name in ("training", "retrain", "console")
    ]
    if identity == "aws-pod-identity":  # an association on the cluster's side
        assert annotations == [{}, {}, {}]
    else:
        assert len({str(one) for one in annotations}) == 3 and all(annotations)


def test_a_worker_is_what_the_head_is_and_each_node_has_its_adapter() -> None:
    objects = built("multi-node-gpu")
    cluster = named(objects, "RayJob", "retrain")["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["template"] == cluster["headGroupSpec"]["template"]
    (container,) = containers(workers["template"])
    assert container["resources"]["limits"]["rdma/rdma_shared_device_a"] == "1"
    assert {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} <= {one["name"] for one in container["env"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_engine_and_looks_tolerate_the_taint_of_gpu_nodes(overlay: str) -> None:
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    for where in ("Deployment/vllm", "CronJob/retrain"):
        assert gpu in pods(built(overlay))[where]["spec"]["tolerations"]


def test_namespaces_of_others_are_one_setting_each(tree: Path) -> None:
    site = tree / "components" / "site" / "kustomization.yaml"
    text = site.read_text().replace("kuberay=kuberay ", "kuberay=ray-system ")
    site.write_text(text.replace("monitoring=monitoring ", "monitoring=observability "))
    objects = built_from(tree / "overlays" / "single-node-gpu")
    text = yaml.safe_dump_all(objects)
    assert "ray-system" in text and text.count("observability") == 2
    assert "kubernetes.io/metadata.name: kuberay" not in text and ".monitoring.svc" not in text
    assert not [one for one in objects if one["metadata"]["name"] == "site"]


def test_pushed_images_are_named_by_digest_in_one_place(tree: Path, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\ncase $4 in *gpu*) exit 1;; esac\nprintf sha256:%064d 7\n")
    docker.chmod(0o755)
    site = tree / "components" / "site" / "kustomization.yaml"
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", DIGESTS, "registry.example/ml", site], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and "march-train-gpu: not in registry.example/ml" in done.stdout, done.stderr
    digest = "sha256:" + "7".zfill(64)
    for overlay in OVERLAYS[:2]:
        for pod in pods(built_from(tree / "overlays" / overlay)).values():
            for container in containers(pod):
                name, _, pinned = container["image"].partition("@")
                if "gpu" in name:
                    assert name == "march-train-gpu:0.1.0"
                else:
                    assert name.startswith("registry.example/ml/march-") and pinned == digest


@needs_promtool
def test_a_look_that_fails_is_told_until_one_ends_well(tmp_path: Path) -> None:
    common = 'namespace="march"'
    series = {  # looks at 10 and 20 minutes fail, that at 30 ends well; its history stays
        f'kube_job_status_start_time{{{common},job_name="retrain-1"}}': "_x9 600x60",
        f'kube_job_status_failed{{{common},job_name="retrain-1",reason="BackoffLimitExceeded"}}': "_x9 1x60",
        f'kube_job_status_start_time{{{common},job_name="retrain-2"}}': "_x19 1200x60",
        f'kube_job_status_failed{{{common},job_name="retrain-2",reason="BackoffLimitExceeded"}}': "_x19 1x60",
        f'kube_cronjob_created{{{common},cronjob="retrain"}}': "0x70",
        f'kube_cronjob_status_last_successful_time{{{common},cronjob="retrain"}}': "_x30 1800x40",
    }
    assert_told(
        tmp_path, "MarchRetrainingFails", series, {"8m": None, "28m": {"namespace": "march"}, "40m": None}
    )


@needs_promtool
def test_a_reward_server_that_nobody_reaches_is_told(tmp_path: Path) -> None:
    """Two pods: one is gone from the tenth minute on, the other one does not answer from the 20th on."""
    up = 'up{namespace="march",service="reward",pod="%s"}'
    series = {up % "a": "1x9 _x60", up % "b": "1x19 0x50"}
    assert_told(tmp_path, "MarchTargetDown", series, {"18m": None, "27m": {}})


def assert_told(
    folder: Path, alert: str, series: dict[str, str], cases: dict[str, dict[str, str] | None]
) -> None:
    """`cases`: by the time, the labels of the alert beside its own, or None where it does not fire."""
    rules = named(built("single-node-gpu"), "PrometheusRule", "retrain")["spec"]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    (rule,) = [one for one in rules["groups"][0]["rules"] if one["alert"] == alert]

    def fired(labels: dict[str, str]) -> dict[str, object]:
        return {"exp_labels": rule["labels"] | labels, "exp_annotations": rule["annotations"]}

    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": at, "alertname": alert, "exp_alerts": [] if labels is None else [fired(labels)]}
            for at, labels in cases.items()
        ],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
