"""The reward server against its engine's limit and the published schedule.

    python -m bench reward_server       about half an hour on two quiet cores

`ratio_to_engine_limit` is the time of the limit by that of the server, `speedup_over_barrier_schedule` that
of the published schedule by that of the server (engine.py), `documents_first_speedup` what prompts gain that
begin with the documents (documents_first.py); medians over the rounds. The first two and `audits_per_s` have
`_long` with documents of 1,500 words. `BENCH_ROUNDS` makes it shorter.
"""

import os

from bench.measure import write_result
from bench.reward_server import documents_first, engine


def run() -> None:
    # Kernels of so small a model only wait for each other on several cores (docs/log.md), and the server
    # must have a core of its own as it has beside a GPU.
    os.environ |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    figures, samples_s = engine.measure()
    figures |= documents_first.measure()
    print(write_result("reward_server", samples_s=samples_s, figures=figures))
