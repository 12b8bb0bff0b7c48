"""Credentials in an engine's address are sent to it, and to nobody else."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from typing import Any

import pytest

from reward.auditor import audit
from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message
from reward.samplers.openai import OpenAISampler
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from tests.openai_model import Model
from tests.serving import QUERY, RESPONSE, SAMPLER, TOKEN, Serving

SECRETS = ("hunter2-password", "key-in-a-query", "key-of-the-environment")
BASIC = base64.b64encode(f"march:{SECRETS[0]}".encode()).decode()
SETTINGS = SamplingSettings(max_tokens=8)


def with_secrets(url: str) -> str:
    return url.replace("://", f"://march:{SECRETS[0]}@") + f"?api_key={SECRETS[1]}"


def has_none(text: str) -> bool:
    return not any(
        secret in text for secret in (*SECRETS, base64.b64encode(b"march:hunter2-password").decode())
    )


def echo(model: Model, handler: Any) -> bool:
    """Refuses with all that it was sent."""
    sent = f"{handler.path} {handler.headers['Authorization']} {SECRETS[2]} march:{SECRETS[0]}"
    handler.answer({"error": {"message": f"who are you? {sent}"}}, 401)
    return True


@pytest.fixture
def model() -> Any:
    model = Model()
    yield model
    model.close()


def test_they_are_sent_as_what_they_are(model: Model) -> None:
    sent: list[tuple[str, str]] = []

    def remember(_: Model, handler: Any) -> bool:
        sent.append((handler.path, handler.headers["Authorization"]))
        return False

    model.fault = remember

    async def run() -> None:
        sampler = OpenAISampler(OpenAISamplerConfig(base_urls=(with_secrets(model.url),), model="m"))
        messages = [Message(role="proposer", content="x"), Message(role="user", content="raised 466 euros")]
        await sampler.sample(messages, n=1, settings=SETTINGS)
        await sampler.close()

    asyncio.run(run())
    assert sent == [(f"/v1/chat/completions?api_key={SECRETS[1]}", f"Basic {BASIC}")]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9/v1"])
def test_no_verdict_no_status_and_no_log_line_holds_them(
    model: Model, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS[2])
    model.fault = echo
    caplog.set_level(logging.DEBUG, "reward")
    config = OpenAISamplerConfig(
        base_urls=(with_secrets(url or model.url), with_secrets("http://127.0.0.1:8/v1")),
        model="m",
        max_retries=0,
    )
    sampler = OpenAISampler(config)
    verdict = asyncio.run(audit(QUERY, RESPONSE, sampler=sampler)).verdict
    assert verdict.reward is None and "127.0.0.1" in verdict.detail
    assert has_none(verdict.detail)
    assert has_none(caplog.text)


@pytest.mark.parametrize(
    "urls", [(f"ftp://march:{SECRETS[0]}@x/v1",), (with_secrets("http://x/v1"), with_secrets("http://x/v1"))]
)
def test_no_error_of_the_settings_holds_them(urls: tuple[str, ...]) -> None:
    with pytest.raises(ValueError) as caught:
        OpenAISamplerConfig(base_urls=urls, model="m")
    assert has_none(str(caught.value.errors(include_input=False)))  # type: ignore[attr-defined]
    assert has_none(str(caught.value))


def test_no_caller_sees_what_a_bug_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(OpenAISampler):
        async def sample(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError(f"at http://march:{SECRETS[0]}@engine")

    config = ServerConfig(sampler=SAMPLER)
    sampler = Broken(OpenAISamplerConfig(base_urls=("http://127.0.0.1:9/v1",), model="m"))
    serving = Serving(create_app(config, sampler=sampler, token=TOKEN), config)
    with contextlib.closing(serving):
        body = {"query": QUERY.model_dump(mode="json"), "response": RESPONSE}
        answer = serving.http.post("/v1/audit", json=body)
    assert answer.json()["verdict"]["reason"] == "internal" and has_none(answer.text)
