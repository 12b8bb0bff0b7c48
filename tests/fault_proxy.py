"""An HTTP proxy before a real server that does to chosen requests what a bad line or a busy server does."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Harm(Enum):
    """What is done to a request or its answer."""

    INTERNAL_ERROR = auto()  # 500
    SLOW_DOWN = auto()  # 503, as S3 throttles
    FULL = auto()  # 507, as Swift says that its disks are full
    RESET = auto()  # the connection, before the server gets anything
    LOSE_ANSWER = auto()  # the same, after the server has done what was asked
    DAMAGE_REQUEST = auto()  # one byte
    DAMAGE_ANSWER = auto()  # one byte
    CUT_ANSWER = auto()  # after half of its bytes
    HOLD = auto()  # before the server gets anything, for ever
    HOLD_ANSWER = auto()  # after the server has done what was asked, for ever


_STATUS = {
    Harm.INTERNAL_ERROR: (500, "InternalError"),
    Harm.SLOW_DOWN: (503, "SlowDown"),
    Harm.FULL: (507, "InsufficientStorage"),
}


@dataclass
class Fault:
    """What happens to whom."""

    pattern: str  # of "METHOD /path?query"
    harm: Harm
    times: int = 1
    after: int = 0  # requests that are let through first


@dataclass
class FaultProxy:
    """A proxy; its faults may be changed at any time."""

    target: str
    endpoint: str = ""
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, int]] = field(default_factory=list)  # request, and bytes of its body
    held: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def harm_of(self, request: str) -> Harm | None:
        with self.lock:
            for fault in self.faults:
                if not re.search(fault.pattern, request) or not fault.times:
                    continue
                if fault.after:
                    fault.after -= 1
                    continue
                fault.times -= 1
                return fault.harm
        return None

    def num_bytes(self, pattern: str) -> int:
        """Bytes of the bodies of the requests that fit."""
        return sum(size for request, size in self.seen if re.search(pattern, request))


@contextmanager
def proxy_to(target: str) -> Iterator[FaultProxy]:
    """A proxy until it is left."""
    proxy = FaultProxy(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = f"{self.command} {self.path}"
            proxy.seen.append((request, len(body)))
            _answer(self, proxy, proxy.harm_of(request), body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = handle_any

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield proxy
    finally:
        proxy.left.set()
        server.shutdown()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, proxy: FaultProxy, harm: Harm | None, body: bytes) -> None:
    if harm in _STATUS:
        return _refuse(handler, *_STATUS[harm])
    if harm is Harm.RESET:
        return _reset(handler)
    if harm is Harm.HOLD:
        return _hold(handler, proxy)
    try:
        status, headers, content = _ask(
            handler, proxy, _damaged(body) if harm is Harm.DAMAGE_REQUEST else body
        )
    except OSError:  # of a server that was killed
        return _reset(handler)
    if harm is Harm.LOSE_ANSWER:
        return _reset(handler)
    if harm is Harm.HOLD_ANSWER:
        return _hold(handler, proxy)
    if harm is Harm.DAMAGE_ANSWER:
        content = _damaged(content)
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    if harm is Harm.CUT_ANSWER:
        handler.wfile.write(content[: len(content) // 2])
        return _reset(handler)
    with contextlib.suppress(ConnectionError):  # of a client that was killed
        handler.wfile.write(content)


def _ask(
    handler: BaseHTTPRequestHandler, proxy: FaultProxy, body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection(urlsplit(proxy.target).netloc, timeout=300)
    connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
    for name, value in handler.headers.items():  # Host as it was signed
        if name.lower() not in ("expect", "connection"):
            connection.putheader(name, value)
    connection.endheaders(body or None)
    answer = connection.getresponse()
    content = answer.read()
    dropped = ("transfer-encoding", "connection", "content-length")
    headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped]
    length = answer.headers["Content-Length"] if handler.command == "HEAD" else str(len(content))
    connection.close()
    return answer.status, [*headers, ("Content-Length", length or "0")], content


def _refuse(handler: BaseHTTPRequestHandler, status: int, code: str) -> None:
    content = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/xml")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(content)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    with contextlib.suppress(OSError):  # of a client that has left
        handler.wfile.flush()
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True


def _hold(handler: BaseHTTPRequestHandler, proxy: FaultProxy) -> None:
    if not any(fault.times for fault in proxy.faults):  # all that were to be held are
        proxy.held.set()
    proxy.left.wait()
    _reset(handler)


def _damaged(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :] if content else content
