"""RewardClient before several servers: who is asked, what happens when one is gone, what is never doubled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response

from reward.serving.client import RewardClient, RewardServerError, ranked
from reward.types import AuditResult, Outcome
from tests.role_server import QUERY, RESPONSE, TOKEN, PolicySampler, Start, start_servers  # noqa: F401
from tests.test_client import Misbehaving, Serve, free_url, good_answer, no_waiting, refusal, serve  # noqa: F401

CONTENTS = [str(i).encode() for i in range(300)]
URLS = ["http://a:1", "http://b:1", "http://c:1"]


def audits(urls: list[str], num: int, **options: Any) -> list[AuditResult]:
    """Audits of `num` different responses at once, by one client."""

    async def run() -> list[AuditResult]:
        async with RewardClient(urls, TOKEN, **{"timeout_s": 20} | options) as client:
            return await asyncio.gather(*(client.audit(QUERY, f"{RESPONSE} {i}") for i in range(num)))

    return asyncio.run(run())


def firsts(urls: list[str]) -> list[str]:
    return [ranked(urls, content)[0] for content in CONTENTS]


def test_contents_are_shared_evenly_and_each_keeps_its_server() -> None:
    chosen = firsts(URLS)
    assert min(chosen.count(url) for url in URLS) > 70
    assert chosen == firsts(URLS[::-1])  # whatever the order in which a client knows them


def test_a_server_that_goes_takes_only_its_own_contents_along() -> None:
    before, after = firsts(URLS), firsts(URLS[:2])
    assert all(old in (new, URLS[2]) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(("urls", "words"), [([], "no address"), (["http://a", "http://a/"], "twice")])
def test_addresses_that_make_no_sense_are_refused(urls: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=f"base_url: .*{words}"):
        RewardClient(urls, TOKEN)


def test_the_load_is_shared_and_a_server_that_is_gone_costs_nothing(serve: Serve) -> None:  # noqa: F811
    first, second = Misbehaving(good_answer()), Misbehaving(good_answer())
    urls = [serve(first.app), serve(second.app)]
    assert len(audits(urls, 40)) == 40
    assert min(first.num_requests, second.num_requests) > 5
    assert first.num_requests + second.num_requests == 40
    assert len(audits([urls[0], free_url()], 40, attempts=1)) == 40


@pytest.mark.parametrize("answer", [refusal(503), refusal(502), refusal(504)])
def test_a_full_server_hands_over_at_once(
    serve: Serve,  # noqa: F811
    answer: Response,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reward.serving.client._FIRST_WAIT_S", 60.0)
    full, free = Misbehaving(answer), Misbehaving(good_answer())
    assert len(audits([serve(full.app), serve(free.app)], 20)) == 20
    assert full.num_requests and free.num_requests == 20


def test_a_server_that_hangs_is_left_for_another(serve: Serve) -> None:  # noqa: F811
    hanging, free = Misbehaving(good_answer()), Misbehaving(good_answer())
    hanging.pause_s = 3
    assert len(audits([serve(hanging.app), serve(free.app)], 10, timeout_s=0.5)) == 10
    assert hanging.num_requests and free.num_requests == 10


def test_what_does_not_pass_by_itself_is_no_reason_to_ask_another(serve: Serve) -> None:  # noqa: F811
    refusing = [Misbehaving(refusal(422, "query.id: Field required")) for _ in range(2)]
    with pytest.raises(RewardServerError, match=r"query\.id: Field required"):
        audits([serve(one.app) for one in refusing], 1)
    assert sum(one.num_requests for one in refusing) == 1


def test_when_all_are_gone_the_rounds_go_on_until_the_patience_is_over(serve: Serve) -> None:  # noqa: F811
    back = [Misbehaving(refusal(503), refusal(503), good_answer()) for _ in range(2)]
    assert len(audits([serve(one.app) for one in back], 1)) == 1
    assert sum(one.num_requests for one in back) == 5
    with pytest.raises(RewardServerError, match="cannot be reached") as caught:
        audits([free_url(), free_url()], 1, patience_s=0.3)
    assert "\n" not in str(caught.value)


def test_every_server_must_be_ready(serve: Serve) -> None:  # noqa: F811
    good = serve(Misbehaving(good_answer()).app)
    not_ready = serve(Misbehaving(JSONResponse({"status": "not ready", "reason": "engine"}, 503)).app)

    async def run(*urls: str) -> None:
        async with RewardClient(urls, TOKEN) as client:
            await client.wait_ready()

    asyncio.run(run(good))
    with pytest.raises(RewardServerError, match=f"{not_ready} is not ready: engine"):
        asyncio.run(run(good, not_ready))


def test_equal_answers_meet_at_one_server_and_one_gets_the_trajectories(start: Start) -> None:
    servers = [start(sampler=PolicySampler()) for _ in range(3)]
    for server in servers:
        server.sampler.pause_s = 0.2

    async def run() -> list[AuditResult]:
        async with RewardClient([server.url for server in servers], TOKEN) as client:
            same = [client.audit(QUERY, RESPONSE, include_trajectories=True) for _ in range(4)]
            return await asyncio.gather(*same)

    results = asyncio.run(run())
    assert {result.verdict.outcome for result in results} == {Outcome.SUPPORTED}
    assert sorted(len(result.trajectories) for result in results) == [0, 0, 0, 4]
    assert sorted(server.sampler.num_calls for server in servers) == [0, 0, 2]
