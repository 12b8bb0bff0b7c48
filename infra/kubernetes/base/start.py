"""Starts a RayJob from a suspended one that is its template: `python start.py TEMPLATE LABEL=VALUE...`.

The copy gets a name of its own and the labels given, such as those of Kueue. While a copy is queued or
runs, no other is created; of those that are over, the newest stay for people to look at. Three that failed
in a row are an error here for six hours: `march retrain` counts only failures that it could record. So is one
that nothing takes up for twelve hours.
"""

import os
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

API = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
ACCOUNT = Path(os.environ.get("KUBERNETES_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
TEMPLATE = "march/template"  # label of a copy
FAILED = ("Failed", "ValidationFailed")
OVER = ("Complete", *FAILED)
STARTED = ("Running", "Retrying")
KEPT, REST, PATIENCE = 3, timedelta(hours=6), timedelta(hours=12)


def ask(client: httpx.Client, method: str, path: str, **given: Any) -> Any:
    """The API's answer; ends the program where it refuses."""
    answer = client.request(method, path, **given)
    if not answer.is_success:
        sys.exit(f"RayJob {name}: {method}: {answer.status_code}: {answer.text:.500}")
    return answer.json()


def copy_of(template: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """What is created."""
    metadata = template["metadata"]
    spec = {key: value for key, value in template["spec"].items() if key != "suspend"}
    labels = {**metadata.get("labels", {}), **labels, TEMPLATE: metadata["name"]}
    return {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "metadata": {"generateName": f"{metadata['name']}-", "labels": labels},
        "spec": spec,
    }


def status_of(copy: dict[str, Any]) -> str:
    """How far it is, as KubeRay says; nothing yet for a new one."""
    return copy.get("status", {}).get("jobDeploymentStatus", "")


name, labels = sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])
namespace = (ACCOUNT / "namespace").read_text().strip()
authority = ACCOUNT / "ca.crt" if API.startswith("https:") else None
client = httpx.Client(
    base_url=f"{API}/apis/ray.io/v1/namespaces/{namespace}/rayjobs",
    headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}"},
    timeout=60,
    trust_env=False,
    verify=ssl.create_default_context(cafile=authority),
)
with client:
    copies = ask(client, "GET", "", params={"labelSelector": f"{TEMPLATE}={name}"})["items"]
    copies.sort(key=lambda one: one["metadata"]["creationTimestamp"])
    for one in copies:
        if status_of(one) not in OVER:
            waits = datetime.now(UTC) - datetime.fromisoformat(one["metadata"]["creationTimestamp"])
            if status_of(one) not in STARTED and waits > PATIENCE:
                hours = waits // timedelta(hours=1)
                look = "look at the quota, the nodes and KubeRay's operator, or delete it"
                sys.exit(f"RayJob {one['metadata']['name']}: has not started for {hours} hours; {look}")
            print(f"RayJob {one['metadata']['name']}: is there already")
            sys.exit()
    newest = copies[-KEPT:]
    if len(newest) == KEPT and all(status_of(one) in FAILED for one in newest):
        last = datetime.fromisoformat(newest[-1]["metadata"]["creationTimestamp"])
        if datetime.now(UTC) - last < REST:
            sys.exit(f"RayJob {name}: the last {KEPT} failed; look at them, then delete them to go on")
    template = ask(client, "GET", f"/{name}")
    made = ask(client, "POST", "", params={"fieldValidation": "Strict"}, json=copy_of(template, labels))
    print(f"RayJob {made['metadata']['name']}: created")
    for old in copies[:-KEPT]:
        ask(client, "DELETE", f"/{old['metadata']['name']}")
