"""The reward server against its engine's limit and the published schedule.

    python -m bench reward_server       about half an hour on two quiet cores

`ratio_to_engine_limit` is the time of the limit by that of the server, `speedup_over_barrier_schedule` that
of the published schedule by that of the server (engine.py), `documents_first_speedup` what prompts gain that
begin with the documents (documents_first.py); medians over the rounds. The first two and `audits_per_s` have
`_long` with documents of 1,500 words. `BENCH_ROUNDS` makes it shorter.
"""

from __future__ import annotations

from bench.measure import write_result
from bench.reward_server import documents_first, engine


def run() -> None:
    """Measures and writes `reward_server.json`."""
    figures, samples_s = engine.measure()
    figures |= documents_first.measure()
    print(write_result("reward_server", samples_s=samples_s, figures=figures))
