"""The trainer waits for its engines on a real Ray; a whole training with one is in test_training.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def start_engine() -> Iterator[Any]:
    import ray

    class Engine:
        async def __init__(self, *, ready: str = "", problem: str = "") -> None:  # type: ignore[misc]  # Ray awaits it
            await asyncio.sleep(1)
            if problem:
                raise RuntimeError(problem)
            if ready:
                Path(ready).touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_raylet_start_wait_time_s", "240")  # a busy machine is slow to start it
        ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20)
        yield ray.remote(num_cpus=0)(Engine).remote
        ray.shutdown()


def test_engines_that_load_are_waited_for(start_engine: Any, tmp_path: Path) -> None:
    from pipeline.training.engine_actor import wait_for_engines

    ready = [tmp_path / "first", tmp_path / "second"]
    wait_for_engines([start_engine(ready=str(path)) for path in ready])
    assert all(path.exists() for path in ready)


def test_an_engine_that_ends_at_its_start_ends_the_wait_and_says_why(start_engine: Any) -> None:
    from pipeline.training.engine_actor import EngineStartError, wait_for_engines

    with pytest.raises(EngineStartError, match=r"vLLM did not start: RuntimeError: no memory left; the log"):
        wait_for_engines([start_engine(), start_engine(problem="no memory left")])
