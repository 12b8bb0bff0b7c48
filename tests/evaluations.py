"""Shared by the tests of evaluations: servers over real HTTP that follow a script, and a small evaluation."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.results import ItemResult
from reward.config import OpenAISamplerConfig
from reward.offline.rows import read_records
from tests.benchmark_files import FOLDERS

QUESTIONS = "2wikimultihopqa"  # the benchmark of the small evaluation


def drawn_answers(body: Mapping[str, Any]) -> list[str]:
    """An answer to any question, decided by the prompt and the seed."""
    drawn = hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode()).digest()[0]
    return [f"It took {drawn} years.\nAnswer: {drawn}"] * (body.get("n") or 1)


def drawn_verdict(body: Mapping[str, Any]) -> list[str]:
    """A verdict by any schema, decided by the question."""
    drawn = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    verdict: dict[str, Any] = {}
    for name, field in body["response_format"]["json_schema"]["schema"]["properties"].items():
        if "enum" in field:
            verdict[name] = field["enum"][drawn[0] % len(field["enum"])]
        else:
            verdict[name] = drawn[0] % 2 == 0 if field.get("type") == "boolean" else "So it is written."
    return [json.dumps(verdict)]


class ChatServer:
    """An OpenAI-compatible server over real HTTP.

    Args:
        complete: From a request's body to the texts of its choices.
        model: Its name.

    Attributes:
        bodies: Every request, in order.
        status: Sent in place of an answer when it is not 200.
        too_long: A prompt with these words does not fit.
        delay_s: Waited before each answer.
    """

    def __init__(self, complete: Callable[[Mapping[str, Any]], list[str]], model: str) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.complete, self.model = complete, model
        self.status, self.delay_s, self.too_long = 200, 0.0, "\0"
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def config(self, **changes: Any) -> OpenAISamplerConfig:
        """How it is sampled, giving up soon."""
        given = {"base_urls": (self.url,), "model": self.model, "timeout_s": 60, "max_retries": 0}
        return OpenAISamplerConfig.model_validate(given | changes)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> ChatServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


def _handler(owner: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if owner.status != 200:
                return self._refuse(owner.status, "no")
            listed = {"id": owner.model, "object": "model", "created": 0, "owned_by": ""}
            self._send({"object": "list", "data": [listed]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/tokenize"):
                words = sum(len(message["content"].split()) for message in body["messages"])
                return self._send({"count": words})
            owner.bodies.append(body)
            time.sleep(owner.delay_s)
            if owner.status != 200:
                return self._refuse(owner.status, "no")
            if owner.too_long in body["messages"][-1]["content"]:
                return self._refuse(400, "over the maximum context length")
            texts = owner.complete(body)
            choices = [
                {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                for i, text in enumerate(texts)
            ]
            usage = {"prompt_tokens": 30, "completion_tokens": 6 * len(texts), "total_tokens": 0}
            known = {"id": "c", "object": "chat.completion", "created": 0, "model": owner.model}
            self._send({**known, "choices": choices, "usage": usage})

        def _refuse(self, status: int, why: str) -> None:
            self._send({"error": {"message": why, "type": "x", "code": status}}, status)

        def _send(self, told: Any, status: int = 200) -> None:
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    return Handler


def small_job(folder: Path, model: ChatServer, judge: ChatServer | None, /, **changes: Any) -> EvaluationJob:
    """An evaluation of six questions, with four answers to each."""
    given = {"out": folder, "benchmarks": {QUESTIONS: FOLDERS[QUESTIONS]}, "limit": 6}
    given |= {"model": model.config(), "judge": judge.config() if judge else None}
    return EvaluationJob.model_validate(given | {"num_generations": 4, "concurrency": 4} | changes)


def items_of(job: EvaluationJob) -> list[ItemResult]:
    """What the small evaluation found."""
    return [one for _, one in read_records(job.out / QUESTIONS / "items.jsonl", ItemResult)]


def figures(folder: Path) -> dict[str, bytes]:
    """The files of an evaluation that say what it found, by their paths."""
    found = (folder / "results.json", *folder.glob("*/items.jsonl"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
