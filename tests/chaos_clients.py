"""Clients that leave, vanish, stay silent, dawdle or never read; coroutines, to run beside those who stay."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import Sequence

from reward.serving.client import RewardClient
from tests.chaos_processes import KEY, TOKEN, RewardServer
from tests.chaos_trial import Case

HEAD = f"POST /v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
BODY = b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n"
_LARGE = f"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
_TCP_REPAIR = 19  # Linux: a socket in repair closes without a word to its peer


async def leave(server: RewardServer, cases: Sequence[Case], rng: random.Random, *, within_s: float) -> None:
    """Asks, 40 at once, and goes at a random moment before or after each answer."""
    places = asyncio.Semaphore(40)
    async with RewardClient(server.url, TOKEN, signing_key=KEY, timeout_s=30) as client:

        async def one(case: Case, stays_s: float) -> None:
            with contextlib.suppress(TimeoutError):
                async with places:
                    await asyncio.wait_for(client.audit(*case), stays_s)

        await asyncio.gather(*(one(case, rng.uniform(0, within_s)) for case in cases), return_exceptions=True)


async def stay_silent(server: RewardServer, num: int, *, for_s: float) -> None:
    """Connects, perhaps begins a request, and sends nothing more."""
    with contextlib.ExitStack() as stack:
        for i in range(num):
            connection = stack.enter_context(server.connect())
            connection.sendall((b"", HEAD, HEAD + BODY + b"{")[i % 3])
        await asyncio.sleep(for_s)


async def vanish(server: RewardServer, num: int) -> None:
    """As `stay_silent`, and then is gone without a word; with a word where the system wants a privilege."""
    for i in range(num):
        with server.connect() as connection:
            connection.sendall((b"", HEAD, HEAD + BODY + b"{")[i % 3])
            await asyncio.sleep(0.01)
            with contextlib.suppress(PermissionError):
                connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


async def dawdle(server: RewardServer, num: int, *, for_s: float) -> None:
    """Sends headers, and every other one a body, a byte now and then."""

    async def one(sent: bytes, slow: bytes) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with contextlib.suppress(ConnectionError):
            writer.write(sent)
            for byte in slow:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.1)
        writer.close()

    parts = [(b"", HEAD), (HEAD + BODY, b"{" * 500)]
    tasks = [asyncio.ensure_future(one(*parts[i % 2])) for i in range(num)]
    await asyncio.sleep(for_s)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def never_read(server: RewardServer, num: int, *, for_s: float) -> None:
    """Asks for far more than the system's buffers hold and takes none of it."""
    with contextlib.ExitStack() as stack:
        for _ in range(num):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.sendall(_LARGE * 400)
        await asyncio.sleep(for_s)
