"""A stand-in for Kubernetes' API with RayJobs alone, for a real kubectl; it writes down what it is asked."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

_RAYJOBS = re.compile(r"/apis/ray\.io/v1/namespaces/march/rayjobs(?:/(\w+))?")
_VERBS = ["create", "get", "list", "watch"]
_GROUP = {
    "name": "ray.io",
    "versions": [{"groupVersion": "ray.io/v1", "version": "v1"}],
    "preferredVersion": {"groupVersion": "ray.io/v1", "version": "v1"},
}
_RESOURCE = {
    "name": "rayjobs",
    "singularName": "rayjob",
    "namespaced": True,
    "kind": "RayJob",
    "verbs": _VERBS,
}
# What tells kubectl that the server looks at fields itself.
_CHECKS = {
    "parameters": [{"name": "fieldValidation", "in": "query"}],
    "x-kubernetes-group-version-kind": {"group": "ray.io", "kind": "RayJob", "version": "v1"},
}
_DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    "/apis/ray.io/v1": {"kind": "APIResourceList", "groupVersion": "ray.io/v1", "resources": [_RESOURCE]},
    "/openapi/v3": {"paths": {"apis/ray.io/v1": {"serverRelativeURL": "/openapi/v3/apis/ray.io/v1"}}},
    "/openapi/v3/apis/ray.io/v1": {
        "openapi": "3.0.0",
        "info": {"title": "RayJobs", "version": "1"},
        "paths": {"/apis/ray.io/v1/namespaces/{namespace}/rayjobs/{name}": {"patch": _CHECKS}},
    },
}


class Api:
    """The RayJobs that are there, and the verbs that were asked of them."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.verbs: list[str] = []
        self.changed = threading.Condition()

    def end(self, name: str, status: str) -> None:
        """KubeRay's last word about a RayJob."""
        with self.changed:
            self.jobs[name]["status"] = {"jobStatus": status, "endTime": "2026-01-05T03:00:00Z"}
            self.jobs[name]["metadata"]["resourceVersion"] = "2"
            self.changed.notify_all()

    def answer(self, verb: str, name: str | None, body: Any) -> tuple[int, dict[str, Any]]:
        with self.changed:
            self.verbs.append(verb)
            if verb == "create":
                name = body["metadata"]["name"]
                if name in self.jobs:
                    return 409, _refusal("AlreadyExists", 409)
                body["metadata"] |= {"uid": "1", "resourceVersion": "1"}
                self.jobs[name] = body
                return 201, body
            if verb == "get":
                found = self.jobs.get(str(name))
                return (200, found) if found else (404, _refusal("NotFound", 404))
            items = list(self.jobs.values())
            return 200, {
                "apiVersion": "ray.io/v1",
                "kind": "RayJobList",
                "metadata": {"resourceVersion": "1"},
                "items": items,
            }


def _refusal(reason: str, code: int) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": reason,
    }


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Nothing; what was asked is in `verbs`."""

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path in _DISCOVERY:
                self._send(200, _DISCOVERY[path])
            elif found := _RAYJOBS.fullmatch(path):
                if "watch=true" in query:
                    self._watch()
                else:
                    self._send(*api.answer("get" if found[1] else "list", found[1], None))
            else:
                self._send(404, _refusal("NotFound", 404))

        def do_POST(self) -> None:
            body = yaml.safe_load(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(*api.answer("create", None, body))

        def _watch(self) -> None:
            """One event when a job changes, then the end."""
            with api.changed:
                api.verbs.append("watch")
                api.changed.wait_for(lambda: any("status" in job for job in api.jobs.values()), timeout=20)
                events = [{"type": "MODIFIED", "object": job} for job in api.jobs.values()]
            self._send_bytes(200, b"".join(json.dumps(event).encode() + b"\n" for event in events))

        def _send(self, code: int, body: dict[str, Any]) -> None:
            self._send_bytes(code, json.dumps(body).encode())

        def _send_bytes(self, code: int, content: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


@contextmanager
def serve_api(folder: Path) -> Iterator[tuple[Api, Path]]:
    """The API on the loopback, and the file that tells kubectl where it is."""
    api = Api()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    try:
        yield api, file
    finally:
        server.shutdown()
        server.server_close()
