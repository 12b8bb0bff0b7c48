"""What a follower does when the next server cannot be started."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

import pytest

from orchestration.serving.follow import Fetched, Follower

SERVER = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]


async def _fine(_port: int) -> str | None:
    return None


def follower(command: Sequence[str]) -> Follower:
    made = Follower(
        look=lambda last: last or Fetched("1", "weights"),
        command=lambda served, port: [*command, str(port)] if served.version == "1" else ["/no/such/program"],
        check=_fine,
        limit_s=1,
        every_s=60,
    )
    made._answer_with(made._start(Fetched("1", "weights")))
    return made


def test_a_server_that_cannot_be_started_is_reported_and_the_old_one_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = follower(SERVER)
    (old,) = given._children
    try:
        with caplog.at_level(logging.ERROR):
            assert not asyncio.run(given._replace_by(Fetched("2", "other")))
        assert "version 2 fails" in caplog.text and "/no/such/program" in caplog.text
        assert given._children == [old] and given.front.target == old.port
    finally:
        old.stop()
