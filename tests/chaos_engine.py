"""A scripted engine in a process of its own, to be killed, stalled and made to misbehave:

    python tests/chaos_engine.py PORT SEED

It is an OpenAI-compatible server that plays the roles; `POST /fault` with the JSON of `Faults` makes a share
of its completions go wrong in one of the ways of `FAULTS`, and `GET /served` counts those that did not. Like
vLLM it names a completion after the request's X-Request-Id. It imports its neighbour as a script does, since
a package that OpenRLHF installs has the tests' name.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openai_model import completion


@dataclass
class Faults:
    """What goes wrong with which share of the completions, and how long each takes anyway."""

    kind: str = "none"
    share: float = 0.0
    pause_s: float = 0.0


def whole(data: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    """An HTTP answer; with `length` one that declares another length than it has."""
    num_bytes = len(data) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {num_bytes}\r\n\r\n"
    return head.encode() + data


def told(answer: dict[str, Any]) -> bytes:
    return whole(json.dumps(answer).encode())


def nonsense(answer: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": "\x00[Answer: "}
    return told(answer | {"choices": [choice | {"message": message} for choice in answer["choices"]]})


# What is sent in place of a right answer; "anothers" is the answer to the request before.
FAULTS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "garbage": lambda _: whole(b"<html>not JSON"),
    "half": lambda answer: whole(json.dumps(answer).encode()[:60], length=5000),
    "nonsense": nonsense,
    "fewer": lambda answer: told(answer | {"choices": answer["choices"][1:]}),
    "more": lambda answer: told(answer | {"choices": answer["choices"] * 2}),
    "null": lambda answer: told(answer | {"choices": None}),
    "error": lambda _: whole(b'{"error": {"message": "the engine died"}}', "500 Internal Server Error"),
    "drop": lambda _: b"",
    "late": told,
}
HANGS_UP = ("half", "drop")


class Engine:
    """Answers requests as its faults say."""

    def __init__(self, seed: int) -> None:
        self.faults = Faults()
        self.num_served = 0
        self._random = random.Random(seed)
        self._last: dict[tuple[str, int], bytes] = {}  # by role and n: the answer to the latest request

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one client until it goes, or a fault ends it."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                data, hangs_up = await self.answer(lines[0].split(" ")[1], headers, body)
                writer.write(data)
                await writer.drain()
                if hangs_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[bytes, bool]:
        """One answer, and whether it ends the connection."""
        if path == "/fault":
            self.faults = Faults(**json.loads(body))
        elif path == "/v1/models":
            model = {"id": "m", "object": "model", "created": 0, "owned_by": "x"}
            return told({"object": "list", "data": [model]}), False
        elif path.endswith("/completions"):
            return await self.completed(headers.get("x-request-id", "unnamed"), json.loads(body))
        return told({"served": self.num_served}), False

    async def completed(self, request_id: str, body: dict[str, Any]) -> tuple[bytes, bool]:
        """A completion, or what a fault makes of it."""
        faults = self.faults
        await asyncio.sleep(faults.pause_s)
        if len(body["messages"]) == 1:  # the server's greeting at its start
            body["messages"] *= 2
            body["messages"].append({"role": "user", "content": "It raised 0 euros."})
        right = completion(body) | {"id": f"chatcmpl-{request_id}"}
        slot = (body["messages"][0]["content"], len(right["choices"]))
        anothers, self._last[slot] = self._last.get(slot), told(right)
        if self._random.random() >= faults.share:
            self.num_served += 1
            return told(right), False
        if faults.kind == "anothers":
            return anothers or b"", anothers is None
        if faults.kind == "late":
            await asyncio.sleep(60)
        return FAULTS[faults.kind](right), faults.kind in HANGS_UP


async def main() -> None:
    engine = Engine(int(sys.argv[2]))
    listener = await asyncio.start_server(engine.connection, "127.0.0.1", int(sys.argv[1]), backlog=2048)
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
