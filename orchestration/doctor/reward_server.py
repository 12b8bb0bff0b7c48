"""A reward server: lives, is ready, takes our token, and is of our version."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from orchestration.doctor.asking import Answer, UnansweredError, ask
from orchestration.doctor.records import Finding, failed, ok, skipped, warning
from reward.provenance import package_version

TOKEN_VARIABLE = "MARCH_REWARD_TOKEN"
_NAME = "reward server"


@dataclass(frozen=True)
class RewardFacts:
    """What the server said; None for what was not asked, since it did not live."""

    url: str
    health: Answer | None = None
    ready: Answer | None = None
    version: Answer | None = None
    problem: str | None = None
    has_token: bool = False


def gather_reward(url: str, *, timeout_s: float) -> RewardFacts:
    """Asks as our own client does: no proxy, and for https the system's authorities (SSL_CERT_FILE)."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    how: dict[str, Any] = {"timeout_s": timeout_s, "trust_env": False}
    if urlsplit(url).scheme == "https":
        how["verify"] = ssl.create_default_context()
    headers = {"Authorization": f"Bearer {token}"} if token else None
    try:
        health, ready = (ask(f"{url}{path}", **how) for path in ("/healthz", "/readyz"))
        version = ask(f"{url}/version", headers=headers, **how)
    except UnansweredError as error:
        return RewardFacts(url, problem=str(error), has_token=bool(token))
    return RewardFacts(url, health, ready, version, has_token=bool(token))


def check_reward(facts: RewardFacts, *, ours: str | None = None) -> Iterator[Finding]:
    """Judges it; `ours` is this package's version."""
    health, ready, version = facts.health, facts.ready, facts.version
    if health is None or ready is None or version is None:
        yield failed(_NAME, facts.problem or "did not answer", "start it (`march serve`), or fix --reward")
        return
    if not health.is_good or health.read().get("status") != "ok":
        yield failed(_NAME, f"{facts.url} is none: HTTP {health.status}, {health.line}", "fix --reward")
        return
    if ready.is_good:
        yield ok(_NAME, f"{facts.url}: lives, ready in {ready.took_s * 1000:.0f} ms")
    else:
        reason = ready.read().get("reason") or ready.line
        yield failed(_NAME, f"{facts.url} lives, not ready: {reason}", "look at its engine; --engine asks it")
    yield _token(facts, version)
    if version.is_good:
        yield _version(version, ours or package_version())


def check_no_reward() -> Finding:
    """Where none was named."""
    return skipped(_NAME, "no --reward URL was given")


def _token(facts: RewardFacts, version: Answer) -> Finding:
    name = "reward token"
    if version.is_good:
        return ok(name, f"{TOKEN_VARIABLE} is accepted")
    if version.status == 401 and not facts.has_token:
        fix = f"set {TOKEN_VARIABLE}, or {TOKEN_VARIABLE}_FILE in a container"
        return failed(name, f"{TOKEN_VARIABLE} is not set", fix)
    if version.status == 401:
        fix = "give the server's own, or add this one to its tokens_file (`march token` prints the line)"
        return failed(name, f"{TOKEN_VARIABLE} is another than the server's", fix)
    return failed(name, f"HTTP {version.status}: {version.line}", "see the server's log")


def _version(answer: Answer, ours: str) -> Finding:
    name, said = "reward version", answer.read()
    theirs = str(said.get("version"))
    found = f"{theirs}, model {said.get('model')}, prompts {said.get('prompts')}, by {said.get('sampler')}"
    if theirs != ours:
        fix = "run one version on both sides; verdicts of two are not comparable"
        return warning(name, f"{found}; here {ours}", fix)
    return ok(name, found)
