"""A retraining before a person's eyes: a live table on a terminal, a line for each change in a log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestration.registry.open import approval_command
from orchestration.retrain.budget import money_of
from orchestration.retrain.job import BudgetSettings, Job
from orchestration.retrain.ledger import Given
from orchestration.retrain.records import Outcome, ParentWeights, Retraining, StageState, StageStatus
from orchestration.retrain.results import Standing
from orchestration.retrain.stages import Stage, StageProgress

_STYLES = {
    StageState.DONE: "green",
    StageState.RUNNING: "cyan",
    StageState.FAILED: "red",
    StageState.STOPPED: "yellow",
}
_LINES = {
    Outcome.PROMOTED: "version {version} is the champion",
    Outcome.WAITS: "version {version} waits: {approve}",
    Outcome.REFUSED: "version {version} is refused: {reason}",
    Outcome.INCONCLUSIVE: "version {version} is not promoted, too little is known: {reason}",
    Outcome.UNCHANGED: "version {version} is the champion already; nothing was changed",
}


class LiveWatch:
    """Shows a retraining while it is entered."""

    def __init__(self, console: Console, budget: BudgetSettings) -> None:
        self._console, self._budget = console, budget
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._said: dict[Stage, tuple[StageState, int]] = {}
        self._note, self._rates = "", _Rates()

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, retraining: Retraining, progress: StageProgress | None = None) -> None:
        """The table, or what of it has changed."""
        if self._live:
            told = self._rates.told(progress) if progress else ""
            self._live.update(stages_table(retraining, self._budget, progress=told, note=self._note))
            return
        for one in retraining.stages:
            if self._said.get(one.stage, (StageState.WAITING, 0)) != (one.state, one.attempts):
                self._said[one.stage] = (one.state, one.attempts)
                self._console.print(_line(one), highlight=False, soft_wrap=True)

    def waits(self, stage: Stage, line: str, seconds: float) -> None:
        """A stage is tried again."""
        self._note = f"{line}; again in {seconds:,.0f} s"
        if not self._live:
            self._console.print(self._note, highlight=False, soft_wrap=True, markup=False)


class _Rates:
    """How fast the running stage goes, since it was first seen."""

    def __init__(self) -> None:
        self._label, self._done, self._since = "", 0, time.monotonic()

    def told(self, progress: StageProgress) -> str:
        """One line: what, how much of it, how fast, how long it will take."""
        if progress.label != self._label:
            self._label, self._done, self._since = progress.label, progress.done, time.monotonic()
        parts = [progress.label, f"{progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")]
        seconds, num = time.monotonic() - self._since, progress.done - self._done
        if num > 0 and seconds > 1:
            parts.append(f"{num / seconds:,.2f}/s")
            if progress.total > progress.done:
                parts.append(f"{(progress.total - progress.done) * seconds / num:,.0f} s left")
        return "  ".join(filter(None, [*parts, progress.note]))


def stages_table(
    retraining: Retraining, budget: BudgetSettings, *, progress: str = "", note: str = ""
) -> Table:
    """The stages, and what was spent."""
    table = Table(title=f"{retraining.job}  {retraining.id[:8]}  {retraining.state}", title_justify="left")
    for column in ("stage", "state", "attempts", "seconds", "key", ""):
        table.add_column(column, justify="right" if column in ("attempts", "seconds") else "left")
    for one in retraining.stages:
        state = Text("reused" if one.reused else one.state, style=_STYLES.get(one.state, ""))
        said = progress if one.state is StageState.RUNNING else one.error or _figures(one)
        seconds = f"{one.wall_s:,.0f}" if one.wall_s else ""
        attempts = str(one.attempts) if one.attempts else ""
        table.add_row(one.stage, state, attempts, seconds, (one.key or "")[:12], Text(said))
    table.caption, table.caption_justify = Text(spent_line(retraining, budget, note=note)), "left"
    return table


def plan_table(
    given: Given,
    parent: ParentWeights,
    standing: Mapping[Stage, Standing | None],
    left: Retraining | None,
    budget: BudgetSettings,
) -> Table:
    """What a run would do."""
    start = f"version {parent.version}" if parent.version else parent.uri
    table = Table(title=f"{given.id[:8]}, starts from {start}", title_justify="left")
    for column in ("stage", "what a run would do"):
        table.add_column(column)
    for stage in Stage:
        if stage in standing:
            found = standing[stage]
            said = "run" if found is None else f"nothing: a result exists ({found.digest[:12]})"
        elif stage is Stage.EVALUATE_CHAMPION:
            said = "run, if a champion has no such evaluation yet"
        else:
            said = "run, unless its inputs have a result already"
        table.add_row(stage, said)
    if left is not None:
        told = "is finished: nothing is done again" if left.state.is_final else f"was left: {left.state}"
        table.caption = Text(f"the retraining {told}; {spent_line(left, budget)}")
        table.caption_justify = "left"
    return table


def spent_line(retraining: Retraining, budget: BudgetSettings, *, note: str = "") -> str:
    """Hours, tokens, money, each with its bound."""
    spent = retraining.spent
    parts = [f"{spent.hours:,.2f}{_of(budget.hours)} hours", f"{spent.tokens:,}{_of(budget.tokens)} tokens"]
    if budget.price_per_hour or budget.price_per_million_tokens:
        parts.append(f"{money_of(spent, budget):,.2f}{_of(budget.money)} by the given prices")
    return "  ".join(filter(None, [", ".join(parts), note]))


def outcome_line(retraining: Retraining, job: Job | None = None) -> str:
    """What became of the candidate; the command that approves it names what the job names, if it is given."""
    assert retraining.outcome is not None, "it is finished"
    approve = approval_command(
        retraining.model,
        retraining.version or "",
        registry=job.registry.uri if job else None,
        store=job.store.location if job else None,
    )
    line = _LINES[retraining.outcome].format(
        version=retraining.version, reason=retraining.reason, approve=approve
    )
    return f"{retraining.model} {line}"


def _line(one: StageStatus) -> Text:
    state = "reused" if one.reused and one.state is StageState.DONE else str(one.state)
    parts = [f"{one.stage}: {state}"]
    if one.attempts > 1:
        parts.append(f"attempt {one.attempts}")
    if one.state is StageState.DONE and not one.reused:
        parts.append(f"{one.wall_s:,.1f} s")
    return Text(", ".join(filter(None, [*parts, one.error or ""])))


def _figures(one: StageStatus) -> str:
    return "  ".join(f"{name} {value:,.4g}" for name, value in one.figures.items())


def _of(bound: float | None) -> str:
    return "" if bound is None else f" of {bound:,}"
