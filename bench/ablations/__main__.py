"""Runs the cells that are not there yet, in the plan's order, until there is none or the time is over."""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from bench.ablations import page
from bench.ablations.compare import value_of
from bench.ablations.plan import ROOT, Cell, FigureName, Plan, load_plan
from bench.ablations.results import Row, append_row, read_rows

SCRATCH = ROOT / "runs" / "ablations"
_GUESS_S = 480.0  # of a cell, before one was run
_MOST_FAILURES = 2  # of one cell with one digest; more would eat the time of the others


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    plan = load_plan()
    options = parse(arguments, plan)
    if options.page:
        page.write(plan)
        return 0
    wanted = [cell for cell in plan.cells() if cell.arm in options.arms and cell.seed in options.seeds]
    missing = [cell for cell in wanted if is_missing(cell, retry=options.retry)]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} cells are there; {len(missing)} to run", flush=True)
    if options.list:
        print("\n".join(f"{cell.arm} seed {cell.seed}" for cell in missing))
        return 0
    failed = run(missing, max_s=options.max_hours * 3600)
    page.write(plan)
    return 1 if failed else 0


def parse(arguments: Sequence[str] | None, plan: Plan) -> argparse.Namespace:
    """Reads the command line; arms and seeds are those of the plan."""
    parser = argparse.ArgumentParser(prog="python -m bench.ablations", description=__doc__)
    add = parser.add_argument
    add("--arms", nargs="+", choices=list(plan.arms), default=list(plan.arms), metavar="ARM")
    add("--seeds", nargs="+", type=int, choices=plan.seeds, default=list(plan.seeds), metavar="SEED")
    add("--max-hours", type=float, default=float("inf"), help="start no cell that would end later")
    add("--retry", action="store_true", help="run cells again that failed twice")
    add("--list", action="store_true", help="only say what is to run")
    add("--page", action="store_true", help="only write docs/ablations.md and its plot")
    return parser.parse_args(arguments)


def is_missing(cell: Cell, *, retry: bool) -> bool:
    """Whether a cell is to be run: it has no row, one of other settings, or one that may be tried again."""
    row = read_rows(cell.arm).get(cell.seed)
    if row is None:
        return True
    if row.settings != cell.digest:
        print(f"{cell.arm} seed {cell.seed}: its settings changed since {row.date}; it is run again")
        return True
    return row.failure is not None and (retry or row.num_failures < _MOST_FAILURES)


def run(cells: Sequence[Cell], *, max_s: float) -> int:
    """Runs cells one after the other; returns how many failed."""
    from bench.ablations.cell import run_cell

    start, took, num_failed = time.monotonic(), past_seconds(), 0
    for place, cell in enumerate(cells, 1):
        passed, expected = time.monotonic() - start, statistics.median(took or [_GUESS_S])
        if passed + expected > max_s:
            print(f"the time is over; the same command goes on with {cell.arm} seed {cell.seed}")
            break
        left_h = expected * (len(cells) - place + 1) / 3600
        print(f"[{place}/{len(cells)}] {cell.arm} seed {cell.seed}; {3600 / expected:.1f} cells an hour, "
              f"{left_h:.1f} hours left", flush=True)  # fmt: skip
        row = run_cell(cell, SCRATCH)
        append_row(with_failures(row))
        num_failed += row.failure is not None
        took = [*took, row.wall_s] if row.failure is None else took
        print(tell(row), flush=True)
    return num_failed


def with_failures(row: Row) -> Row:
    """The row with how often in a row this cell failed with these settings."""
    earlier = read_rows(row.arm).get(row.seed)
    if row.failure is None or earlier is None or earlier.settings != row.settings:
        return row
    return row.model_copy(update={"num_failures": earlier.num_failures + 1})


def past_seconds() -> list[float]:
    rows = (row for arm in load_plan().arms for row in read_rows(arm).values())
    return [row.wall_s for row in rows if row.failure is None]


def tell(row: Row) -> str:
    if row.failure is not None or row.before is None or row.after is None:
        return f"  failed: {row.failure}"
    names: tuple[FigureName, ...] = ("faithful", "false_accept")
    shown = [f"{name} {value_of(row.before, name):.1%} to {value_of(row.after, name):.1%}" for name in names]
    checker = f"Checker {row.before.checker:.1%} to {row.after.checker:.1%}"
    return f"  {', '.join(shown)}, {checker}; {row.wall_s / 60:.1f} minutes"


if __name__ == "__main__":
    sys.exit(main())
