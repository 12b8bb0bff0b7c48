"""Shared by the tests of the command line: `march` in this process, and a server whose model knows prices."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli import main

DATA = Path(__file__).parent / "data"
MARCH = [sys.executable, "-c", "from orchestration.cli import main; main()"]


class ShopModel(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose model answers with the first price that it reads."""

    protocol_version = "HTTP/1.1"
    delay_s = 0.0

    def do_GET(self) -> None:
        self.reply(
            {"object": "list", "data": [{"id": "shop", "object": "model", "created": 0, "owned_by": ""}]}
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay_s)
        system, user = (message["content"] for message in asked["messages"])
        price = re.findall(r"(\d+) euros", user)[0]
        text = f"- Question: How much? [Answer: {price}]" if system == "proposer" else f"1. [Answer: {price}]"
        message = {"role": "assistant", "content": text}
        choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(asked["n"])]
        self.reply(
            {"id": "c", "object": "chat.completion", "created": 0, "model": "shop", "choices": choices}
        )

    def reply(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_shop() -> Iterator[str]:
    """The address of a running `ShopModel`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ShopModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def write_rows(folder: Path) -> Path:
    """Thirty rows, every fifth with a wrong price."""
    path = folder / "in.jsonl"
    with path.open("w") as file:
        for i in range(30):
            document = {"id": "d", "title": "", "text": f"It costs {100 + i} euros."}
            response = f"It is {7 if i % 5 == 4 else 100 + i} euros."
            row = {"id": f"r{i}", "query": "How much?", "documents": [document], "response": response}
            file.write(json.dumps(row) + "\n")
    return path


def march(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The error of a command that must end with exit code 2 and one line."""
    assert march(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("march: ") and error.count("\n") == 1, error
    return error
