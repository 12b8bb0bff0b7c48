"""Put in vLLM's place for the tests of `march model serve`: a server that answers with its model's number.

What the model's config.json says of `behaves` it does: "ends" at once, answers "nothing", or is "never up".
Each start and end is a line of the file that STUB_LOG names.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def note(line: str) -> None:
    with open(os.environ["STUB_LOG"], "a") as log:
        log.write(f"{line}\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--host", "--extra"):
        parser.add_argument(name)
    parser.add_argument("--port", type=int)
    parser.add_argument("--served-model-name", nargs="+")
    given = parser.parse_args()
    config = json.loads((Path(given.model) / "config.json").read_text())
    behaves, number = config.get("behaves"), str(config["number"])
    note(f"start {number} {os.getpid()} {given.extra}")
    if behaves == "ends":
        sys.exit(3)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self.reply({}, 503 if behaves == "never up" else 200)
            else:
                self.reply({"data": [{"id": one} for one in given.served_model_name]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if asked["messages"][-1]["content"] == "slow":
                note(f"slow {number} {os.getpid()}")
                while not Path(os.environ["STUB_LOG"]).with_name("answer").exists():
                    time.sleep(0.05)
            text = "" if behaves == "nothing" else number
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            named = {"id": self.headers.get("X-Request-Id") or "c", "model": asked["model"]}
            self.reply({**named, "object": "chat.completion", "created": 0, "choices": [choice]})

        def reply(self, body: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((given.host, given.port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    note(f"end {number} {os.getpid()}")


if __name__ == "__main__":
    main()
