"""A server of made-up answers by path, for the tests of what reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Canned:
    """Answers by path (without the query), and what was asked."""

    answers: Mapping[str, tuple[int, Any]]  # status, and text or what becomes JSON
    token: str | None = None  # what a caller must bear, but for paths in `public`
    public: tuple[str, ...] = ()
    date: str | None = None  # told in place of the clock's
    hangs: threading.Event | None = None  # nothing is answered before it is set
    address: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve_canned(canned: Canned) -> Iterator[Canned]:
    """Serves until it is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            canned.asked.append(path)
            if canned.hangs is not None:
                canned.hangs.wait(60)
            status, body = canned.answers.get(path, (404, "not found"))
            if canned.token and path not in canned.public:
                given = self.headers.get("Authorization")
                if given != f"Bearer {canned.token}":
                    status, body = (403 if given else 401), "Forbidden"
            self._answer(status, body if isinstance(body, str) else json.dumps(body))

        def do_HEAD(self) -> None:
            self.do_GET()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return canned.date or super().date_time_string(timestamp)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    canned.address = f"http://127.0.0.1:{server.server_port}"
    yield canned
    if canned.hangs is not None:
        canned.hangs.set()
    server.shutdown()
    server.server_close()
