"""The audit log: who, what and when; through rotation and a full disk."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reward.serving.logs import AuditLog, Caller, caller, request_id_of
from reward.serving.tokens import new_token
from reward.types import Outcome, Verdict
from tests.serving import RESPONSE, TOKEN, serve_picnic

VERDICT = Verdict(id="q", outcome=Outcome.SUPPORTED, reward=0.0, reason="supported")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def lost(registry: CollectorRegistry) -> float:
    return registry.get_sample_value("march_audit_log_lost_total") or 0.0


def test_a_line_says_who_asked_what_and_when(tmp_path: Path) -> None:
    path, tokens = tmp_path / "logs" / "audit.jsonl", tmp_path / "tokens"
    made = new_token("audits")
    tokens.write_text(made.line)
    tokens.chmod(0o600)
    server = serve_picnic(audit_log=path, tokens_file=tokens)
    try:
        answer = server.http.post("/v1/audit", json={}, headers={"X-Request-ID": "not one\tword"})
        assert answer.status_code == 422 and len(answer.headers["x-request-id"]) == 32
        own = {"X-Request-ID": "mine-7", "Authorization": f"Bearer {made.token}"}
        server.http.headers.update(own)
        assert server.audit().headers["x-request-id"] == "mine-7"
        server.http.headers.update({"Authorization": f"Bearer {TOKEN}"})
        server.get_reward("I do not know.")
    finally:
        server.close()
    first, second = lines_of(path)
    assert (first["caller"], first["request_id"], second["caller"]) == ("audits", "mine-7", "env")
    assert first["response_sha256"] == hashlib.sha256(RESPONSE.encode()).hexdigest()
    assert first["verdict"]["outcome"] == "SUPPORTED" and second["verdict"]["outcome"] == "NO_CLAIMS"
    assert first["time"] <= second["time"] and first["time"].endswith("+00:00")
    assert made.token not in path.read_text() and TOKEN not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_system_may_rotate_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, CollectorRegistry())
    log.write(VERDICT, response="a", documents=(), seconds=0)
    path.rename(tmp_path / "audit.jsonl.1")
    log.write(VERDICT, response="b", documents=(), seconds=0)
    assert len(lines_of(path)) == len(lines_of(tmp_path / "audit.jsonl.1")) == 1


def test_a_full_disk_loses_lines_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, registry = tmp_path / "audit.jsonl", CollectorRegistry()
    log = AuditLog(path, registry)
    write = os.write

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with caplog.at_level(logging.INFO):
        monkeypatch.setattr("reward.serving.logs.os.write", lambda file, data: write(file, data[:20]))
        log.write(VERDICT, response="cut", documents=(), seconds=0)
        monkeypatch.setattr("reward.serving.logs.os.write", full)
        for _ in range(3):
            log.write(VERDICT, response="lost", documents=(), seconds=0)
        monkeypatch.setattr("reward.serving.logs.os.write", write)
        log.write(VERDICT, response="kept", documents=(), seconds=0)
    assert lost(registry) == 4
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
    torn, kept = path.read_text().splitlines()
    assert len(torn) == 20 and json.loads(kept)["verdict"]["outcome"] == "SUPPORTED"


def test_audits_go_on_without_their_log() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    server = serve_picnic(audit_log=full)
    try:
        assert [server.audit().json()["verdict"]["reward"] for _ in range(2)] == [0.0, 0.0]
        assert server.metric("march_audit_log_lost_total") == 2
    finally:
        server.close()


def test_half_a_surrogate_pair_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, CollectorRegistry())
    caller.set(Caller("r", name="c"))
    log.write(VERDICT.model_copy(update={"id": "\ud800"}), response="\ud800", documents=(), seconds=0)
    (line,) = lines_of(path)
    assert line["caller"] == "c"


def test_without_a_file_nothing_is_written() -> None:
    AuditLog(None, CollectorRegistry()).write(VERDICT, response="a", documents=(), seconds=0)


@pytest.mark.parametrize("given", [None, "", "a b", "x" * 65, "a\nb", "é"])
def test_a_strange_request_id_gets_a_new_one(given: str | None) -> None:
    assert len(request_id_of(given)) == 32 and request_id_of(given) != given
