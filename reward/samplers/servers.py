"""Several servers of one model: which one is asked next, and which one is left alone for a while.

The least busy server is asked, of those that did not fail lately; one that failed is avoided for a cool-down,
and then a single request tries it before the others come back. Nothing is queued here beyond one semaphore
a server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from urllib.parse import urljoin

import openai

from reward import telemetry
from reward.samplers import EngineState, EngineStatus

# Connecting takes milliseconds or fails; all else is bounded by the sampler, over all servers together.
_TIMEOUT = openai.Timeout(None, connect=5.0)


@dataclass(eq=False)
class Server:
    """One server and what was learnt about it."""

    base_url: str
    client: openai.AsyncOpenAI
    slots: asyncio.Semaphore
    address: dict[str, str | int]  # as spans tell it
    num_requests: int = 0  # under way or waiting for a slot
    avoided_until: float = 0.0  # on the monotonic clock, seconds
    failed: bool = False  # its latest request did
    is_up: bool | None = None  # at the latest request or look; None before
    refused_keys: set[str] = field(default_factory=set)  # of a request's body
    counts_tokens: bool = True  # until it says that it has no /tokenize

    @property
    def avoided(self) -> bool:
        return time.monotonic() < self.avoided_until

    @property
    def tokenize_url(self) -> str:
        """Beside the version, where vLLM keeps what OpenAI's interface lacks."""
        return urljoin(f"{self.base_url}/", "../tokenize")


class ServerPool:
    """Hands out servers and remembers which of them failed.

    Args:
        base_urls: Addresses with the version.
        api_key: The same for all.
        max_in_flight: Requests at once, to each server.
        cool_down_s: How long a server that failed is avoided.
    """

    def __init__(
        self, base_urls: Sequence[str], *, api_key: str, max_in_flight: int, cool_down_s: float
    ) -> None:
        self._cool_down_s = cool_down_s
        self.servers = tuple(
            Server(
                base_url=url,
                client=openai.AsyncOpenAI(base_url=url, api_key=api_key, timeout=_TIMEOUT, max_retries=0),
                slots=asyncio.Semaphore(max_in_flight),
                address=telemetry.address_of(url),
            )
            for url in base_urls
        )

    async def acquire(self, tried: Set[Server]) -> Server:
        """A place at the best server that is not among `tried`, once it has one free; to be released."""
        untried = [server for server in self.servers if server not in tried]
        while True:
            server = min(untried, key=lambda one: (one.avoided, one.num_requests))
            server.num_requests += 1
            try:
                await server.slots.acquire()
            except BaseException:
                server.num_requests -= 1
                raise
            if not server.avoided or all(one.avoided for one in untried):
                break
            self.release(server)  # it failed others while this request waited
        if server.failed:  # one request tries it, the others stay away until that is over
            server.avoided_until = time.monotonic() + self._cool_down_s
        return server

    def release(self, server: Server) -> None:
        """Gives a place back."""
        server.num_requests -= 1
        server.slots.release()

    def num_usable(self, tried: Set[Server], *, acquired: Server) -> int:
        """Servers that a request can still turn to, the one that it has included."""
        return 1 + sum(
            server is not acquired and server not in tried and not server.avoided for server in self.servers
        )

    def note(self, server: Server, *, failed: bool) -> None:
        """Remembers how a request ended."""
        server.failed = failed
        server.is_up = not failed
        server.avoided_until = time.monotonic() + self._cool_down_s if failed else 0.0

    def statuses(self) -> tuple[EngineStatus, ...]:
        """What is known of each server."""
        states = {None: EngineState.UNKNOWN, True: EngineState.READY, False: EngineState.FAILING}
        return tuple(
            EngineStatus(server.base_url, states[server.is_up], server.num_requests)
            for server in self.servers
        )

    async def close(self) -> None:
        """Closes all connections."""
        for server in self.servers:
            await server.client.close()
