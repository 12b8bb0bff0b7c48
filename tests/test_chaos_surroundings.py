"""What the reward server stands on fails: the disk of its audit log, and the wall clock.

Deadlines, pauses and rates rest on the monotonic clock. A signed answer is known by its request's nonce, so a
clock that jumps, on either side, neither costs an answer nor lets an old one pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos_processes import (
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths, in_both_lengths_outside_the_gate
from tests.chaos_trial import Step, Trial, assert_right, fairs

LIBFAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
HOURS = (5.0, -7.0, 0.0, 30 * 24.0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def lines_of(*logs: Path) -> tuple[int, int]:
    """Whole lines and torn ones."""
    num_whole = num_torn = 0
    for line in "\n".join(log.read_text() for log in logs).split("\n"):
        try:
            num_whole += "verdict" in json.loads(line)
        except ValueError:
            num_torn += bool(line)
    return num_whole, num_torn


@in_both_lengths
def test_a_full_disk_costs_log_lines_and_no_answer(serve: Serve, small_disk: Path, is_long: bool) -> None:
    log, kept = small_disk / "audit.jsonl", small_disk.with_suffix(".kept")
    server = serve(audit_log=log)
    trial = Trial(server, fairs(300 if is_long else 80), at_once=8)

    async def make_room(step: Step) -> None:
        await step.reached(0.7)
        kept.write_bytes(log.read_bytes())
        log.unlink()

    asked = trial.under("log: disk full, then room again", make_room)
    assert_right(trial.cases, asked.answers)
    num_lost = server.metric("march_audit_log_lost_total")
    num_whole, num_torn = lines_of(kept, log)
    # A line may have been written between the copy and the removal.
    assert num_lost > 0 and 0 <= 2 * len(trial.cases) - num_lost - num_whole <= 8 and num_torn <= 2
    trial.finish()


@in_both_lengths_outside_the_gate
def test_a_log_whose_folder_vanishes_costs_no_answer(serve: Serve, tmp_path: Path, is_long: bool) -> None:
    folder, away = tmp_path / "logs", tmp_path / "away"
    log = folder / "audit.jsonl"
    server = serve(audit_log=log)
    trial = Trial(server, fairs(300 if is_long else 40), at_once=8)

    async def vanish_and_return(step: Step) -> None:
        await step.reached(0.3)
        folder.rename(away)
        await step.reached(0.7)
        away.rename(folder)

    assert_right(trial.cases, trial.under("log: folder gone and back", vanish_and_return).answers)
    num_lost = server.metric("march_audit_log_lost_total")
    assert num_lost > 0 and lines_of(log) == (2 * len(trial.cases) - num_lost, 0)
    trial.finish()


def patched(offset: Path) -> tuple[dict[str, str], Callable[[float], object]]:
    """A server whose `time.time` is off, and how to move it by hours."""
    offset.write_text("0")
    return {"CHAOS_CLOCK": str(offset)}, lambda hours: replace(offset, f"{hours * 3600:g}")


def faked(offset: Path) -> tuple[dict[str, str], Callable[[float], object]]:
    """The same for all wall clocks of the process, those of its libraries included."""
    offset.write_text("+0")
    env = {
        "LD_PRELOAD": str(LIBFAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",  # its older name
    }
    return env, lambda hours: replace(offset, f"{hours * 3600:+g}")


def replace(file: Path, text: str) -> None:
    other = file.with_suffix(".new")
    other.write_text(text)
    os.replace(other, file)


CLOCKS = [
    pytest.param(patched, False, marks=pytest.mark.slow, id="short"),
    pytest.param(
        faked,
        True,
        marks=[
            pytest.mark.chaos,
            pytest.mark.skipif(
                LIBFAKETIME is None, reason="needs libfaketime (Debian: apt install faketime)"
            ),
        ],
        id="long",
    ),
]


@pytest.mark.parametrize(("clock", "is_long"), CLOCKS)
def test_a_jumping_clock_costs_no_answer(
    engines: list[ScriptedEngine],
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Callable[[Path], tuple[dict[str, str], Callable[[float], object]]],
    is_long: bool,
) -> None:
    for engine in engines:
        engine.fail(pause_s=0.1)
    env, jump = clock(tmp_path / "clock")
    server = serve(env=env, deadline_s=60)
    trial = Trial(server, fairs(200 if is_long else 40), at_once=16)

    async def servers_jumps(step: Step) -> None:
        for i, hours in enumerate(HOURS):
            await step.reached(0.2 * (i + 1))
            jump(hours)

    real = time.time

    async def clients_jumps(step: Step) -> None:
        for i, hours in enumerate(HOURS):
            await step.reached(0.2 * (i + 1))
            monkeypatch.setattr(time, "time", lambda hours=hours: real() + 3600 * hours)

    assert_right(trial.cases, trial.under("clock: the server's jumps", servers_jumps).answers)
    told = server.http.get("/healthz").headers["date"]
    assert told != time.strftime("%a, %d %b %Y", time.gmtime()), "the clock did not jump"
    jump(0)
    assert_right(trial.cases, trial.under("clock: the client's jumps", clients_jumps).answers)
    monkeypatch.undo()
    trial.finish()
