"""Parts of the registry that need no MLflow: notifications, the smoke test, refusals."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestration.promotion.policy import GatePolicy, SmokePolicy, WebhookPolicy
from orchestration.promotion.records import GateState
from orchestration.registry import trial
from orchestration.registry.notify import notify
from orchestration.registry.smoke import smoke_gate
from orchestration.registry.store import ModelVersion, _checked
from pipeline.record.tracking import refuse_password
from tests.march_cli import refused
from tests.test_decision_chain import KEY
from tests.test_retrain_job import write_job
from tests.vllm_process import TINY_POLICY


class Receiver(ThreadingHTTPServer):
    """Takes notifications; answers by its list of statuses, then 200."""

    statuses: list[int]
    got: list[tuple[dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver(("127.0.0.1", 0), Handler)
    server.statuses, server.got = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def webhook(server: Receiver, attempts: int = 4) -> WebhookPolicy:
    return WebhookPolicy(url=f"http://127.0.0.1:{server.server_port}/hook", attempts=attempts, timeout_s=30)


def test_a_notification_is_signed_with_its_time(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARCH_WEBHOOK_KEY", KEY)
    assert notify(webhook(receiver), {"model": "m"}) == ""
    ((headers, body),) = receiver.got
    seconds, mac = (part.partition("=")[2] for part in headers["March-Signature"].split(","))
    right = hmac.new(KEY.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    assert mac == right and json.loads(body) == {"model": "m"}


def test_a_notification_is_sent_again_under_one_name(receiver: Receiver) -> None:
    receiver.statuses = [503, 429]
    assert notify(webhook(receiver), {}) == ""
    assert len(receiver.got) == 3
    assert len({headers["March-Delivery"] for headers, _ in receiver.got}) == 1


@pytest.mark.parametrize(("statuses", "attempts"), [([500, 500], 2), ([403], 1)])
def test_a_notification_that_fails_is_told_and_never_raised(
    receiver: Receiver, statuses: list[int], attempts: int
) -> None:
    receiver.statuses = list(statuses)
    assert str(statuses[0]) in notify(webhook(receiver, attempts=2), {})
    assert len(receiver.got) == attempts


def test_a_receiver_that_is_not_there_is_told() -> None:
    assert notify(WebhookPolicy(url="http://127.0.0.1:9/", attempts=1), {})


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit('no such weights')", "exit code 1: no such weights"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("import time; time.sleep(60)", "no answers within"),
        ("import sys, json; open(sys.argv[2], 'w').write(json.dumps(['5', ' ']))", "1 of 2 prompts"),
        ("import sys, json; open(sys.argv[2], 'w').write(json.dumps(['5']))", "0 of 2 prompts"),
    ],
)
def test_weights_that_do_not_load_or_answer_are_refused(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "smoke_double.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    policy = SmokePolicy(timeout_s=3 if "sleep" in code else 60)
    found = smoke_gate(tmp_path, policy, program="smoke_double")
    assert found.state is GateState.FAILED and says in found.reason


def test_where_there_is_no_vllm_nobody_is_refused_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes a refusal: a machine without vLLM called the weights bad, and so refused every candidate."""
    monkeypatch.setattr(trial, "find_spec", lambda name: None)
    version = ModelVersion("1", "uri", "sha256", (), {}, 0)
    with pytest.raises(ValueError, match=r"smoke\.required: vLLM"):
        trial._smoke(version, GatePolicy())


@pytest.mark.slow
def test_the_tiny_policy_loads_and_answers_in_vllm(tmp_path: Path) -> None:
    policy = SmokePolicy(max_tokens=16, timeout_s=500)
    found = smoke_gate(Path(TINY_POLICY), policy)
    assert found.state is GateState.PASSED, found.reason
    (tmp_path / "config.json").write_text("{}")
    assert smoke_gate(tmp_path, policy).state is GateState.FAILED


@pytest.mark.parametrize(
    ("uri", "fix"),
    [
        ("https://ann:hidden@mlflow.example", "MLFLOW_TRACKING_PASSWORD"),
        ("https://hidden@mlflow.example", "MLFLOW_TRACKING_PASSWORD"),
        ("postgresql+psycopg://mlflow:hidden@db/mlflow", "PGPASSFILE"),
    ],
)
def test_a_password_in_an_address_of_mlflow_is_refused_and_not_shown(
    uri: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    job = write_job(tmp_path)
    evaluation = ("evaluate", "m", "--benchmark", f"tiny={job}", "--out", "o", "--mlflow", uri)
    override = ("--set", f"recipe.overrides=['tracking.uri={uri}']")
    for field, command in (
        ("--mlflow", ("model", "list")),
        ("MLFLOW_TRACKING_URI", ("retrain", job)),
        ("registry.uri", ("retrain", job, "--set", f"registry.uri={uri}")),
        ("tracking.uri", ("retrain", job, "--set", "registry.uri=sqlite:///a.db", *override)),
        ("--mlflow", evaluation),
    ):
        error = refused(capsys, *command)
        assert f"{field}: " in error and fix in error and "hidden" not in error, error
    assert not (tmp_path / "a.db").exists()


def test_a_user_of_a_database_and_a_file_with_an_at_sign_are_no_password() -> None:
    for uri in (
        None,
        "sqlite:////home/a@b:c/mlflow.db",
        "postgresql+psycopg://mlflow@db/mlflow",
        "postgresql+psycopg://mlflow@db/mlflow?sslmode=require",
        "http://h:5",
    ):
        refuse_password("--mlflow", uri)


@pytest.mark.parametrize("user", ["", "mlflow@"])
def test_a_password_in_the_query_of_a_databases_address_is_refused(user: str) -> None:
    uri = f"postgresql://{user}db/mlflow?sslmode=require&password=hidden"
    with pytest.raises(ValueError, match=r"--mlflow: postgresql://db/mlflow\?sslmode=require was") as caught:
        refuse_password("--mlflow", uri)
    assert "PGPASSWORD" in str(caught.value) and "hidden" not in str(caught.value)


def test_no_registry_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "--mlflow: missing" in refused(capsys, "model", "list")


def test_a_name_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot name a model"):
        _checked("a'b")
