"""Signed answers: ours are believed, and nobody else's, nor ours to another request or replayed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response

from reward.serving.client import RewardClient, UntrustedAnswer
from reward.serving.config import ServerConfig
from reward.serving.signing import (
    NONCE_HEADER,
    SIGNATURE_HEADER,
    fault_of,
    new_nonce,
    read_signing_key,
    signature,
)
from reward.types import AuditResult
from tests.serving import KEY, QUERY, RESPONSE, SAMPLER, TOKEN, Serving, serve_picnic

PARTS = {
    "key": KEY,
    "request": "POST /v1/audit",
    "request_sha256": "a" * 64,
    "answer": b"{}",
    "nonce": "n" * 32,
}
SIGNED = signature(**PARTS)


@pytest.fixture
def server() -> Iterator[Serving]:
    serving = serve_picnic(signing_key=KEY)
    yield serving
    serving.close()


def ask(url: str, **options: Any) -> AuditResult:
    async def once() -> AuditResult:
        async with RewardClient(url, TOKEN, attempts=3, **options) as client:
            return await client.audit(QUERY, RESPONSE)

    return asyncio.run(once())


def test_the_format_is_the_documented_one() -> None:
    answer = hashlib.sha256(b"{}").hexdigest()
    lines = f"march-answer-v2\nPOST /v1/audit\n{'a' * 64}\n{answer}\n{'n' * 32}"
    mac = hmac.new(KEY.encode(), lines.encode(), hashlib.sha256).hexdigest()
    assert f"v2 {mac}" == SIGNED and fault_of(SIGNED, SIGNED) is None


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_bound(part: str) -> None:
    other = b"other" if part == "answer" else "other"
    assert "wrong" in (fault_of(SIGNED, signature(**PARTS | {part: other})) or "")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "not signed"),
        ("", "wrong"),
        ("v1 " + "0" * 64, "wrong"),
        ("v2 " + "0" * 63, "wrong"),
        ("v2 " + "\u0661" * 64, "wrong"),
        ("v2 " + "0" * 64, "wrong"),
    ],
)
def test_what_is_not_ours_is_refused(found: str | None, words: str) -> None:
    assert words in (fault_of(found, SIGNED) or "")


def test_the_client_believes_the_server_that_has_its_key(server: Serving) -> None:
    assert ask(server.url, signing_key=KEY).verdict.reward == 0.0
    assert ask(server.url).verdict.reward == 0.0  # without a key nothing is verified


def test_an_unsigned_server_or_one_of_another_key_is_not_believed(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UntrustedAnswer, match="another key"):
        ask(server.url, signing_key=KEY + "x")
    plain = serve_picnic()
    try:
        with pytest.raises(UntrustedAnswer, match="not signed"):
            ask(plain.url, signing_key=KEY)
        monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
        with pytest.raises(UntrustedAnswer, match="not signed"):
            ask(plain.url)
    finally:
        plain.close()


def test_openrlhfs_wire_is_signed_for_who_sends_a_nonce(server: Serving) -> None:
    assert SIGNATURE_HEADER not in server.get_reward().headers  # a signature without one could be replayed
    nonce = new_nonce()
    server.http.headers[NONCE_HEADER] = nonce
    answer = server.get_reward()
    asked = hashlib.sha256(answer.request.content).hexdigest()
    signed = signature(KEY, "POST /get_reward", asked, answer.content, nonce)
    assert answer.headers[SIGNATURE_HEADER] == signed


def test_errors_and_other_paths_are_not_signed(server: Serving) -> None:
    for answer in (server.http.get("/version"), server.http.post("/v1/audit", json={})):
        assert SIGNATURE_HEADER not in answer.headers and answer.text


def test_a_malformed_nonce_is_refused(server: Serving) -> None:
    for nonce in ("short", "x" * 129, "line one\tline two and more"):
        answer = server.http.post("/v1/audit", json={}, headers={NONCE_HEADER: nonce})
        assert answer.status_code == 400 and NONCE_HEADER in answer.json()["detail"]


Alter = Callable[[httpx.Response], Response]


def passed_on(answer: httpx.Response, content: bytes | None = None, **headers: str) -> Response:
    names = (SIGNATURE_HEADER, "content-type")
    kept = {name: answer.headers[name] for name in names if name in answer.headers}
    return Response(answer.content if content is None else content, 200, headers={**kept, **headers})


def paid(answer: httpx.Response) -> Response:
    body = answer.json()
    body["verdict"]["reward"] = 0.5
    return passed_on(answer, json.dumps(body).encode())


def unsigned(answer: httpx.Response) -> Response:
    return Response(answer.content, 200, media_type="application/json")


def of_other_weights(answer: httpx.Response) -> Response:
    body = answer.json()
    body["verdict"]["weights_version"] = 10
    return passed_on(answer, json.dumps(body).encode())


@pytest.fixture
def between(server: Serving) -> Iterator[Callable[[Alter, bool], tuple[str, list[str]]]]:
    """Starts a man in the middle; with `replaying` he gives every request the first answer."""
    running: list[Serving] = []

    def start(alter: Alter, replaying: bool) -> tuple[str, list[str]]:
        kept: list[httpx.Response] = []
        nonces: list[str] = []
        app = FastAPI()

        @app.post("/v1/audit")
        async def audit(request: Request) -> Response:
            nonces.append(request.headers[NONCE_HEADER])
            if not kept or not replaying:
                headers = {k: v for k, v in request.headers.items() if k not in ("host", "content-length")}
                async with httpx.AsyncClient(trust_env=False) as onward:
                    kept.append(
                        await onward.post(
                            server.url + "/v1/audit", content=await request.body(), headers=headers
                        )
                    )
            return alter(kept[0 if replaying else -1])

        app.state.service = server.app.state.service
        running.append(Serving(app, ServerConfig(sampler=SAMPLER)))
        return running[-1].url, nonces

    yield start
    for one in running:
        one.close()


@pytest.mark.parametrize(
    ("alter", "replaying", "words"),
    [
        (paid, False, "wrong: altered"),
        (of_other_weights, False, "wrong: altered"),
        (unsigned, False, "not signed"),
        (passed_on, True, "replayed"),
    ],
)
def test_a_man_in_the_middle_cannot_make_a_reward(
    between: Callable[[Alter, bool], tuple[str, list[str]]], alter: Alter, replaying: bool, words: str
) -> None:
    url, nonces = between(alter, replaying)
    if replaying:
        assert ask(url, signing_key=KEY).verdict.reward == 0.0  # passed on as it is, the first answer is good
    with pytest.raises(UntrustedAnswer, match=words):
        ask(url, signing_key=KEY)
    assert len(nonces) == len(set(nonces)) == 1 + replaying  # and it is not asked again


@pytest.mark.parametrize("key", ["", None])
def test_without_a_key_nothing_is_signed(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARCH_SIGNING_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("MARCH_SIGNING_KEY", key)
    assert read_signing_key() is None


def test_a_short_key_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARCH_SIGNING_KEY", "short")
    with pytest.raises(ValueError, match="MARCH_SIGNING_KEY has 5 characters; set at least 32 characters"):
        read_signing_key()
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    assert read_signing_key() == KEY


def test_nonces_are_fresh_and_accepted() -> None:
    nonces = {new_nonce() for _ in range(100)}
    assert len(nonces) == 100 and all(re.fullmatch(r"[A-Za-z0-9_-]{16,128}", nonce) for nonce in nonces)
