"""More than the server takes, and clients who go: what is refused, for how long, and what is cancelled."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.role_server import (  # noqa: F401
    LABEL,
    RESPONSE,
    TOKEN,
    Running,
    Spawn,
    Start,
    spawn_processes,
    start_servers,
)


def eventually(running: Running, name: str, value: float) -> None:
    """Returns when a metric has a value; it must within five seconds."""
    end = time.monotonic() + 5
    while running.metric(name) != value:
        assert time.monotonic() < end, f"{name} is {running.metric(name)}, not {value}"
        time.sleep(0.02)


def wait_until_asked(running: Running) -> None:
    """Returns when the sampler is asked: an audit has its place for a moment before that."""
    end = time.monotonic() + 5
    while not running.sampler.num_calls:
        assert time.monotonic() < end, "the sampler was never asked"
        time.sleep(0.02)


def send_raw(running: Running, response: str = RESPONSE) -> socket.socket:
    """Sends an audit's request over a bare connection and reads nothing."""
    connection = running.connect()
    connection.sendall(audit_request(response))
    return connection


def test_beyond_places_and_queue_is_a_503_that_says_when(start: Start) -> None:
    running = start(max_in_flight=1, max_waiting=1)
    running.sampler.pause_s = 0.4
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(running.audit)
        eventually(running, "march_audits_in_flight", 1)
        second = pool.submit(running.audit, RESPONSE + " ")
        eventually(running, "march_audits_waiting", 1)
        joined = pool.submit(running.audit, RESPONSE + " ")
        refused = running.audit(RESPONSE + "  ")
        assert {answer.result().status_code for answer in (first, second, joined)} == {200}
    assert refused.status_code == 503 and refused.json()["reason"] == "overloaded"
    assert refused.headers["retry-after"] == "5"
    assert "max_waiting" in refused.json()["detail"]
    assert running.metric('march_requests_refused_total{reason="overloaded"}') == 1
    assert running.audit(RESPONSE + "  ").status_code == 200


def test_the_wait_counts_against_the_deadline(start: Start) -> None:
    running = start(max_in_flight=1, deadline_s=0.5)
    running.sampler.pause_s = 5
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(running.audit, RESPONSE + " " * i) for i in range(2)]
        assert {answer.result().json()["verdict"]["reason"] for answer in answers} == {"deadline"}
    assert running.metric("march_audits_waiting") == running.metric("march_audits_in_flight") == 0


def test_bodies_beyond_the_memory_for_them_are_refused_unread(start: Start) -> None:
    running = start(max_held_bytes=1024)
    running.sampler.pause_s = 0.4
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(running.audit, RESPONSE + "x" * 900)
        eventually(running, "march_audits_in_flight", 1)
        refused = running.audit(RESPONSE + "y" * 900)
        assert refused.status_code == 503 and refused.json()["reason"] == "memory"
        assert first.result().status_code == 200
    assert running.audit(RESPONSE + "y" * 900).status_code == 200


def test_a_client_that_goes_ends_its_audit(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 30
    connection = send_raw(running)
    wait_until_asked(running)
    assert running.metric("march_audits_in_flight") == 1
    connection.close()
    eventually(running, "march_audits_cancelled_total", 1)
    eventually(running, "march_audits_in_flight", 0)
    assert running.sampler.num_cancelled == 1
    assert running.service.admission.num_admitted == running.service.num_requests == 0


def test_a_client_that_waits_for_a_place_and_goes_is_forgotten(start: Start) -> None:
    running = start(max_in_flight=1)
    running.sampler.pause_s = 30
    connections = [send_raw(running, RESPONSE + " " * i) for i in range(2)]
    wait_until_asked(running)
    eventually(running, "march_audits_waiting", 1)
    connections[1].close()
    eventually(running, "march_audits_waiting", 0)
    assert running.metric("march_audits_in_flight") == 1 and running.sampler.num_calls == 1
    connections[0].close()
    eventually(running, "march_audits_in_flight", 0)


def test_an_audit_goes_on_while_one_client_still_waits(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(1) as pool:
        connection = send_raw(running)
        eventually(running, "march_audits_in_flight", 1)
        staying = pool.submit(running.audit)
        eventually(running, "march_audits_joined_total", 1)
        connection.close()
        assert staying.result().json()["verdict"]["outcome"] == "SUPPORTED"
    assert running.sampler.num_cancelled == 0 and running.metric("march_audits_cancelled_total") == 0


def audit_request(response: str) -> bytes:
    body = json.dumps({"query": json.loads(LABEL), "response": response}).encode()
    head = (
        f"POST /v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer_of(port: int, request: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers of one request over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    await reader.readexactly(int(headers["content-length"]))
    writer.close()
    return int(status.split()[1]), headers


@pytest.mark.timeout(120)
def test_ten_thousand_at_once_are_answered_or_refused_within_bounded_memory(spawn: Spawn) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    num = min(10_000, hard - 500)
    server = spawn(pause_s=1.0, max_in_flight=100, max_waiting=400, limits={"max_connections": num + 100})
    server.audit()
    before = server.memory()
    port = int(server.url.rsplit(":", 1)[1])

    async def flood() -> list[tuple[int, dict[str, str]]]:
        requests = [audit_request(RESPONSE + " " * (i % 100) + "." * (i // 100)) for i in range(num)]
        return await asyncio.gather(*(answer_of(port, request) for request in requests))

    answers = asyncio.run(flood())
    statuses = Counter(status for status, _ in answers)
    assert set(statuses) == {200, 503} and statuses[200] >= 500
    assert all(1 <= int(headers["retry-after"]) <= 5 for status, headers in answers if status == 503)
    assert server.memory("VmHWM") - before < 400 * 1024**2
    told = server.http.get("/metrics").text
    assert "march_audits_in_flight 0.0" in told and "march_audits_waiting 0.0" in told
