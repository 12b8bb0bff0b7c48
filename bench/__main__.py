"""Runs the benchmarks that are named, or all of them."""

from __future__ import annotations

import sys

from bench import (
    artifacts,
    audit,
    drift,
    lexical,
    names,
    prepare,
    promotion,
    ragtruth,
    reward_server,
    sizing,
    training,
)

BENCHMARKS = {
    "artifacts": artifacts.run,
    "audit": audit.run,
    "drift": drift.run,
    "lexical": lexical.run,
    "names": names.run,
    "prepare": prepare.run,
    "promotion": promotion.run,
    "ragtruth": ragtruth.run,
    "reward_server": reward_server.run,
    "reward_server_soak": reward_server.run_soak,
    "sizing": sizing.run,
    "training": training.run,
}

if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(BENCHMARKS)
    if unknown:
        raise SystemExit(
            f"{', '.join(sorted(unknown))}: no such benchmark; there are: {', '.join(BENCHMARKS)}"
        )
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
