"""Runs the benchmarks that are named, or all of them.

    python -m bench [NAME ...] [--data PATH ...]

`--data` is for `ragtruth` (one folder), `swaps` and `tables` (any number), which else read the tests' rows,
for `credit`, the folders of trainings on a world, and for `auditors`, what `march demo` measured.
"""

import argparse
from importlib import import_module
from pathlib import Path

BENCHMARKS = (
    *("artifacts", "auditors", "credit", "drift", "prepare", "promotion", "ragtruth", "reward_server"),
    *("sizing", "swaps", "tables", "training"),
)
WITH_DATA = ("auditors", "credit", "ragtruth", "swaps", "tables")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--data", action="append", type=Path, default=[], help="files in place of the tests'")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(BENCHMARKS)):
        parser.error(f"{', '.join(unknown)}: no such benchmark; there are: {', '.join(BENCHMARKS)}")
    if given.data and not set(given.names or BENCHMARKS) <= set(WITH_DATA):
        parser.error(f"--data: only for {', '.join(WITH_DATA)}; leave it out")
    for name in given.names or BENCHMARKS:
        run = import_module(f"bench.{name}").run
        run(*([given.data] if given.data else ()))


if __name__ == "__main__":
    main()
