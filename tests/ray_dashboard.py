"""A server that speaks as much of Ray's job API as a stage needs, and fails when it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Dashboard:
    """Jobs by their submission id, and what was asked."""

    jobs: dict[str, str] = field(default_factory=dict)  # status
    log: str = ""
    fails: str = ""  # "status 500", "hangs", "resets", "nonsense"
    only: str = "/api/jobs"  # start of the paths that fail
    asked: list[str] = field(default_factory=list)
    address: str = ""
    freed: threading.Event = field(default_factory=threading.Event)

    def stops(self) -> int:
        """How often somebody wanted a job to stop."""
        return sum(one.endswith("/stop") for one in self.asked)


@contextmanager
def serve_dashboard() -> Iterator[Dashboard]:
    """Serves until it is left."""
    found = Dashboard()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if found.fails and self.path.startswith(found.only):
                if found.fails == "hangs":
                    found.freed.wait(60)
                if found.fails in ("hangs", "resets"):
                    self.close_connection = True
                    return
                self.reply("<html>proxy</html>", 500 if found.fails == "status 500" else 200)
                return
            self.reply(json.dumps(self.answer(body)))

        do_POST = do_GET

        def answer(self, body: bytes) -> Any:
            name = self.path.removeprefix("/api/jobs/").partition("/")[0]
            if self.path == "/api/version":
                return {"version": "4", "ray_version": "2.50.0", "ray_commit": "c", "session_name": "s"}
            if self.path == "/api/jobs/" and self.command == "POST":
                name = json.loads(body)["submission_id"]
                found.jobs[name] = "RUNNING"
                return {"job_id": name, "submission_id": name}
            if self.path == "/api/jobs/":
                return [job(one) for one in found.jobs]
            if self.path.endswith("/logs"):
                return {"logs": found.log}
            if self.path.endswith("/stop"):
                found.jobs[name] = "STOPPED"
                return {"stopped": True}
            return job(name)

        def reply(self, text: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    def job(name: str) -> dict[str, object]:
        return {
            "type": "SUBMISSION",
            "submission_id": name,
            "status": found.jobs[name],
            "entrypoint": "e",
            "message": "as Ray says",
        }

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        found.freed.set()
        server.shutdown()
        server.server_close()
