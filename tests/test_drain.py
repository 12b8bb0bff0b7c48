"""The server's end: in order at SIGTERM, and at once by kill -9, after which its clients lose nothing."""

from __future__ import annotations

import asyncio
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from reward.serving.client import RewardClient
from reward.types import AuditResult, Outcome
from tests.role_server import QUERY, RESPONSE, TOKEN, Spawn, Start, spawn_processes, start_servers  # noqa: F401


def test_sigterm_answers_what_was_accepted_refuses_what_comes_and_exits_with_0(spawn: Spawn) -> None:
    server = spawn(pause_s=0.7)
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.audit)
        server.wait_in_flight()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        ready, refused = server.http.get("/readyz"), server.audit("another")
        assert (ready.status_code, ready.json()["reason"]) == (503, "stopping")
        assert (refused.status_code, refused.json()["reason"]) == (503, "stopping")
        assert int(refused.headers["retry-after"]) >= 1 and refused.headers["connection"] == "close"
        assert accepted.result().json()["verdict"]["outcome"] == "SUPPORTED"
    code, told = server.end()
    assert code == 0 and "Traceback" not in told


def test_what_outlasts_the_grace_is_a_503_that_says_when(spawn: Spawn) -> None:
    server = spawn(pause_s=60, drain_grace_s=0.3)
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.audit)
        server.wait_in_flight()
        begin = time.monotonic()
        server.process.terminate()
        answer = accepted.result()
        assert answer.status_code == 503 and answer.json()["reason"] == "stopping"
        assert "rewards" not in answer.text and int(answer.headers["retry-after"]) >= 1
    code, told = server.end()
    assert code == 0 and "Traceback" not in told and time.monotonic() - begin < 10


def test_a_second_signal_ends_it_at_once(spawn: Spawn) -> None:
    server = spawn(pause_s=60, drain_grace_s=60)
    server.process.terminate()  # nothing is under way
    assert server.end()[0] == 0
    server = spawn(pause_s=60, drain_grace_s=60)
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.audit)
        server.wait_in_flight()
        for _ in range(2):
            server.process.terminate()
            time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)  # and a third does not wait for anything
        with pytest.raises((httpx.TransportError, AssertionError)):
            assert accepted.result().status_code == 200
    assert server.end()[0] != 0


def test_kill_and_restart_in_the_middle_lose_no_audit(spawn: Spawn) -> None:
    first = spawn(pause_s=0.5)

    async def ask_all() -> list[AuditResult]:
        async with RewardClient(first.url, TOKEN, timeout_s=30, patience_s=60) as client:
            asked = [asyncio.create_task(client.audit(QUERY, RESPONSE + " " * i)) for i in range(20)]
            await asyncio.sleep(0.4)
            first.process.kill()
            await asyncio.to_thread(first.process.wait)
            await asyncio.to_thread(spawn, pause_s=0.01)
            return await asyncio.gather(*asked)

    results = asyncio.run(ask_all())
    assert [(result.verdict.outcome, result.verdict.reward) for result in results] == [
        (Outcome.SUPPORTED, 0.0)
    ] * 20


def test_stopping_the_application_tells_who_still_waits_to_come_back(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 60
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(running.audit)
        while not running.sampler.num_calls:
            time.sleep(0.01)
        begin = time.monotonic()
        running.close()
        with pytest.raises((httpx.TransportError, AssertionError)):
            assert waiting.result().status_code == 200
    assert time.monotonic() - begin < 8 and running.sampler.num_cancelled == 1
