"""A random mixture of all faults at once, every answer compared: `CHAOS_MINUTES` long, from `CHAOS_SEED`."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

from reward.serving.tokens import new_token
from tests.chaos_processes import (
    RewardServer,
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths
from tests.chaos_storm import PAUSE_S, Storm
from tests.chaos_trial import Asked, Trial, ask, assert_right, fairs

LIMITS = {"header_timeout_s": 1.0, "body_timeout_s": 1.0, "stall_timeout_s": 1.0}


def serve_in(folder: Path, serve: Serve) -> tuple[RewardServer, str]:
    """A server with a clock, tokens and a log in the folder, and a token of its file."""
    made, clock, tokens = new_token("trainer"), folder / "clock", folder / "tokens.yaml"
    clock.write_text("0")
    tokens.write_text(made.line)
    tokens.chmod(0o600)
    server = serve(
        env={"CHAOS_CLOCK": str(clock)},
        tokens_file=tokens,
        audit_log=folder / "logs" / "audit.jsonl",
        limits=LIMITS,
    )
    return server, made.token


async def asked_meanwhile(
    storm: Storm, trial: Trial, *, url: str, token: str, seed: int, for_s: float
) -> Asked:
    """Asks the trial's questions again and again, and compares, while the storm rages."""
    ends = time.monotonic() + for_s
    total = Asked([], 0.0)
    raging = asyncio.ensure_future(storm.rage(seed))
    while time.monotonic() < ends and not raging.done():
        asked = await ask(url, trial.cases, at_once=24, token=token)
        trial.compare(asked.answers)
        total.add(asked)
    raging.cancel()
    await asyncio.wait([raging])
    assert raging.cancelled(), raging.exception()
    return total


@in_both_lengths
def test_a_storm_of_faults_earns_nobody_anything(
    engines: list[ScriptedEngine], serve: Serve, tmp_path: Path, is_long: bool
) -> None:
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    minutes = float(os.environ.get("CHAOS_MINUTES") or 2) if is_long else 0.25
    print(f"CHAOS_SEED={seed}")
    server, token = serve_in(tmp_path, serve)
    for engine in engines:
        engine.fail(pause_s=PAUSE_S)
    trial = Trial(server, fairs(240 if is_long else 60), token=token)
    assert_right(trial.cases, trial.plain)
    storm = Storm(server, engines, tmp_path)
    given = {"url": server.url, "token": token, "seed": seed, "for_s": 60 * minutes}
    total = asyncio.run(asked_meanwhile(storm, trial, **given))
    trial.add_row(f"storm: {minutes:g} min, seed {seed}, {storm.num_troubles} troubles", total)
    trial.settle()
    assert_right(trial.cases, trial.under("storm: after it").answers)
    trial.finish(more_mib=32)
