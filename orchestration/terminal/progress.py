"""Progress of work on rows: how many are done, how fast, how long it will take.

A terminal gets a bar; anything else (a log, a CI job) gets one line every ten seconds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from reward.types import Outcome, Verdict

_LINE_EVERY_S = 10.0
_T = TypeVar("_T")


class RowProgress:
    """Shows progress while it is entered; from rows that an earlier run did, no rate is made up."""

    def __init__(self, console: Console, label: str, *, unit: str = "rows") -> None:
        self._console = console
        self._label = label
        self._unit = unit
        self._started = self._last_line = time.monotonic()
        self._num_new = 0
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._id = self._bar.add_task("starting", total=None, rate="", note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def num_done(self) -> int:
        """Rows done, earlier ones included."""
        return int(self._task.completed)

    def start(self, total: int, done: int = 0) -> None:
        """Begins to count: rows in all, and how many of them are done already."""
        self._started = self._last_line = time.monotonic()
        self._bar.reset(self._id, total=total, completed=done, description=self._label)
        if done and not self._console.is_terminal:
            self._console.print(
                f"{self._label}: {done:,} of {total:,} {self._unit} stand from an earlier run"
            )

    def over(self, rows: Sequence[_T]) -> Iterator[_T]:
        """Yields the rows and counts each one when the next is asked for."""
        self.start(len(rows))
        for row in rows:
            yield row
            self.step()

    def step(self, note: str = "") -> None:
        """Counts one row."""
        self._num_new += 1
        now = time.monotonic()
        rate = self._num_new / max(now - self._started, 1e-9)
        self._bar.update(self._id, advance=1, rate=f"{rate:,.1f} {self._unit}/s", note=note)
        if not self._console.is_terminal and now - self._last_line >= _LINE_EVERY_S:
            self._last_line = now
            left_s = ((self._task.total or 0) - self._task.completed) / rate
            self._console.print(
                f"{self._label}: {self.num_done:,} of {self._task.total:,.0f} {self._unit}, {rate:,.1f} "
                f"{self._unit}/s, {left_s:,.0f} s left  {note}"
            )

    @property
    def _task(self) -> Task:
        return self._bar.tasks[self._id]


class AuditProgress(RowProgress):
    """Progress of an audit, with the outcomes so far."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "auditing")
        self._outcomes: Counter[Outcome] = Counter()

    def advance(self, verdict: Verdict) -> None:
        """Counts one new verdict."""
        self._outcomes[verdict.outcome] += 1
        found = (f"{self._outcomes[outcome]:,} {outcome}" for outcome in Outcome if self._outcomes[outcome])
        self.step(", ".join(found))


class ByteProgress:
    """Progress through files whose size is known and whose number of rows is not: bytes, and rows if any."""

    def __init__(self, console: Console, label: str, *, total: int | None = None) -> None:
        self._console, self._label = console, label
        self._started = self._last_line = time.monotonic()
        self._num_rows = 0
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._id = self._bar.add_task(label, total=total, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def reach(self, done: int, total: int | None) -> None:
        """Says how many bytes there are so far, and in all if that is known."""
        self._bar.update(self._id, completed=done, total=total)
        self._line()

    def add_rows(self, num_bytes: int, num_rows: int) -> None:
        """Counts rows and the bytes that they took."""
        self._num_rows += num_rows
        rate = self._num_rows / max(time.monotonic() - self._started, 1e-9)
        self._bar.update(self._id, advance=num_bytes, note=f"{self._num_rows:,} rows, {rate:,.0f} rows/s")
        self._line()

    def _line(self) -> None:
        """Outside a terminal: a line every ten seconds."""
        now = time.monotonic()
        if self._console.is_terminal or now - self._last_line < _LINE_EVERY_S:
            return
        self._last_line = now
        task = self._bar.tasks[self._id]
        share = f" of {task.total / 1e6:,.0f}" if task.total else ""
        rate = task.completed / max(now - self._started, 1e-9)
        left = f", {(task.total - task.completed) / rate:,.0f} s left" if task.total and rate else ""
        self._console.print(
            f"{self._label}: {task.completed / 1e6:,.1f}{share} MB{left}  {task.fields['note']}"
        )
