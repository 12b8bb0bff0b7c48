"""Signed answers: who can answer on the server's port, but does not hold its key, cannot steer the policy.

With a key (`MARCH_SIGNING_KEY` in the environment, the same on both sides) every 200 answer of the audit's
paths to a request with a nonce carries one header; `RewardClient` refuses answers without it. OpenRLHF's own
client sends no nonce and verifies nothing.

    March-Signature: v2 MAC

MAC is the HMAC-SHA256 in hex, under the key's UTF-8 bytes, of these lines joined by "\\n", without one at the
end:

    march-answer-v2
    POST /v1/audit        method and path
    SHA-256 (hex) of the request's body
    SHA-256 (hex) of the answer's body, which names the weights
    the value of the request's header March-Nonce

March-Nonce is a client's fresh random text, 16 to 128 letters, digits, `_` and `-`: an answer to one request
is none to any other, not even to the same question asked again, so no clock is needed to refuse old ones.
Error answers are not signed: they carry no number, and the worst they do is an answer without a reward.
"""

import hashlib
import hmac
import os
import re
import secrets

SIGNATURE_HEADER = "March-Signature"
NONCE_HEADER = "March-Nonce"
KEY_ENV = "MARCH_SIGNING_KEY"
MIN_KEY_CHARS = 32
SIGNED_PATHS = ("/v1/audit", "/v1/audits", "/get_reward")

_NONCE = re.compile(r"[A-Za-z0-9_-]{16,128}")


def signature(key: str, request: str, request_sha256: str, answer: bytes, nonce: str) -> str:
    """Value of March-Signature; `request` is its method and path, `answer` the answer's body."""
    lines = ("march-answer-v2", request, request_sha256, hashlib.sha256(answer).hexdigest(), nonce)
    mac = hmac.new(key.encode(), "\n".join(lines).encode(), hashlib.sha256)
    return f"v2 {mac.hexdigest()}"


def read_signing_key() -> str | None:
    """The key from the environment, or None when it is not set.

    Raises:
        ValueError: it is too short.
    """
    key = os.environ.get(KEY_ENV, "").strip()
    if key and len(key) < MIN_KEY_CHARS:
        raise ValueError(
            f"the environment variable {KEY_ENV} has {len(key)} characters; set at least {MIN_KEY_CHARS} "
            f'characters, e.g. export {KEY_ENV}="$(openssl rand -hex 32)", or none'
        )
    return key or None


def new_nonce() -> str:
    return secrets.token_urlsafe(24)


def is_nonce(text: str) -> bool:
    """Whether a client may send this as its nonce."""
    return _NONCE.fullmatch(text) is not None


def fault_of(found: str | None, expected: str) -> str | None:
    """Why a signature is not the one that is expected of a fresh nonce's answer; None when it is."""
    if found is None:
        return "its answer is not signed"
    if not hmac.compare_digest(expected.encode(), found.encode()):
        return "its answer's signature is wrong: altered, replayed, or of another key"
    return None
