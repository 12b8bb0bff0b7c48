"""Creates a RayJob; one of its name that is there already is left alone: `python start.py rayjob.yaml`."""

import os
import ssl
import sys
from pathlib import Path

import httpx
import yaml

API = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
ACCOUNT = Path(os.environ.get("KUBERNETES_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
EXISTS = 409

rayjob = yaml.safe_load(Path(sys.argv[1]).read_text())
name, namespace = rayjob["metadata"]["name"], rayjob["metadata"]["namespace"]
authority = ACCOUNT / "ca.crt" if API.startswith("https:") else None
answer = httpx.post(
    f"{API}/apis/{rayjob['apiVersion']}/namespaces/{namespace}/rayjobs",
    params={"fieldValidation": "Strict"},
    headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}"},
    json=rayjob,
    timeout=60,
    trust_env=False,
    verify=ssl.create_default_context(cafile=authority),
)
if answer.status_code == EXISTS:
    print(f"RayJob {name}: is there already")
elif answer.is_success:
    print(f"RayJob {name}: created")
else:
    sys.exit(f"RayJob {name}: {answer.status_code}: {answer.text:.500}")
