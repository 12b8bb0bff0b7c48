"""Shared by the tests of evaluations: a small benchmark, and servers over real HTTP that follow a script."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pipeline.evaluate.benchmark import (
    BenchmarkCard,
    Item,
    Judged,
    Judgement,
    JudgeRequest,
    LabelledResponse,
    Prompt,
    PromptStyle,
)
from pipeline.evaluate.judge_agreement import HUMAN, JUDGE
from pipeline.evaluate.majority import majority_scores
from pipeline.evaluate.plan import BenchmarkSource, EvaluationJob
from pipeline.evaluate.run import Outcome, run_evaluation
from reward.config import OpenAISamplerConfig
from reward.samplers import Message
from reward.types import Document, RagQuery

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["right", "wrong"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


class Shops:
    """Ten shops in two towns, each with a price; a judge says whether an answer names it.

    Args:
        given: Whether the answers are given, with people's labels, so that only the judge is measured.
    """

    def __init__(self, *, given: bool = False) -> None:
        self._given = given

    @property
    def card(self) -> BenchmarkCard:
        return BenchmarkCard(
            name="calibration" if self._given else "shops",
            title="Shops",
            url="https://example.org/shops",
            licence="CC0-1.0",
            primary="right",
            scored_by="judge",
            styles=(PromptStyle.PLAIN, PromptStyle.COT),
            prompt_digest="0" * 64,
        )

    def items(self, source: Path) -> Iterator[Item]:
        for line in source.read_text().splitlines():
            row = json.loads(line)
            if not self._given:
                yield self._item(row, row["id"])
                continue
            for label, price in (("true", row["price"]), ("false", 999)):
                text = f"It is {price} euros."
                response = LabelledResponse(id=label, text=text, consistent=label == "true")
                yield self._item(row, f"{row['id']}/{label}").model_copy(update={"responses": (response,)})

    def _item(self, row: Mapping[str, Any], item_id: str) -> Item:
        text = f"The shop number {row['id']} sells lamps. A lamp costs {row['price']} euros there."
        documents = (Document(id="d", title="Lamps", text=text),)
        return Item(
            id=item_id,
            slice=row["town"],
            cluster=row["id"],
            query=RagQuery(id=row["id"], query="How much is a lamp?", documents=documents),
            references=(str(row["price"]),),
        )

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        if self._given:
            return (Prompt(name="given", given=item.responses[0].text),)
        user = f"{item.query.documents[0].text}\n\n{item.query.query}"
        return (Prompt(name="answer", messages=(Message(role="user", content=user),)),)

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest | None:
        question = f"Price: {item.references[0]}\nAnswer: {generation}\nRight or wrong?"
        return JudgeRequest(messages=(Message(role="user", content=question),), json_schema=SCHEMA)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        try:
            verdict = json.loads(reply)["verdict"]
        except (ValueError, KeyError, TypeError):
            return None
        return Judgement(passed=verdict == "right", label=verdict, reason=f"{verdict}, as the price is known")

    def by_majority(self, judged: Mapping[str, Sequence[Judged]]) -> Mapping[str, float | None]:
        found = majority_scores([one for part in judged.values() for one in part], "right")
        return {**found, JUDGE: found["right"]} if self._given else found

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        return {HUMAN: float(bool(item.responses[0].consistent))} if self._given else {}


def make(name: str) -> Shops:
    """The benchmarks of the tests by their names."""
    known = {"shops": Shops(), "calibration": Shops(given=True)}
    if name not in known:
        raise ValueError(f"benchmark: {name!r} is not known; give one of {', '.join(known)}")
    return known[name]


def shops_file(folder: Path, num_shops: int = 10) -> Path:
    """The benchmark's official file."""
    path = folder / "shops.jsonl"
    rows = [{"id": str(i), "price": 100 + i, "town": "east" if i % 2 else "west"} for i in range(num_shops)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def said_price(body: Mapping[str, Any]) -> list[str]:
    """Answers of a model that names the price, but for a share that the prompt and the seed decide."""
    text = body["messages"][-1]["content"]
    (price,) = re.findall(r"costs (\d+) euros", text)
    drawn = hashlib.sha256(f"{body.get('seed')} {text}".encode()).digest()
    return [f"It is {price if drawn[i] > 80 else 999} euros." for i in range(body.get("n") or 1)]


def ruled(body: Mapping[str, Any]) -> list[str]:
    """Replies of a judge that compares the numbers."""
    price, said = re.findall(r"Price: (\d+)\nAnswer: It is (\d+)", body["messages"][-1]["content"])[0]
    return [json.dumps({"verdict": "right" if price == said else "wrong"})]


def drawn_answers(body: Mapping[str, Any]) -> list[str]:
    """Answers to any question, decided by the prompt and the seed."""
    drawn = hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode()).digest()
    return [f"It took {drawn[i]} years.\nAnswer: {drawn[i]}" for i in range(body.get("n") or 1)]


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


class Watch:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int, int]] = []
        self.num_steps = 0

    def stage(self, label: str, total: int, done: int) -> None:
        self.stages.append((label, total, done))

    def step(self, note: str = "") -> None:
        self.num_steps += 1


def shops_job(folder: Path, model: ChatServer, judge: ChatServer | None, /, **changes: Any) -> EvaluationJob:
    """An evaluation on the shops, which lie in the folder's parent."""
    source = BenchmarkSource(name="shops", path=shops_file(folder.parent))
    given = {"out": folder, "benchmarks": (source,), "model": model.config(), "concurrency": 4}
    given |= {"judge": judge.config() if judge else None}
    return EvaluationJob.model_validate(given | changes)


def run(job: EvaluationJob) -> tuple[Outcome, Watch]:
    """Runs an evaluation; returns how it ended and who watched."""
    watch = Watch()
    return run_evaluation(job, make, watch), watch


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
