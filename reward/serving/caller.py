"""The request at hand: its id, who asks, and what came of it, for the logs.

The first gate opens the record and the others fill it in; the log lines, the audit log and whatever else runs
in the same context read it. A context variable, because an audit is shared by requests and its signature must
not know of HTTP.
"""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, get_args

REQUEST_ID_HEADER = "X-Request-ID"
Refusal = Literal[
    "overloaded",
    "memory",
    "stopping",
    "token_missing",
    "token_wrong",
    "headers_too_large",
    "body_too_large",
    "body_slow",
    "body_length_unclear",
    "nonce_malformed",
    "internal",
]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass
class Caller:
    """Who asks, and for what."""

    request_id: str
    name: str | None = None  # of the token that opened the door
    trace_id: str | None = None  # 32 hex digits, when the request is traced
    outcomes: list[str] = field(default_factory=list)  # one a sample that was audited
    refusal: Refusal | None = None  # why nothing was audited


caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def note_refusal(reason: Refusal) -> None:
    """Writes down why the request at hand is refused."""
    if (asked := caller.get()) is not None:
        asked.refusal = reason


def note_outcome(outcome: str) -> None:
    """Writes down what an audit of the request at hand came to."""
    if (asked := caller.get()) is not None:
        asked.outcomes.append(outcome)


def request_id_of(given: str | None) -> str:
    """The client's own id when it is a plain one, else a new one."""
    return given if given is not None and _REQUEST_ID.fullmatch(given) else new_request_id()


def new_request_id() -> str:
    """A random id."""
    return uuid.uuid4().hex
