"""One HTTP request, bounded in time; what goes wrong is one line without secrets."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from pipeline.artifacts.settings import redact
from reward.offline.excerpt import printable

_LINE_CHARS = 120


class UnansweredError(ValueError):
    """No answer came; says from where and why."""


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


def get(
    url: str,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    verify: ssl.SSLContext | bool = True,
) -> httpx.Response:
    """Sends a GET through the environment's proxy, if there is one; follows no redirect.

    Raises:
        UnansweredError: no whole answer came.
    """
    try:
        return httpx.get(url, timeout=timeout_s, headers=headers, auth=auth, verify=verify)
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
        through = " (through a proxy: see HTTP_PROXY and NO_PROXY)" if _has_proxy(url) else ""
        raise UnansweredError(f"{place_of(url)}: {_reason(error, timeout_s)}{through}") from error


def place_of(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(redact(url))
    return f"{parts.scheme}://{parts.netloc}"


def line_of(answer: httpx.Response) -> str:
    """The beginning of its text, for a message."""
    return printable(" ".join(answer.text.split()))[:_LINE_CHARS]


def object_of(answer: httpx.Response) -> dict[str, Any]:
    """Its JSON object; an empty one where it is none."""
    try:
        found = json.loads(answer.text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
