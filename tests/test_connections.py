"""Connections that hold a place and ask for nothing, over real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from fastapi.responses import Response

from reward.serving.connections import probe_peers
from tests.serving import TOKEN, Serving, serve_picnic

HEAD = f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
Start = Callable[..., Serving]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Serving] = []

    def start_one(**limits: float) -> Serving:
        running.append(serve_picnic(limits=limits))
        return running[-1]

    yield start_one
    for one in running:
        one.close()


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_a_connection_that_says_nothing_is_ended(start: Start) -> None:
    server = start(header_timeout_s=0.3)
    begin = time.monotonic()
    assert read_all(server.connect()).startswith(b"HTTP/1.1 408")
    assert 0.2 < time.monotonic() - begin < 3
    assert server.metric('march_connections_refused_total{reason="slow"}') == 1


def test_dripping_headers_win_no_time(start: Start) -> None:
    server = start(header_timeout_s=0.5)
    connection = server.connect()
    threading.Thread(target=drip, args=(connection, HEAD), daemon=True).start()
    begin = time.monotonic()
    assert read_all(connection).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin < 3


def drip(connection: socket.socket, data: bytes) -> None:
    for i in range(len(data)):
        try:
            connection.sendall(data[i : i + 1])
        except OSError:
            return
        time.sleep(0.05)


def test_the_next_request_of_a_kept_connection_is_bounded_too(start: Start) -> None:
    server = start(header_timeout_s=0.4)
    connection = server.connect()
    for _ in range(2):  # idle between requests for longer than the limit
        connection.sendall(HEAD + b"\r\n")
        assert b"200 OK" in connection.recv(65_536)
        time.sleep(0.6)
    connection.sendall(HEAD)
    begin = time.monotonic()
    assert read_all(connection).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("step", [500, 100_000])
def test_endless_headers_are_ended(start: Start, step: int) -> None:
    server = start(max_header_bytes=4096)
    connection = server.connect()
    connection.sendall(HEAD)
    try:
        for _ in range(100):
            connection.sendall(b"X-More: " + b"a" * step + b"\r\n")
    except OSError:
        pass
    answer = read_all(connection)
    assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400")) or not answer
    assert server.audit().json()["verdict"]["reward"] == 0.0


def test_endless_headers_behind_a_request_under_way_are_ended(start: Start) -> None:
    server = start(max_header_bytes=4096)
    server.app.get("/hang")(lambda: time.sleep(3))
    connection = server.connect()
    connection.sendall(HEAD.replace(b"/version", b"/hang") + b"\r\n" + HEAD)
    begin = time.monotonic()
    try:
        for _ in range(100):
            connection.sendall(b"X-More: " + b"a" * 1000 + b"\r\n")
            time.sleep(0.01)
    except OSError:
        pass
    read_all(connection)
    assert time.monotonic() - begin < 2.5, "it is not kept until the answer"
    assert server.metric('march_connections_refused_total{reason="headers"}') == 1


def test_headers_in_one_piece_are_measured_too(start: Start) -> None:
    server = start(max_header_bytes=4096)
    for path, header in (("/version", "a" * 5000), ("/version?" + "a" * 5000, "")):
        answer = server.http.get(path, headers={"X-More": header})
        assert answer.status_code == 431 and "max_header_bytes 4096" in answer.json()["detail"]


def test_one_connection_too_many_is_a_503_that_says_when(start: Start) -> None:
    server = start(max_connections=3)
    held = [server.connect() for _ in range(3)]
    time.sleep(0.1)
    told = read_all(server.connect())
    assert told.startswith(b"HTTP/1.1 503") and b"Retry-After: 1" in told
    for connection in held:
        connection.close()
    time.sleep(0.1)
    assert server.audit().status_code == 200
    assert server.metric('march_connections_refused_total{reason="connections"}') == 1


def test_a_client_that_reads_nothing_is_cut_off(start: Start) -> None:
    server = start(stall_timeout_s=0.3)
    server.app.get("/large")(lambda: Response(b"x" * 30_000_000))
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(HEAD.replace(b"/version", b"/large") + b"\r\n")
    deadline = time.monotonic() + 5
    while not (cut := server.metric('march_connections_refused_total{reason="stalled"}')):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert cut == 1
    assert len(server.http.get("/large").content) == 30_000_000  # who reads gets it whole
    connection.close()


def test_a_client_that_reads_slowly_gets_all_of_its_answer(start: Start) -> None:
    server = start(stall_timeout_s=0.4)
    num = 30_000_000
    server.app.get("/slow")(lambda: Response(b"x" * num))
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(HEAD.replace(b"/version", b"/slow") + b"Connection: close\r\n\r\n")
    read = 0
    while part := connection.recv(100_000):
        read += len(part)
        time.sleep(0.005)  # some hundred pieces: seconds in all
    assert read > num


def test_accepted_connections_are_probed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        probe_peers(listener)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def test_an_upgrade_is_not_followed(start: Start) -> None:
    server = start()
    connection = server.connect()
    upgrade = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    connection.sendall(HEAD + upgrade + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    assert b"101" not in read_all(connection).split(b"\r\n")[0]
    assert server.audit().status_code == 200
