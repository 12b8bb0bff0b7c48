"""Signed answers: who can answer on the server's port, but does not hold its key, cannot steer the policy.

With a key (`MARCH_SIGNING_KEY` in the environment, the same on both sides) every 200 answer of the
audit's paths carries one header; OpenRLHF's own client ignores it, `RewardClient` refuses answers without it.

    March-Signature: v1 EXPIRES MAC

EXPIRES is in seconds since 1970 (decimal), MAC the HMAC-SHA256 in hex, under the key's UTF-8 bytes, of these
lines joined by "\\n", without one at the end:

    march-answer-v1
    POST /v1/audit        method and path
    SHA-256 (hex) of the request's body
    SHA-256 (hex) of the answer's body
    the value of the answer's header March-Weights-Version, or nothing
    EXPIRES
    the value of the request's header March-Nonce, or nothing

March-Weights-Version names the policy's weights, one number a sample with commas between them, "-" where
they are not known. March-Nonce is a client's fresh random text, 16 to 128 letters, digits, `_` and `-`: an
answer to one request is none to any other, not even to the same question asked again. With a nonce no answer
is older than its request, so `RewardClient` does not look at EXPIRES, and clocks that jump cost no answer. A
client without one is protected from a replay by the expiry alone, as far as both clocks are right.
Error answers are not signed: they carry no number, and the worst they do is an answer without a reward.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

SIGNATURE_HEADER = "March-Signature"
NONCE_HEADER = "March-Nonce"
WEIGHTS_HEADER = "March-Weights-Version"
KEY_ENV = "MARCH_SIGNING_KEY"
MIN_KEY_CHARS = 32
LIFETIME_S = 300
SIGNED_PATHS = ("/v1/audit", "/v1/audits", "/get_reward")

_NONCE = re.compile(r"[A-Za-z0-9_-]{16,128}")
_SIGNATURE = re.compile(r"v1 ([0-9]{1,12}) ([0-9a-f]{64})")


class BadSignature(ValueError):
    """An answer that the server did not give to this request, or gave too long ago; one line says why."""


@dataclass(frozen=True)
class Exchange:
    """What a signature binds together."""

    method: str
    path: str
    request_sha256: str
    answer_sha256: str
    weights: str
    nonce: str

    def mac(self, key: str, *, expires: int) -> str:
        """HMAC-SHA256 (hex) of the exchange and its expiry."""
        lines = (
            "march-answer-v1",
            f"{self.method} {self.path}",
            self.request_sha256,
            self.answer_sha256,
            self.weights,
            str(expires),
            self.nonce,
        )
        return hmac.new(key.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def read_signing_key(variable: str = KEY_ENV) -> str | None:
    """The key from the environment, or None when it is not set.

    Raises:
        ValueError: it is too short.
    """
    key = os.environ.get(variable, "").strip()
    if key and len(key) < MIN_KEY_CHARS:
        raise ValueError(
            f"the environment variable {variable} has {len(key)} characters; set at least {MIN_KEY_CHARS} "
            f'characters, e.g. export {variable}="$(openssl rand -hex 32)", or none'
        )
    return key or None


def new_nonce() -> str:
    """A client's fresh random text for one request."""
    return secrets.token_urlsafe(24)


def is_nonce(text: str) -> bool:
    """Whether a client may send this as its nonce."""
    return _NONCE.fullmatch(text) is not None


def weights_of(versions: Sequence[int | None]) -> str:
    """Value of March-Weights-Version for the samples of one answer."""
    return ",".join("-" if version is None else str(version) for version in versions)


def sign(exchange: Exchange, key: str, *, expires: int | None = None) -> str:
    """Value of March-Signature; it expires in `LIFETIME_S` unless said otherwise."""
    expires = int(time.time()) + LIFETIME_S if expires is None else expires
    return f"v1 {expires} {exchange.mac(key, expires=expires)}"


def verify(signature: str | None, exchange: Exchange, key: str, *, now: float | None) -> None:
    """Returns when the answer is the server's own to this very request.

    Args:
        signature: Value of March-Signature, if there is one.
        exchange: What was sent and what came.
        key: Of both sides.
        now: Seconds since 1970; None when the exchange's nonce is fresh, which says more than a clock.

    Raises:
        BadSignature: it is unsigned, altered, another request's, or expired.
    """
    if signature is None:
        raise BadSignature("its answer is not signed")
    found = _SIGNATURE.fullmatch(signature)
    if found is None:
        raise BadSignature("its answer's signature is malformed")
    expires = int(found.group(1))
    if not hmac.compare_digest(exchange.mac(key, expires=expires), found.group(2)):
        raise BadSignature("its answer's signature is wrong: altered, replayed, or of another key")
    if now is not None and now > expires:
        raise BadSignature(f"its answer expired {now - expires:.0f} s ago")
