"""What no schema says of the cluster's manifests: rights, bounds, and names that must meet."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes_files import (
    KUBERNETES,
    OVERLAYS,
    Manifest,
    built,
    containers,
    named,
    of_kind,
    pods,
    quantity,
)

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SECRETS = {
    "march_reward_token",
    "reward_tokens",
    "s3_access_key",
    "s3_secret_key",
    "mlflow_password",
    "hf_token",
}
OURS = {"march-audit", "march-orchestrator", "march-train-cpu", "march-train-gpu"}
# Ray's, which KubeRay's own probes ask; no container names the port.
RAY_AGENT_PORT = 52365


def all_pods() -> list[Any]:
    return [
        pytest.param(overlay, where, pod, id=f"{overlay}-{where}")
        for overlay in OVERLAYS
        for where, pod in pods(built(overlay)).items()
    ]


@pytest.mark.parametrize(("overlay", "where", "pod"), all_pods())
def test_pods_are_restricted(overlay: str, where: str, pod: Manifest) -> None:
    """Kubernetes' restricted standard, and what it leaves open: read-only roots, no needless API token."""
    spec = pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 10001
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is (where == "CronJob/retrain")
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    kinds = {key for volume in spec["volumes"] for key in volume if key != "name"}
    assert kinds <= {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, container["name"]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert "/tmp" in mounts
        assert "/var/lib/march" in mounts or not container["image"].startswith("march-")
        assert {mount["name"] for mount in container["volumeMounts"]} <= {
            one["name"] for one in spec["volumes"]
        }


@pytest.mark.parametrize(("overlay", "where", "pod"), all_pods())
def test_containers_have_bounds_and_probes(overlay: str, where: str, pod: Manifest) -> None:
    for container in containers(pod):
        resources = container["resources"]
        assert {"cpu", "memory"} <= set(resources["requests"]) & set(resources["limits"]), container["name"]
        assert quantity(resources["requests"]["memory"]) <= quantity(resources["limits"]["memory"])
        if where.startswith("CronJob"):
            continue  # its commands end; nobody asks whether they are alive
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for probe in ("readinessProbe", "livenessProbe"):
            asked = container[probe]["httpGet"]["port"]
            assert asked in {*ports, RAY_AGENT_PORT}, f"{container['name']}: {probe}"


@pytest.mark.parametrize(("overlay", "where", "pod"), all_pods())
def test_images_are_of_this_version(overlay: str, where: str, pod: Manifest) -> None:
    for container in containers(pod):
        name, tag = container["image"].rsplit(":", 1)
        assert name in OURS and tag == VERSION
    assert pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "march"


@pytest.mark.parametrize(("overlay", "where", "pod"), all_pods())
def test_what_a_pod_names_is_there(overlay: str, where: str, pod: Manifest) -> None:
    objects, spec = built(overlay), pod["spec"]
    named(objects, "ServiceAccount", spec["serviceAccountName"])
    named(objects, "PriorityClass", spec["priorityClassName"])
    for volume in spec["volumes"]:
        if "configMap" in volume:
            named(objects, "ConfigMap", volume["configMap"]["name"])
        if "persistentVolumeClaim" in volume:
            named(objects, "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
        if "secret" in volume:
            assert volume["secret"]["secretName"] == "march"
            assert {item["key"] for item in volume["secret"]["items"]} <= SECRETS
    for container in containers(pod):
        for source in container.get("envFrom", []):
            if not source["configMapRef"].get("optional"):
                named(objects, "ConfigMap", source["configMapRef"]["name"])
        for variable in container.get("env", []):
            assert not variable["name"].startswith("VLLM_SERVER_DEV_MODE")
            if key := variable.get("valueFrom", {}).get("secretKeyRef"):
                assert key["name"] == "march" and key["key"] in SECRETS
            elif any(word in variable["name"] for word in ("TOKEN", "PASSWORD", "SECRET", "KEY")):
                assert variable["name"].endswith("_FILE"), f"{variable['name']}: a secret in clear text"


def test_the_readme_names_every_secret() -> None:
    text = (KUBERNETES / "README.md").read_text()
    assert all(key in text for key in SECRETS)
    assert not any(of_kind(built(overlay), "Secret") for overlay in OVERLAYS)


def test_a_secret_of_one_line_is_made_without_its_files_newline() -> None:
    text = (KUBERNETES / "README.md").read_text()
    assert re.findall(r"--from-file=(\w+)", text) == ["reward_tokens"]
    assert set(re.findall(r'--from-literal=(\w+)="\$\(', text)) == SECRETS - {"reward_tokens"}


def test_the_readme_adds_each_repository_that_it_installs_from() -> None:
    text = (KUBERNETES / "README.md").read_text()
    added = set(re.findall(r"helm repo add (\S+) https://", text))
    assert added == set(re.findall(r"helm install \S+ ([\w-]+)/", text))


def test_operators_are_of_one_version_and_need_no_flag_of_ours() -> None:
    text = (KUBERNETES / "README.md").read_text().replace("\\\n", " ")
    installs = [line for line in text.splitlines() if line.strip().startswith("helm install ")]
    assert len(installs) == 4 and all("--version " in line for line in installs)
    assert "env[" not in text and "RAYJOB_" not in text


def selected(objects: tuple[Manifest, ...], labels: dict[str, str]) -> list[Manifest]:
    """Pods with all those labels; Ray's own are given by KubeRay."""
    wanted = {key: value for key, value in labels.items() if not key.startswith("ray.io/")}
    return [pod for pod in pods(objects).values() if wanted.items() <= pod["metadata"]["labels"].items()]


def ports_of(found: list[Manifest]) -> set[Any]:
    declared = [port for pod in found for one in containers(pod) for port in one.get("ports", [])]
    return {port["name"] for port in declared} | {port["containerPort"] for port in declared}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_services_monitors_and_budgets_select_a_pod(overlay: str) -> None:
    objects = built(overlay)
    for service in of_kind(objects, "Service"):
        found = selected(objects, service["spec"]["selector"])
        assert found, service["metadata"]["name"]
        targets = {port.get("targetPort", port["port"]) for port in service["spec"]["ports"]}
        assert targets <= ports_of(found)
    for budget in of_kind(objects, "PodDisruptionBudget"):
        assert selected(objects, budget["spec"]["selector"]["matchLabels"])
    for monitor in of_kind(objects, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        (service,) = [
            one for one in of_kind(objects, "Service") if wanted.items() <= one["metadata"]["labels"].items()
        ]
        assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
        assert monitor["spec"]["endpoints"][0]["authorization"]["credentials"]["key"] in SECRETS


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_network_policies(overlay: str) -> None:
    objects = built(overlay)
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, "NetworkPolicy")}
    assert policies["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, spec in policies.items():
        inside = selected(objects, spec["podSelector"].get("matchLabels", {}))
        assert inside or name == "auditors", name
        for rule in spec.get("ingress", []):
            assert rule["from"], f"{name}: anybody may come in"
            assert {port["port"] for port in rule.get("ports", [])} <= ports_of(inside), name
        for rule in spec.get("egress", []):
            for peer in rule["to"]:
                labels = peer.get("podSelector", {}).get("matchLabels")
                if labels and "ports" in rule:
                    assert {port["port"] for port in rule["ports"]} <= ports_of(selected(objects, labels))
                if "ipBlock" in peer and name != "names":
                    assert "169.254.0.0/16" in peer["ipBlock"]["except"], f"{name}: the metadata service"
    assert callers(policies["vllm"]) == ["reward", "training"]
    assert callers(policies["training"]) == ["training", "kuberay-operator"]
    assert "training" in callers(policies["reward"])


def callers(spec: Manifest) -> list[str]:
    peers = chain.from_iterable(rule["from"] for rule in spec["ingress"])
    labels = [peer["podSelector"]["matchLabels"] for peer in peers]
    return [one["app.kubernetes.io/name"] for one in labels if "app.kubernetes.io/name" in one]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_is_scaled_has_no_number_of_its_own(overlay: str) -> None:
    objects = built(overlay)
    for scaled in of_kind(objects, "ScaledObject"):
        target = named(objects, "Deployment", scaled["spec"]["scaleTargetRef"]["name"])
        assert "replicas" not in target["spec"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rights_are_few(overlay: str) -> None:
    objects = built(overlay)
    (role,) = of_kind(objects, "Role")
    verbs = ["get", "list", "create", "delete"]
    assert role["rules"] == [{"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": verbs}]
    (binding,) = of_kind(objects, "RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "retrain", "namespace": "march"}]
    assert not {one["kind"] for one in objects} & {"ClusterRole", "ClusterRoleBinding"}
    assert all(one["automountServiceAccountToken"] is False for one in of_kind(objects, "ServiceAccount"))
