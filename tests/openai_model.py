"""Shared by the tests: an OpenAI-compatible server over real HTTP that plays the roles and may misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[["Model", Any], bool]  # given the model and the request's handler; whether it has answered


class Model:
    """An OpenAI-compatible server over real HTTP that reads the prompts and may misbehave.

    Args:
        said: What a role (its system message) says to a text.
    """

    def __init__(self, said: Callable[[str, str], str] | None = None) -> None:
        self.fault: Fault | None = None
        self.num_requests = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.num_requests += 1
                if model.fault is not None and model.fault(model, self):
                    return
                self.answer(completion(body, said or picnic))

            def answer(self, told: Any, status: int = 200) -> None:
                data = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def picnic(role: str, text: str) -> str:
    """What the roles say of one number, that which was raised."""
    number = text.split("raised ")[1].split(" ")[0]
    if role == "proposer":
        return f"- Question: What did it raise? [Answer: {number}]"
    return f"1. Evidence: it raised {number} euros. [Answer: {number}]"


def completion(body: dict[str, Any], said: Callable[[str, str], str] = picnic) -> dict[str, Any]:
    role, text = (message["content"] for message in body["messages"])
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": said(role, text)}}
    choices = [{"index": i, **choice} for i in range(body.get("n") or 1)]
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
