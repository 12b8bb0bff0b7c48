"""Notifications: who wants to know is told by a signed request; a promotion never waits on it to be made.

    POST URL
    March-Delivery: RANDOM              the same for every attempt, so that a receiver can drop repeats
    March-Signature: t=SECONDS,v1=MAC   MAC is HMAC-SHA256 (hex) under the key of "SECONDS.BODY"

A receiver compares the MAC in constant time and refuses SECONDS that are far from its clock (a replay). The
key stands in the variable that the policy names; without one nothing is signed. A delivery is tried again on
transport errors, 429 and 5xx, with growing waits, and what failed in the end is in `deliveries.jsonl`.
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
from orchestration.registry.decisions import Desk
from orchestration.registry.history import write_delivery
from orchestration.registry.log import MOVES, Numbered
from reward.types import Record

SIGNATURE_HEADER, DELIVERY_HEADER = "March-Signature", "March-Delivery"
_LONGEST_WAIT_S = 5.0


class Delivery(Record):
    """How a notification fared."""

    id: str
    url: str
    delivered: bool
    attempts: int
    problem: str = ""


class _NotTaken(Exception):
    """The receiver did not take it, and may later."""


def event(model: str, made: Numbered) -> dict[str, JsonValue]:
    """What is told of a decision."""
    champion = made.entry.version if made.entry.action in MOVES else made.entry.champion
    kept = made.entry.model_dump(mode="json", include={"action", "version", "gates", "by", "at", "reason"})
    return {"model": model, "number": made.number, "champion": champion, **kept}


def tell(desk: Desk, policy: GatePolicy, made: Numbered) -> None:
    """Notifies after the decision is made; a failed delivery is recorded and said, and changes nothing."""
    for webhook in policy.webhooks:
        delivery = notify(webhook, event(desk.model, made))
        if not delivery.delivered:
            print(f"march: {webhook.url} was not told: {delivery.problem}", file=sys.stderr)
        try:
            write_delivery(desk.history, desk.model, delivery.model_dump(mode="json"))
        except OSError as error:
            print(f"march: {error.filename}: {error.strerror}; a delivery is not in it", file=sys.stderr)


def notify(webhook: WebhookPolicy, body: Mapping[str, JsonValue]) -> Delivery:
    """Tells one receiver; never raises for what the receiver or the network does."""
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
    attempts = int(retrying.statistics.get("attempt_number", 0))
    problem = f"{' '.join(problem.split()):.200}"
    return Delivery(id=delivery, url=webhook.url, delivered=not problem, attempts=attempts, problem=problem)


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
