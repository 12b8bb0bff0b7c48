"""Progress of long work: how much is done, how fast, how long it will take.

A terminal gets a bar; anything else (a log, a CI job) gets one line every ten seconds.
"""

import threading
import time
from collections import Counter
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from reward.types import Outcome, Verdict

_LINE_EVERY_S = 10.0


class _Bar:
    """Shown while it is entered; `columns` are between the bar and the remaining time."""

    def __init__(self, console: Console, label: str, total: int | None, *columns: ProgressColumn) -> None:
        self._console, self._label, self._last_line = console, label, time.monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            *columns,
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._id = self._progress.add_task(label, total=total, note="")
        self._task = self._progress.tasks[0]

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _print_when_due(self, done: str) -> None:
        """Outside a terminal: what is done, and what is left at the rate of now."""
        now, task = time.monotonic(), self._task
        if self._console.is_terminal or now - self._last_line < _LINE_EVERY_S:
            return
        self._last_line = now
        left = f", {task.time_remaining:,.0f} s left" if task.total and task.time_remaining else ""
        self._console.print(f"{self._label}: {done}{left}  {task.fields['note']}")


class AuditProgress(_Bar):
    """Rows of an audit, with the outcomes so far; from rows that an earlier run did, no rate is made up."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "auditing", None, MofNCompleteColumn())
        self._outcomes: Counter[Outcome] = Counter()
        self._progress.update(self._id, description="starting")

    def start(self, total: int, done: int = 0) -> None:
        """Begins to count: rows in all, and how many of them are done already."""
        self._progress.reset(self._id, total=total, completed=done, description=self._label)
        if done and not self._console.is_terminal:
            self._console.print(f"{self._label}: {done:,} of {total:,} rows are done by an earlier run")

    def advance(self, verdict: Verdict) -> None:
        self._outcomes[verdict.outcome] += 1
        found = (f"{self._outcomes[outcome]:,} {outcome}" for outcome in Outcome if self._outcomes[outcome])
        rate = f"{self._task.speed:,.1f} rows/s, " if self._task.speed else ""
        self._progress.update(self._id, advance=1, note=rate + ", ".join(found))
        self._print_when_due(f"{self._task.completed:,.0f} of {self._task.total or 0:,.0f} rows")


class AnswerProgress(_Bar):
    """Answers of an evaluation, stage by stage, where Inspect's own panel is not shown."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "starting", None, MofNCompleteColumn())

    def tell(self, *, label: str, done: int, total: int) -> None:
        """Counts the answers of this run; what an earlier one has made is in the total alone."""
        if label != self._label:
            self._label = label
            self._progress.reset(self._id, total=total, description=label)
        rate = f"{self._task.speed:,.1f} answers/s" if self._task.speed else ""
        self._progress.update(self._id, completed=done, note=rate)
        self._print_when_due(f"{done:,} of {total:,} answers")


class ByteProgress(_Bar):
    """Files whose size is known and whose number of rows is not: bytes, and rows if any."""

    def __init__(self, console: Console, label: str, *, total: int | None = None) -> None:
        super().__init__(console, label, total, DownloadColumn(), TransferSpeedColumn())
        self._num_rows = 0
        # An amount is printed before the next one is counted: the last line has the whole.
        self._lock = threading.Lock()

    def reach(self, done: int, total: int | None) -> None:
        """Says how many bytes there are so far, and in all if that is known."""
        self._count(completed=done, total=total)

    def advance(self, num_bytes: int) -> None:
        """Counts bytes; from any thread."""
        self._count(advance=num_bytes)

    def add_rows(self, num_bytes: int, num_rows: int) -> None:
        """Counts rows and the bytes that they took."""
        self._num_rows += num_rows
        self._count(advance=num_bytes, note=f"{self._num_rows:,} rows")

    def _count(self, **changed: Any) -> None:
        with self._lock:
            self._progress.update(self._id, **changed)
            task = self._task
            share = f" of {task.total / 1e6:,.0f}" if task.total else ""
            self._print_when_due(f"{task.completed / 1e6:,.1f}{share} MB")
