"""MLflow's own webhooks tell of a decision and of a new champion, as docs/promotion.md says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from mlflow import MlflowClient

from reward.types import RagQuery
from tests.finished_run import write_finished_run
from tests.march_cli import march
from tests.mlflow_process import mlflow_server
from tests.promotion_evidence import better, evidence, write_evidence
from tests.registry_place import POLICY

from reward.offline.files import weights_sha256  # isort: skip

pytestmark = pytest.mark.slow
EVENTS = ["model_version_tag.set", "model_version_alias.created"]


@pytest.fixture
def heard() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a listener on loopback, and what it hears."""
    bodies: list[dict[str, Any]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["X-MLflow-Signature"]
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", bodies
        server.shutdown()


def test_a_promotion_is_heard_of(
    heard: tuple[str, list[dict[str, Any]]],
    picnic: RagQuery,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, bodies = heard
    monkeypatch.setenv("MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "http,https")
    monkeypatch.setenv("MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS", "true")
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mlflow").mkdir()
    with mlflow_server(tmp_path / "mlflow") as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        MlflowClient(uri).create_webhook("decisions", url, events=EVENTS, secret="a secret")
        run = write_finished_run(tmp_path, picnic)
        weights = weights_sha256(run / "model")
        evaluation = write_evidence(tmp_path / "eval", evidence(better, num_items=60, weights=weights))
        (tmp_path / "policy.yaml").write_text(POLICY % "")
        assert march("model", "register", "shop", run / "model") == 0
        assert f"march model lineage {run} --publish prints what registers both" in capsys.readouterr().err
        policy = ["--policy", tmp_path / "policy.yaml", "--by", "ann"]
        assert march("model", "promote", "shop", "--evaluation", evaluation, *policy) == 0
        end = time.monotonic() + 30
        while not any(body["entity"] == "model_version_alias" for body in bodies):
            assert time.monotonic() < end, bodies
            time.sleep(0.1)
    decided = [body["data"] for body in bodies if body["data"].get("key") == "march.decision_uri"]
    assert decided and decided[-1]["value"].startswith("file://")
    champions = [body["data"] for body in bodies if body["entity"] == "model_version_alias"]
    assert {"name": "shop", "alias": "champion", "version": "1"} in champions
