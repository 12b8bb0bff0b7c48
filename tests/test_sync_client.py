"""SyncRewardClient: the same answers, refusals and patience without an event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from reward.serving.client import RewardServerError, SyncRewardClient, UntrustedAnswer
from reward.types import Outcome
from tests.serving import KEY, QUERY, RESPONSE, TOKEN, serve_picnic
from tests.test_client import Misbehaving, Serve, good_answer, no_waiting, refusal, serve  # noqa: F401


def test_it_audits_from_threads_and_inside_a_running_loop() -> None:
    serving = serve_picnic(signing_key=KEY)
    try:
        with SyncRewardClient(serving.url, TOKEN, signing_key=KEY) as client:
            client.wait_ready(10)
            with ThreadPoolExecutor(4) as pool:
                results = list(pool.map(lambda i: client.audit(QUERY, RESPONSE + " " * i), range(8)))

            async def in_a_notebook() -> Outcome:
                return client.audit(QUERY, RESPONSE).verdict.outcome

            assert asyncio.run(in_a_notebook()) is Outcome.SUPPORTED
    finally:
        serving.close()
    assert {result.verdict.outcome for result in results} == {Outcome.SUPPORTED}


def test_an_unsigned_answer_is_not_believed_and_not_asked_for_again(serve: Serve) -> None:  # noqa: F811
    stranger = Misbehaving(good_answer())
    url = serve(stranger.app)
    with SyncRewardClient(url, TOKEN, signing_key=KEY) as client, pytest.raises(UntrustedAnswer):
        client.audit(QUERY, RESPONSE)
    assert stranger.num_requests == 1


@pytest.mark.parametrize(("status", "num_requests"), [(503, 2), (429, 2), (422, 1), (401, 1)])
def test_what_passes_is_tried_again_and_what_is_final_is_not(
    serve: Serve,  # noqa: F811
    status: int,
    num_requests: int,
) -> None:
    server = Misbehaving(refusal(status), good_answer())
    with SyncRewardClient(serve(server.app), TOKEN) as client:
        if num_requests == 2:
            assert client.audit(QUERY, RESPONSE).verdict.outcome is Outcome.SUPPORTED
        else:
            with pytest.raises(RewardServerError, match=str(status)):
                client.audit(QUERY, RESPONSE)
    assert server.num_requests == num_requests


def test_a_closed_client_says_so() -> None:
    client = SyncRewardClient("http://127.0.0.1:1", TOKEN)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed; make another one"):
        client.audit(QUERY, RESPONSE)


def test_a_wrong_address_is_refused_at_once_and_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="names a server twice"):
        SyncRewardClient(["http://h:1", "http://h:1/"], TOKEN)
