"""Who asks the request at hand and under which id, for the logs.

The gate at the door says so once; the audit log and whatever else runs in the same context reads it. A
context variable, because an audit is shared by requests and its signature must not know of HTTP.
"""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar
from dataclasses import dataclass

REQUEST_ID_HEADER = "X-Request-ID"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Caller:
    """The name of the token that opened the door, and the request's id."""

    name: str
    request_id: str


caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def request_id_of(given: str | None) -> str:
    """The client's own id when it is a plain one, else a new one."""
    return given if given is not None and _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
