"""What the tests of faults saw, as a table at the end of `make chaos`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from reward.types import Outcome, Verdict

_MIB = 1024**2


@dataclass(frozen=True)
class Row:
    """One step of questions under a fault."""

    scenario: str
    answers: Sequence[Verdict | Exception]
    num_refused: int  # answers 503 that were asked for again
    num_attempts: int  # answers of any kind
    seconds: float
    rss: tuple[int, int, int]  # the server's memory in bytes: before, at most, after

    def cells(self) -> tuple[str, ...]:
        """In the order of the table's columns."""
        verdicts = [given for given in self.answers if isinstance(given, Verdict)]
        unscored = Counter(str(v.reason) for v in verdicts if v.outcome is Outcome.UNSCORED)
        errors = Counter(type(given).__name__ for given in self.answers if isinstance(given, Exception))
        return (
            self.scenario,
            f"{len(self.answers)}",
            f"{len(verdicts) - unscored.total()}",
            _counted(unscored),
            _counted(errors),
            f"{self.num_refused}",
            f"{self.seconds:.1f}",
            " ".join(f"{num_bytes / _MIB:.0f}" for num_bytes in self.rss),
        )


_COLUMNS = ("scenario", "asked", "earned", "UNSCORED", "errors", "503", "s", "RSS MiB: before peak after")
ROWS: list[Row] = []


def print_table() -> None:
    """Prints all rows, if there are any."""
    if not ROWS:
        return
    table = Table(*_COLUMNS, title="Answers under faults")
    for row in ROWS:
        table.add_row(*row.cells())
    Console(width=150).print(table)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{num} {name}" for name, num in counter.most_common()) or "-"
