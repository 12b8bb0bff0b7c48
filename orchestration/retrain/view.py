"""A retraining before a person's eyes: a line for each change, the stages as a table, the outcome."""

import time

from rich.box import SIMPLE_HEAD
from rich.status import Status
from rich.table import Table
from rich.text import Text

from orchestration.registry.chain import State
from orchestration.registry.open import approval_command
from orchestration.retrain.job import BudgetSettings, Job
from orchestration.retrain.records import Ending, Retraining, Stage, StageProgress, StageState, StageStatus

_STYLES = {
    StageState.DONE: "green",
    StageState.RUNNING: "cyan",
    StageState.FAILED: "red",
    StageState.STOPPED: "yellow",
}
_LINES = {
    Ending.PROMOTED: "version {version} is the champion",
    Ending.WAITS: "version {version} waits: {approve}",
    Ending.REFUSED: "version {version} is refused: {reason}",
    Ending.INCONCLUSIVE: "version {version} is not promoted, too little is known: {reason}",
    Ending.UNCHANGED: "version {version} is the champion already; nothing was changed",
}


class Watch:
    """Prints each change of a stage and, on a terminal, how far the running one is, while that is shown."""

    def __init__(self, running: Status, budget: BudgetSettings) -> None:
        self._running, self._budget = running, budget
        self._has_begun = False
        self._said: dict[Stage, tuple[StageState, int]] = {}
        self._first, self._since = StageProgress(), time.monotonic()

    def show(self, retraining: Retraining, progress: StageProgress | None = None) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._print(begin_line(retraining))
        for one in retraining.stages:
            if self._said.get(one.stage, (StageState.WAITING, 0)) != (one.state, one.attempts):
                self._said[one.stage] = (one.state, one.attempts)
                attempt = f"attempt {one.attempts}" if one.attempts > 1 else ""
                took = f"{one.wall_s:,.1f} s" if one.state is StageState.DONE and not one.reused else ""
                parts = [f"{one.stage}: {state_text(one)}", attempt, took, one.error]
                self._print(", ".join(filter(None, parts)))
        rate = self._rate(progress) if progress else ""
        self._running.update(Text("  ".join(filter(None, [rate, spent_line(retraining, self._budget)]))))

    def waits(self, line: str, seconds: float) -> None:
        """A stage is tried again."""
        self._print(f"{line}; again in {seconds:,.0f} s")

    def _print(self, line: str) -> None:
        self._running.console.print(Text(line), soft_wrap=True)

    def _rate(self, progress: StageProgress) -> str:
        """What, how much of it, how fast since it was first seen, how long it will take."""
        if progress.label != self._first.label:
            self._first, self._since = progress, time.monotonic()
        parts = [progress.label, f"{progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")]
        seconds, num = time.monotonic() - self._since, progress.done - self._first.done
        if num > 0 and seconds > 1:
            parts.append(f"{num / seconds:,.2f}/s")
            if progress.total > progress.done:
                parts.append(f"{(progress.total - progress.done) * seconds / num:,.0f} s left")
        return "  ".join(filter(None, [*parts, progress.note]))


def begin_line(retraining: Retraining) -> str:
    """Which job, why, and from which weights: a champion that has changed makes it another retraining."""
    parent = retraining.parent
    start = f"{retraining.model} version {parent.version}" if parent.version else parent.uri
    return f"{retraining.job}: {retraining.cause or 'by hand'}; starts from {start}"


def stages_table(retraining: Retraining, budget: BudgetSettings, *, title: str = "", note: str = "") -> Table:
    """The stages, and what was spent, with a note below."""
    table = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "state", "attempts", "seconds", "key", ""):
        table.add_column(column, justify="right" if column in ("attempts", "seconds") else "left")
    for one in retraining.stages:
        table.add_row(
            one.stage.replace("_", " "),
            state_text(one),
            str(one.attempts) if one.attempts else "",
            f"{one.wall_s:,.0f}" if one.wall_s else "",
            (one.key or "")[:12],
            Text(one.error or ""),
        )
    table.caption = Text("  ".join(filter(None, [spent_line(retraining, budget), note])))
    return table


def spent_line(retraining: Retraining, budget: BudgetSettings) -> str:
    """Hours, tokens, money, each with its bound."""
    spent = retraining.spent
    parts = [f"{spent.hours:,.2f}{_of(budget.hours)} hours", f"{spent.tokens:,}{_of(budget.tokens)} tokens"]
    if budget.price_per_hour or budget.price_per_million_tokens:
        parts.append(f"{spent.money(budget):,.2f}{_of(budget.money)} by the given prices")
    return ", ".join(parts)


def outcome_line(retraining: Retraining, job: Job | None = None, now: State | None = None) -> str:
    """What became of the candidate; for one of a job, with the command that approves it.

    `now` is what the registry says: somebody may have rolled it back, or decided on it, since.
    """
    assert retraining.outcome is not None, "it is finished"
    version = retraining.version or ""
    champion = now.champion.version if now and now.champion else ""
    if now and retraining.outcome is Ending.PROMOTED and champion != version:
        return f"{retraining.model} version {version} was promoted; version {champion} is the champion now"
    waiting = {one.version for one in now.waiting.values()} if now else {version}
    if retraining.outcome is Ending.WAITS and version not in waiting:
        return f"{retraining.model} version {version} waited for approval; its request has ended"
    approve = approval_of(job, version) if job else "march status has the command"
    line = _LINES[retraining.outcome].format(version=version, reason=retraining.reason, approve=approve)
    return f"{retraining.model} {line}"


def approval_of(job: Job, version: str) -> str:
    registry, store = job.registry, job.store.location
    return approval_command(registry.model, version, registry=registry.uri, store=store)


def state_text(one: StageStatus) -> Text:
    said = "reused" if one.reused and one.state is StageState.DONE else str(one.state)
    return Text(said, style=_STYLES.get(one.state, ""))


def _of(bound: float | None) -> str:
    return "" if bound is None else f" of {bound:,}"
