"""Notifications: a signed request to each receiver, after a decision; a failure changes nothing of it.

    POST URL
    March-Delivery: RANDOM              the same for every attempt, so that a receiver can drop repeats
    March-Signature: t=SECONDS,v1=MAC   MAC is HMAC-SHA256 (hex) under the key of "SECONDS.BODY"

A receiver compares the MAC in constant time and refuses SECONDS that are far from its clock (a replay). The
key is in the variable that the policy names; without one nothing is signed. A delivery is tried again on
transport errors, 429 and 5xx, with growing waits, and what failed in the end is on standard error.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import time
import uuid
from collections.abc import Mapping

from pydantic import JsonValue

from orchestration.promotion.policy import GatePolicy, WebhookPolicy
from orchestration.registry.chain import Decision

SIGNATURE_HEADER, DELIVERY_HEADER = "March-Signature", "March-Delivery"
_LONGEST_WAIT_S = 5.0


class _NotTaken(Exception):
    """The receiver did not take it, and may later."""


def event(decision: Decision) -> dict[str, JsonValue]:
    """What is sent of a decision."""
    kept = decision.model_dump(mode="json", include={"model", "number", "action", "by", "at", "reason"})
    gates = decision.report.state if decision.report else None
    champion = decision.after.champion.version if decision.after.champion else None
    return {**kept, "version": decision.about.version, "gates": gates, "champion": champion}


def notify_all(policy: GatePolicy, decision: Decision) -> None:
    """Notifies after the decision is made; a failed delivery is said, and changes nothing."""
    for webhook in policy.webhooks:
        if problem := notify(webhook, event(decision)):
            print(f"march: {webhook.url} was not notified: {problem}", file=sys.stderr)


def notify(webhook: WebhookPolicy, body: Mapping[str, JsonValue]) -> str:
    """Notifies one receiver; returns why it did not take it, or nothing."""
    import httpx
    from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt
    from tenacity import wait_random_exponential as wait_growing

    content, delivery = json.dumps(dict(body), sort_keys=True).encode(), uuid.uuid4().hex
    retrying = Retrying(
        stop=stop_after_attempt(webhook.attempts),
        wait=wait_growing(multiplier=0.2, max=_LONGEST_WAIT_S),
        retry=retry_if_exception_type((httpx.TransportError, _NotTaken)),
    )
    problem = ""
    try:
        retrying(_post, webhook, content, delivery)
    except RetryError as error:
        problem = str(error.last_attempt.exception() or "")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        problem = str(error)
    return f"{' '.join(problem.split()):.200}"


def signature(content: bytes, key: str, *, seconds: int) -> str:
    """Value of March-Signature."""
    mac = hmac.new(key.encode(), f"{seconds}.".encode() + content, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={mac}"


def _post(webhook: WebhookPolicy, content: bytes, delivery: str) -> None:
    import httpx

    headers = {"Content-Type": "application/json", DELIVERY_HEADER: delivery}
    if key := os.environ.get(webhook.key_env, "").strip():
        headers[SIGNATURE_HEADER] = signature(content, key, seconds=int(time.time()))
    answer = httpx.post(webhook.url, content=content, headers=headers, timeout=webhook.timeout_s)
    if answer.status_code == httpx.codes.TOO_MANY_REQUESTS or answer.is_server_error:
        raise _NotTaken(f"HTTP {answer.status_code}")
    if not answer.is_success:
        raise ValueError(f"HTTP {answer.status_code}")
