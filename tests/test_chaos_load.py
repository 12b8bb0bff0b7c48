"""Far more answers at once than there is room for: all of them come in the end, in bounded memory."""

from __future__ import annotations

import pytest

from tests.chaos_processes import (
    ScriptedEngine,
    Serve,
    reward_servers,  # noqa: F401
    scripted_engines,  # noqa: F401
)
from tests.chaos_scale import in_both_lengths_outside_the_gate
from tests.chaos_table import ROWS
from tests.chaos_trial import MIB, Trial, assert_right, fairs


@in_both_lengths_outside_the_gate
def test_more_than_the_server_takes_are_all_answered(
    engines: list[ScriptedEngine], serve: Serve, is_long: bool
) -> None:
    num, room = (1000, 200) if is_long else (300, 40)
    for engine in engines:
        engine.fail(pause_s=0.1)
    server = serve(max_in_flight=32, max_waiting=room)
    trial = Trial(server, fairs(num), at_once=32)
    asked = trial.under(f"load: {num:,} at once, {room:,} may wait", at_once=num)
    assert_right(trial.cases, asked.answers)
    assert asked.statuses[503] > 0
    trial.finish(
        more_mib=30
    )  # what a thousand connections leave in the allocator; a second load adds nothing


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_ten_thousand_at_once_with_a_queue_of_five_hundred(serve: Serve) -> None:
    server = serve(max_in_flight=64, max_waiting=500, deadline_s=120)
    trial = Trial(server, fairs(10_000), at_once=64)
    crowd = {"at_once": 10_000, "num_clients": 20, "patience_s": 900, "timeout_s": 170}
    trial.under("load: 10,000 at once, for the first time", **crowd)
    before, peak, _ = ROWS[-1].rss
    assert peak - before < 256 * MIB
    trial.take_level()  # what so many connections left in the allocator is used by the next as many
    asked = trial.under("load: 10,000 at once, 500 may wait", **crowd)
    assert_right(trial.cases, asked.answers)
    assert asked.statuses[503] > 0
    trial.finish()
