"""One HTTP request: bounded in time and size; what goes wrong is one line without secrets."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from pipeline.artifacts.settings import redact
from reward.offline.excerpt import printable

_MOST_BYTES = 64 << 20  # a summary of a thousand nodes has some 10 MB
_LINE_CHARS = 120


class UnansweredError(ValueError):
    """No answer came; says from where and why."""


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    text: str
    date: datetime | None  # by the server's clock
    asked_at: float  # by ours, seconds since 1970, in the middle of the request
    took_s: float

    @property
    def is_good(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300

    @property
    def line(self) -> str:
        """The beginning of its text, for a message."""
        return printable(" ".join(self.text.split()))[:_LINE_CHARS]

    def read(self) -> dict[str, Any]:
        """Its JSON object; an empty one where it is none."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def require_url(option: str, url: str) -> str:
    """An address without its last slash.

    Raises:
        ValueError: it is no http or https address, or holds a user or password.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{option}: {redact(url)!r} is no address; give http://HOST:PORT")
    if "@" in parts.netloc:
        raise ValueError(f"{option}: {redact(url)} was given with a user or password in it; leave it out")
    return url.rstrip("/")


def ask(
    url: str,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    verify: ssl.SSLContext | bool = True,
    trust_env: bool = True,
) -> Answer:
    """Sends a GET, or a POST of JSON where there is a body; follows no redirect.

    Args:
        url: Whole.
        timeout_s: Until the answer is whole.
        headers: Of the request.
        auth: User and password.
        body: Sent as JSON.
        verify: Whom to trust, for https.
        trust_env: Whether the proxies of the environment are used.

    Raises:
        UnansweredError: no whole answer came.
    """
    begun, until, chunks, size = time.time(), time.monotonic() + timeout_s, [], 0
    try:
        with (
            httpx.Client(timeout=timeout_s, verify=verify, trust_env=trust_env) as client,
            client.stream("POST" if body else "GET", url, headers=headers, auth=auth, json=body) as answer,
        ):
            headed = time.time()
            for chunk in answer.iter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > _MOST_BYTES or time.monotonic() > until:
                    raise UnansweredError(f"{place_of(url)}: its answer does not end")
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
        through = " (through a proxy: see HTTP_PROXY and NO_PROXY)" if trust_env and _has_proxy(url) else ""
        raise UnansweredError(f"{place_of(url)}: {_reason(error, timeout_s)}{through}") from error
    return Answer(
        status=answer.status_code,
        text=b"".join(chunks).decode(errors="replace"),
        date=_date(answer.headers.get("Date")),
        asked_at=(begun + headed) / 2,
        took_s=time.time() - begun,
    )


def place_of(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(redact(url))
    return f"{parts.scheme}://{parts.netloc}"


def _reason(error: Exception, timeout_s: float) -> str:
    text = printable(" ".join(str(error).split()))
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {timeout_s:g} s"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its certificate is signed by nobody whom this machine trusts, or is for another name"
    if "refused" in text:
        return "nobody listens there"
    if any(known in text for known in ("Name or service not known", "name resolution", "No address")):
        return "its name is not known here (DNS)"
    return text[:_LINE_CHARS] or type(error).__name__


def _has_proxy(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")


def _date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
