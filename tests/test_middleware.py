"""What every request to the reward server passes, over real HTTP: token, body size, log of who asked."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reward.samplers import SamplerError
from reward.serving.server import create_app
from tests.role_server import DOCUMENT, TOKEN, RoleSampler, Start, server_config, start_servers  # noqa: F401


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (basic("march", TOKEN), 200),
        (basic("", TOKEN), 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer wrong", 401),
        (f"Bearer {TOKEN}x", 401),
        (TOKEN, 401),
        (basic(TOKEN, "wrong"), 401),
        ("Basic not-base64!", 401),
        ("Basic /w==", 401),  # not UTF-8
        (f"Digest {TOKEN}", 401),
    ],
)
def test_only_the_token_opens(start: Start, authorization: str | None, status: int) -> None:
    running = start()
    headers = {} if authorization is None else {"Authorization": authorization}
    for path in ("/metrics", "/version", "/openapi.json"):
        assert httpx.get(running.url + path, headers=headers, trust_env=False).status_code == status
    posted = httpx.post(running.url + "/v1/audit", headers=headers, json={}, trust_env=False)
    assert posted.status_code == (422 if status == 200 else 401)
    assert running.sampler.num_calls == 0


def test_refusals_are_counted_by_reason(start: Start) -> None:
    running = start(max_body_bytes=1024, limits={"max_header_bytes": 1024, "body_timeout_s": 0.2})
    known, url = {"Authorization": f"Bearer {TOKEN}"}, running.url + "/v1/audit"

    def slow() -> Iterator[bytes]:
        yield b"{"
        time.sleep(0.5)
        yield b"}"

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 256

    for reason, status, headers, body in (
        ("token_missing", 401, {}, b""),
        ("token_wrong", 401, {"Authorization": "Bearer wrong"}, b""),
        ("headers_too_large", 431, {"X": "x" * 1024}, b""),
        ("body_too_large", 413, known, b"x" * 1025),
        ("body_too_large", 413, known | {"Content-Type": "application/json"}, endless()),
        ("body_slow", 408, known | {"Content-Type": "application/json"}, slow()),
    ):
        counted = f'march_requests_refused_total{{reason="{reason}"}}'
        before = running.metric(counted)
        assert httpx.post(url, headers=headers, content=body, trust_env=False).status_code == status, reason
        assert running.metric(counted) == before + 1


def test_a_body_over_the_limit_is_refused_before_it_is_read(start: Start) -> None:
    running = start(max_body_bytes=2048)
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=10)
    connection.putrequest("POST", "/v1/audit")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Content-Length", str(10**9))
    connection.endheaders(b"{")  # one byte of a thousand million
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_of_unknown_length_is_refused_where_it_passes_the_limit(start: Start) -> None:
    running = start(max_body_bytes=2048)

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 256

    answer = running.http.post("/v1/audit", content=endless())
    assert answer.status_code == 413
    assert "max_body_bytes 2048" in answer.json()["detail"]
    assert running.audit().status_code == 200


def test_the_audit_log_holds_every_verdict_and_no_token(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "audits.jsonl"
    running = start(audit_log=log, max_kept=0)
    running.audit()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    running.reward()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["verdict"]["outcome"] for line in lines] == ["SUPPORTED", "UNSCORED"]
    assert all(line["seconds"] >= 0 and len(line["response_sha256"]) == 64 for line in lines)
    parts = "".join(f"{json.dumps(text)}\n" for text in (DOCUMENT.id, DOCUMENT.title, DOCUMENT.text))
    assert {line["documents_sha256"] for line in lines} == {hashlib.sha256(parts.encode()).hexdigest()}
    assert TOKEN not in log.read_text()


def test_an_audit_log_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="audit_log: cannot write"):
        create_app(server_config(audit_log=tmp_path), sampler=RoleSampler(), token=TOKEN)
