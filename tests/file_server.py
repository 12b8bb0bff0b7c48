"""A server of one file that can hang up in the middle, as bad lines do; for the tests of downloads."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What is served, and how badly."""

    content: bytes
    cuts: list[int] = field(default_factory=list)  # bytes after which each of the next answers ends
    knows_ranges: bool = True
    status: int = 200
    stalled: threading.Event | None = None  # an answer that is cut short then waits for it
    address: str = ""
    asked: list[str] = field(default_factory=list)  # the Range of each request, or nothing

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


@contextmanager
def serve(served: Served, name: str = "rows.jsonl") -> Iterator[Served]:
    """Serves until it is left; `served.address` is the file's."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            served.asked.append(wanted)
            start = _start(served, wanted, self.headers.get("If-Range"))
            if served.status != 200:
                return self.send_error(served.status)
            if start >= len(served.content) > 0:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(served.content)}")
                return self.end_headers()
            body = served.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("ETag", served.etag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not served.cuts:
                self.wfile.write(body)
                return
            self.wfile.write(body[: served.cuts.pop(0)])
            if served.stalled is not None:
                served.stalled.wait(60)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    served.address = f"http://127.0.0.1:{server.server_port}/data/{name}"
    yield served
    server.shutdown()
    server.server_close()


def _start(served: Served, wanted: str, if_range: str | None) -> int:
    """Where the answer begins: at the start unless the file is still the one that was begun."""
    match = re.fullmatch(r"bytes=(\d+)-", wanted)
    return int(match[1]) if match and served.knows_ranges and if_range == served.etag else 0
