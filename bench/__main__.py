"""Runs the benchmarks that are named, or all of them.

    python -m bench [NAME ...] [--data PATH ...]

`--data` is for `ragtruth` (one folder) and `swaps` (any number), which read the rows of the tests without it,
for `credit`, the folders of trainings on a world, and for `auditors`, what `march demo` measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import (
    artifacts,
    auditors,
    credit,
    drift,
    prepare,
    promotion,
    ragtruth,
    reward_server,
    sizing,
    swaps,
    training,
)

BENCHMARKS: dict[str, Callable[[], None]] = {
    "artifacts": artifacts.run,
    "auditors": auditors.run,
    "credit": credit.run,
    "drift": drift.run,
    "prepare": prepare.run,
    "promotion": promotion.run,
    "ragtruth": ragtruth.run,
    "reward_server": reward_server.run,
    "sizing": sizing.run,
    "swaps": swaps.run,
    "training": training.run,
}
WITH_DATA: dict[str, Callable[[Sequence[Path]], None]] = {
    "auditors": auditors.run,
    "credit": credit.run,
    "ragtruth": ragtruth.run,
    "swaps": swaps.run,
}


def main() -> None:
    """Reads the command line and runs what it names."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--data", action="append", type=Path, default=[], help="files in place of the tests'")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(BENCHMARKS)):
        parser.error(f"{', '.join(unknown)}: no such benchmark; there are: {', '.join(BENCHMARKS)}")
    if given.data and not set(given.names) <= set(WITH_DATA):
        parser.error(f"--data: only for {', '.join(WITH_DATA)}; leave it out")
    for name in given.names or BENCHMARKS:
        if given.data:
            WITH_DATA[name](given.data)
        else:
            BENCHMARKS[name]()


if __name__ == "__main__":
    main()
