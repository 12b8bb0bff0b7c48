"""The layer below ASGI: where the server listens, its certificates, and which connections it ends.

Uvicorn gives a new connection unlimited time to send its first request, its faster parser takes headers of
any length, and a client that reads nothing keeps its answer in memory for ever. `guarded` extends uvicorn's
own protocol, whichever parser it has, by four bounds:

    more than `max_connections`             503 with Retry-After, at once
    headers longer than `max_header_bytes`  431
    headers not whole in time               408 (between two requests uvicorn has a limit of its own)
    an answer that is not read              the connection is cut

A peer that vanished without a word (a half-open socket) is found by TCP's own probes.

A socket that a supervisor passes (systemd's socket activation, sd_listen_fds(3)) outlives the process. While
one server ends and the next one starts, connections wait in its backlog and are not refused. OpenRLHF's stock
client needs that: it gives a sample up after five failures a second apart, but waits 180 s for one answer.
`infra/systemd/` holds the units.
"""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from prometheus_client import Counter
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from reward.serving.config import RequestLimits, TlsConfig
from reward.serving.tokens import Reloaded

_ANSWERS = {
    "connections": b"503 Service Unavailable\r\nRetry-After: 1",
    "headers": b"431 Request Header Fields Too Large",
    "slow": b"408 Request Timeout",
}


def guarded(limits: RequestLimits, refused: Counter) -> type[asyncio.Protocol]:
    """A protocol class for `uvicorn.Config(http=...)`; `refused` counts the ended connections by `reason`."""
    for reason in (*_ANSWERS, "stalled"):
        refused.labels(reason)  # shown as 0, so that its first time is a rise
    bounds = {"limits": limits, "refused": refused}
    return cast(type[asyncio.Protocol], type("Guarded", (Bounds, AutoHTTPProtocol), bounds))


class Bounds(asyncio.Protocol):
    """Watches how a request begins and an answer ends; comes before uvicorn's protocol among the bases."""

    limits: RequestLimits
    refused: Counter
    connections: set[Any]  # uvicorn's, as the next three
    cycle: Any  # the request under way or last answered, once its headers are whole
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport | None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._timer: asyncio.TimerHandle | None = None  # runs until a request's headers are whole
        self._stall: asyncio.TimerHandle | None = None  # runs while the client does not read
        self._num_header_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        is_full = len(self.connections) >= self.limits.max_connections
        super().connection_made(transport)
        if is_full:
            self._refuse("connections")
        else:
            self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Hands data on; what does not complete a request's headers is counted against them."""
        if self.transport is None or self.transport.is_closing():
            return
        before = self.cycle
        is_idle = before is None or before.response_complete
        is_of_next = is_idle or not before.more_body  # while an answer is under way, too
        if is_idle and self._timer is None:
            self._await_headers()  # of the next request on a kept connection
        super().data_received(data)
        if not is_of_next or self.cycle is not before:
            return self._end_wait()
        self._num_header_bytes += len(data)
        if self._num_header_bytes > self.limits.max_header_bytes:
            self._refuse("headers")

    def pause_writing(self) -> None:
        """The client reads its answer more slowly than it is written."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._end_stall()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_timeout_s, self._refuse, "slow")

    def _end_wait(self) -> None:
        self._num_header_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _refuse(self, reason: str) -> None:
        self._end_wait()
        if self.transport is None or self.transport.is_closing():
            return
        self.refused.labels(reason).inc()
        self.transport.write(
            b"HTTP/1.1 " + _ANSWERS[reason] + b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        self.transport.close()

    def _watch_reader(self) -> None:
        left = 0 if self.transport is None else self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self.limits.stall_timeout_s, self._cut, left)

    def _cut(self, left: int) -> None:
        """Ends the connection, unless the client has read some of what was left to it, however slowly."""
        if self.transport is None:
            return
        if self.transport.get_write_buffer_size() < left:
            return self._watch_reader()
        self.refused.labels("stalled").inc()
        self.transport.abort()


_PROBES = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # dead after a minute; Linux's
_FIRST_FD = 3  # SD_LISTEN_FDS_START
_PASSED = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def open_listener(host: str, port: int) -> tuple[socket.socket, bool]:
    """The socket that was passed to this process, if one was, else a new one; and whether it was.

    Raises:
        ValueError: the address cannot be listened on, or what was passed is not one listening TCP socket.
    """
    passed = _passed()
    listener = passed or _bound(host, port)
    probe_peers(listener)
    return listener, passed is not None


def probe_peers(listener: socket.socket) -> None:
    """Has the system ask idle peers whether they are still there; accepted connections inherit it."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _passed() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    found = {name: os.environ.pop(name, "") for name in _PASSED}  # they are not for this one's children
    if found["LISTEN_FDS"] != "1":
        raise ValueError(f"LISTEN_FDS: {found['LISTEN_FDS']!r} sockets were passed; pass one")
    try:
        os.set_inheritable(_FIRST_FD, False)
        passed = socket.socket(fileno=_FIRST_FD)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        line = f"LISTEN_FDS: file descriptor {_FIRST_FD} is no socket ({error.strerror})"
        raise ValueError(line) from error
    if not listens or passed.family not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError("LISTEN_FDS: the socket does not listen on TCP; use ListenStream=HOST:PORT")
    return passed


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        fix = "stop what uses it or set another port" if in_use else "fix host or port"
        raise ValueError(f"port: cannot listen on {host}:{port} ({error.strerror}); {fix}") from error


def raise_file_limit() -> None:
    """Raises the soft limit on open files to the hard one: each connection and each engine's takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit of their own
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def tls_options(tls: TlsConfig, note: Callable[[bool], object]) -> dict[str, Any]:
    """Arguments of `uvicorn.Config` for HTTPS; changed files are read again (`tokens.Reloaded`).

    New connections come in by one context, whose hook for the server's name gives each of them the context of
    now: OpenSSL calls it before a certificate is shown, also when the client names no server. `note` is
    called for changed files, with whether they can be used.

    Raises:
        ValueError: a file cannot be read or is not what it must be; one line that names the field.
    """
    files = [file for file in (tls.cert, tls.key, tls.client_ca) if file is not None]

    contexts = Reloaded("certificates", files, partial(_tls_context, tls), note)
    first = contexts.get()

    def use_current(connection: ssl.SSLObject, *_: object) -> None:
        connection.context = contexts.get()

    first.sni_callback = use_current
    return {"ssl_context_factory": lambda *_: first}


def _tls_context(tls: TlsConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # TLS 1.2 at least, which is Python's own default
    where, fix = "tls.cert and tls.key", "give a PEM certificate and its own PEM key without a password"
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
        if tls.client_ca is not None:
            where, fix = "tls.client_ca", "give PEM certificates"
            context.load_verify_locations(tls.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ValueError(f"{where}: cannot use the files ({reason}); {fix}") from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")  # else OpenSSL would ask the terminal for it
