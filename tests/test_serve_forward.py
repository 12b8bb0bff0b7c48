"""Connections that are passed on: nothing answers, streams, clients that go away."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from orchestration.serving.forward import Forwarder


@contextmanager
def listening() -> Iterator[tuple[Forwarder, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    front, is_ready, loops = Forwarder(), threading.Event(), list[asyncio.AbstractEventLoop]()
    is_left = asyncio.Event()

    async def listen() -> None:
        loops.append(asyncio.get_running_loop())
        await front.listen("127.0.0.1", port)
        is_ready.set()
        await is_left.wait()

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    assert is_ready.wait(10)
    try:
        yield front, port
    finally:
        loops[0].call_soon_threadsafe(is_left.set)
        thread.join()


@pytest.mark.parametrize("is_set", [False, True], ids=["no target", "nobody at the target"])
def test_where_nothing_answers_a_client_gets_503_whatever_it_sends(is_set: bool) -> None:
    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as nobody:
        if is_set:
            front.target = nobody.getsockname()[1]
        nobody.close()
        got = httpx.post(f"http://127.0.0.1:{port}/", content=b"x" * 5_000_000, trust_env=False)
        assert got.status_code == 503 and got.headers["Retry-After"] == "5"


def test_bytes_pass_as_they_come_and_a_connection_stays_where_it_began() -> None:
    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as server:
        front.target = old = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            inside, _ = server.accept()
            client.sendall(b"ask")
            assert inside.recv(10) == b"ask"
            assert front.num_open(old) == 1
            front.target = None
            for part in (b"first", b"second"):
                inside.sendall(part)
                assert client.recv(10) == part
            inside.close()
            assert client.recv(10) == b""
        ended(front, old)


def test_a_connection_counts_while_it_is_still_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its server could be ended meanwhile, as one that has no connection."""
    counted: list[int] = []
    connect = asyncio.open_connection

    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as server:
        front.target = inside = server.getsockname()[1]

        async def counting(host: str, number: int) -> object:
            counted.append(front.num_open(inside))
            return await connect(host, number)

        monkeypatch.setattr(asyncio, "open_connection", counting)
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            server.accept()[0].close()
        ended(front, inside)
    assert counted == [1]


def test_a_server_sees_that_its_client_has_gone() -> None:
    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as server:
        front.target = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        inside, _ = server.accept()
        inside.settimeout(10)
        client.close()
        assert inside.recv(10) == b""
        inside.close()
        ended(front, server.getsockname()[1])


def test_an_answer_to_a_client_that_has_no_more_to_say_comes_though_memory_is_collected() -> None:
    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as server:
        front.target = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            inside, _ = server.accept()
            client.sendall(b"ask")
            client.shutdown(socket.SHUT_WR)
            while inside.recv(10):
                pass
            gc.collect()
            inside.sendall(b"answer")
            inside.close()
            assert client.recv(10) == b"answer"


def test_a_client_that_does_not_read_holds_its_server_back_and_no_memory() -> None:
    with listening() as (front, port), socket.create_server(("127.0.0.1", 0)) as server:
        front.target = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            inside, _ = server.accept()
            inside.settimeout(1)
            sent = threading.Event()

            def send() -> None:
                with pytest.raises(TimeoutError):
                    inside.sendall(b"x" * 200_000_000)
                sent.set()

            threading.Thread(target=send).start()
            assert sent.wait(30)
            inside.close()


def ended(front: Forwarder, port: int) -> None:
    until = time.monotonic() + 10
    while front.num_open(port):
        assert time.monotonic() < until
        time.sleep(0.01)
