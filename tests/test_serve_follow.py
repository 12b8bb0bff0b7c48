"""What a follower does when the next server cannot be started."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestration.serving.child import Child
from orchestration.serving.follow import Follower, _Serving
from orchestration.serving.scout import Fetched


def test_a_server_that_cannot_be_started_is_reported_and_the_old_one_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    old: Any = SimpleNamespace(served=Fetched("1", "weights"), port=1, code=None)
    given = Follower(
        scout=cast(Any, SimpleNamespace(in_use=frozenset())),
        front=cast(Any, SimpleNamespace(port=20_000, target=1)),
        command=lambda *_: ["/no/such/program"],
        check=lambda _: None,
        limit_s=1,
    )
    serving = _Serving(given, cast(Child, old))
    with caplog.at_level(logging.ERROR):
        serving._replace_by(Fetched("2", "other"))
    assert "version 2 fails" in caplog.text and "/no/such/program" in caplog.text
    assert serving._current is old and given.front.target == 1
    assert given.scout.in_use == {"1"}
