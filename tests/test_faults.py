"""What goes wrong around a reward server: for each fault, the answers are those of a run without it.

Every test asks the same questions through our own client over real HTTP. An answer is the right verdict or
UNSCORED, never a number that was not earned; none is lost; and tasks and memory are back to their level. The
kills of processes are in test_drain.py.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward.config import OpenAISamplerConfig
from reward.judging.vote import Reason
from reward.samplers import Sampler
from reward.samplers.openai import OpenAISampler
from reward.serving.client import RewardClient
from reward.types import AuditResult, Document, Outcome, RagQuery
from tests.openai_model import Fault, Model
from tests.role_server import TOKEN, RoleSampler, Running, Start, start_servers  # noqa: F401

NUM_QUESTIONS = 12


def question(i: int) -> tuple[RagQuery, str]:
    """A query and a response; every third response is wrong."""
    document = Document(id="d", text=f"Fair {i} raised {500 + i} euros.")
    query = RagQuery(id=f"q{i}", query=f"What did fair {i} raise?", documents=(document,))
    return query, f"It raised {500 + i if i % 3 else 900 + i} euros."


EARNED = {
    f"q{i}": (Outcome.SUPPORTED, 0.0) if i % 3 else (Outcome.REFUTED, -1.0) for i in range(NUM_QUESTIONS)
}


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


def sampler_of(model: Model, **settings: Any) -> Sampler:
    options = {"timeout_s": 1.0, "max_retries": 0, "cool_down_s": 0.0} | settings
    return OpenAISampler(OpenAISamplerConfig(base_url=model.url, model="m", **options))


async def ask(url: str, numbers: range = range(NUM_QUESTIONS), **options: Any) -> dict[str, AuditResult]:
    async with RewardClient(url, TOKEN, **{"timeout_s": 30} | options) as client:
        results = await asyncio.gather(*(client.audit(*question(i)) for i in numbers))
    return {result.verdict.id: result for result in results}


def rewards(results: dict[str, AuditResult]) -> dict[str, tuple[Outcome, float | None]]:
    return {name: (result.verdict.outcome, result.verdict.reward) for name, result in results.items()}


def assert_nothing_unearned(results: dict[str, AuditResult]) -> int:
    """Every question has its answer, and each is the right one or none; returns how many are none."""
    assert results.keys() == EARNED.keys()
    given = rewards(results)
    wrong = {name: one for name, one in given.items() if one not in (EARNED[name], (Outcome.UNSCORED, None))}
    assert not wrong
    return sum(outcome is Outcome.UNSCORED for outcome, _ in given.values())


def assert_at_rest(running: Running) -> None:
    """Nothing of the requests is left: no audit, no place taken, no body held."""
    end = time.monotonic() + 5
    while running.service._running or running.service.admission.num_admitted or running.service.num_requests:
        assert time.monotonic() < end, "audits are left"
        time.sleep(0.02)
    assert running.service.admission.num_running == 0 and running.service.admission.num_bytes == 0


def answers_garbage(_: Model, handler: Any) -> bool:
    handler.answer(b"<html>not JSON")
    return True


def answers_half(_: Model, handler: Any) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "c", "choices": [{"index": 0, "mess')
    handler.close_connection = True
    return True


def answers_nonsense(_: Model, handler: Any) -> bool:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "\x00[Answer: "},
    }
    told = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice] * 3}
    handler.answer(told)
    return True


def dies_mid_request(_: Model, handler: Any) -> bool:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True
    return True


def refuses(_: Model, handler: Any) -> bool:
    handler.answer({"error": {"message": "the engine died"}}, 500)
    return True


def sleeps(_: Model, handler: Any) -> bool:
    time.sleep(2.5)  # past the sampler's time
    return False


FAULTS = [answers_garbage, answers_half, answers_nonsense, dies_mid_request, refuses, sleeps]


def test_without_a_fault_every_answer_is_earned(start: Start, model: Model) -> None:
    running = start(sampler=sampler_of(model))
    assert rewards(asyncio.run(ask(running.url))) == EARNED
    assert_at_rest(running)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_engine_that_always_fails_gives_no_reward(start: Start, model: Model, fault: Fault) -> None:
    running = start(sampler=sampler_of(model, timeout_s=2), deadline_s=15)
    model.fault = fault
    results = asyncio.run(ask(running.url))
    assert assert_nothing_unearned(results) == NUM_QUESTIONS
    assert Reason.INTERNAL not in {result.verdict.reason for result in results.values()}
    assert_at_rest(running)
    model.fault = None  # and it recovers by itself
    assert rewards(asyncio.run(ask(running.url))) == EARNED


@pytest.mark.parametrize("fault", FAULTS)
def test_an_engine_that_fails_now_and_then_costs_no_answer(start: Start, model: Model, fault: Fault) -> None:
    running = start(sampler=sampler_of(model, max_retries=2, timeout_s=4.0))

    def now_and_then(_: Model, handler: Any) -> bool:
        return model.num_requests % 5 == 0 and fault(model, handler)

    model.fault = now_and_then
    assert_nothing_unearned(asyncio.run(ask(running.url)))
    assert_at_rest(running)


def test_an_engine_that_answers_after_the_deadline_gives_no_reward(start: Start, model: Model) -> None:
    running = start(sampler=sampler_of(model, timeout_s=30), deadline_s=0.5)
    model.fault = sleeps
    begin = time.monotonic()
    results = asyncio.run(ask(running.url))
    assert {result.verdict.reason for result in results.values()} == {Reason.DEADLINE}
    assert assert_nothing_unearned(results) == NUM_QUESTIONS and time.monotonic() - begin < 3
    assert_at_rest(running)


def test_a_dead_engine_is_left_for_one_that_lives(start: Start, model: Model) -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:
        dead_url = f"http://127.0.0.1:{dead.getsockname()[1]}/v1"
    config = OpenAISamplerConfig(base_urls=(dead_url, model.url), model="m", timeout_s=5)
    running = start(sampler=OpenAISampler(config))
    assert rewards(asyncio.run(ask(running.url))) == EARNED


def test_clients_that_go_take_nothing_from_those_who_stay(start: Start, model: Model) -> None:
    running = start(sampler=sampler_of(model, timeout_s=30.0))
    go_on = threading.Event()
    model.fault = lambda *_: not go_on.wait(20)

    async def some_go() -> dict[str, AuditResult]:
        async with RewardClient(running.url, TOKEN, timeout_s=30) as going:
            gone = [asyncio.create_task(going.audit(*question(i))) for i in range(6, 18)]
            staying = asyncio.create_task(ask(running.url))
            while len(running.service._running) < 18:
                await asyncio.sleep(0.01)
            for task in gone:
                task.cancel()
            while not running.metric("march_audits_cancelled_total"):
                await asyncio.sleep(0.01)
            go_on.set()
            return await staying

    assert rewards(asyncio.run(some_go())) == EARNED
    assert_at_rest(running)


def test_half_open_sockets_hold_up_nobody(start: Start, model: Model) -> None:
    """Peers that connected, and perhaps began a request, and are never heard of again."""
    running = start(sampler=sampler_of(model), limits={"body_timeout_s": 0.5, "header_timeout_s": 0.5})
    head = f"POST /v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    silent = [running.connect() for _ in range(30)]
    for i, connection in enumerate(silent):
        connection.sendall((b"", head, head + b"Content-Length: 500\r\n\r\n{")[i % 3])
    assert rewards(asyncio.run(ask(running.url))) == EARNED
    time.sleep(0.6)
    assert_at_rest(running)
    for connection in silent:
        connection.close()


def test_a_thousand_at_once_with_a_queue_of_fifty_are_all_answered(start: Start) -> None:
    sampler = RoleSampler()
    sampler.pause_s = 0.05  # 160 audits/s at most, so that the room fills on a fast machine, too
    running = start(sampler=sampler, max_in_flight=16, max_waiting=50)
    query = RagQuery(
        id="q", query="?", documents=(Document(id="d", text="The July picnic raised 466 euros."),)
    )

    async def all_at_once() -> list[AuditResult]:
        async with RewardClient(running.url, TOKEN, timeout_s=60, patience_s=120) as client:
            texts = [f"The picnic raised 466 euros.{' ' * (i % 40)}{'.' * (i // 40)}" for i in range(1000)]
            return await asyncio.gather(*(client.audit(query, text) for text in texts))

    results = asyncio.run(all_at_once())
    assert len(results) == 1000
    assert {(result.verdict.outcome, result.verdict.reward) for result in results} == {
        (Outcome.SUPPORTED, 0.0)
    }
    assert running.metric('march_requests_refused_total{reason="overloaded"}') > 0
    assert_at_rest(running)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
def test_a_full_disk_for_the_log_costs_no_answer(start: Start, model: Model) -> None:
    running = start(sampler=sampler_of(model), audit_log=Path("/dev/full"))
    assert rewards(asyncio.run(ask(running.url))) == EARNED
    assert running.metric("march_audit_log_lost_total") == NUM_QUESTIONS
    assert_at_rest(running)


def test_memory_is_back_to_its_level_after_faults(
    start: Start, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="reward")  # pytest keeps every record
    running = start(sampler=sampler_of(model, timeout_s=0.5), max_kept=0)

    def a_round() -> None:
        for fault in (None, answers_garbage, dies_mid_request, refuses):
            model.fault = fault
            assert_nothing_unearned(asyncio.run(ask(running.url)))
        assert_at_rest(running)

    a_round()  # caches and pools fill once
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3):
            a_round()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 2 * 1024**2
    finally:
        tracemalloc.stop()
