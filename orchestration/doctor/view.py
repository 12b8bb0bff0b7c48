"""A report in the terminal: a table a section; on a narrow one what to fix stands under what was found."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestration.doctor.records import Finding, Report, Section, State
from reward.offline.excerpt import printable

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "bold red", State.SKIPPED: "dim"}
_WIDE = 110  # characters; from here on there is room for a column of its own
_NAME_WIDTH, _STATE_WIDTH = 15, 7


def print_report(report: Report, console: Console) -> None:
    """One table a section, and how many findings there are of each state."""
    wide = console.width >= _WIDE
    for section in report.sections:
        console.print(Text(section.title, style="bold"))
        console.print(_table(section, wide=wide), "")
    console.print(_summary(report))


def _table(section: Section, *, wide: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", expand=True)
    table.add_column("check", width=_NAME_WIDTH, overflow="fold")
    table.add_column("state", width=_STATE_WIDTH, no_wrap=True)
    table.add_column("found" if wide else "found, → what to fix", ratio=3, overflow="fold")
    if wide:
        table.add_column("what to fix", ratio=2, overflow="fold")
    for finding in section.findings:
        table.add_row(*_cells(finding, wide=wide))
    return table


def _cells(finding: Finding, *, wide: bool) -> Iterable[Text]:
    quiet = "dim" if finding.state is State.SKIPPED else ""
    style = _STYLES[finding.state]
    found, fix = Text(printable(finding.found), style=quiet), Text(printable(finding.fix), style="bold")
    yield Text(finding.check, style=quiet)
    yield Text(finding.state.value, style=style)
    if wide:
        yield from (found, fix)
    else:
        yield Text("\n→ ").join((found, fix)) if finding.fix else found


def _summary(report: Report) -> Text:
    counts = [(report.count(state), state) for state in State]
    parts = [Text(f"{num} {_counted(state, num)}", style=_STYLES[state]) for num, state in counts if num]
    return Text.assemble(Text(", ").join(parts), f"   march {report.version} on {report.host}")


def _counted(state: State, num: int) -> str:
    return "warnings" if state is State.WARNING and num > 1 else state.value
