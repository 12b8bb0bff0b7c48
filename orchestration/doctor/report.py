"""What the doctor says: findings, the report that they make, and its tables in a terminal."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reward.offline.excerpt import printable
from reward.types import Record


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, and will hurt
    FAILED = "failed"
    SKIPPED = "skipped"  # not configured, or not to be seen from here


class Finding(Record):
    """One line of the report."""

    check: str
    state: State
    found: str
    fix: str = Field(default="", description="What to do about it; empty where nothing is to be done.")


class Section(Record):
    """Findings about one thing: the machine, the services, a recipe."""

    title: str
    findings: tuple[Finding, ...]


class Report(Record):
    version: str = Field(description="Of this package.")
    host: str = Field(description="Where the doctor ran.")
    at: datetime
    sections: tuple[Section, ...]

    def count(self, state: State) -> int:
        return sum(finding.state is state for section in self.sections for finding in section.findings)

    @property
    def exit_code(self) -> int:
        """1 when something failed; warnings do not count."""
        return 1 if self.count(State.FAILED) else 0


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, state=State.OK, found=found)


def warning(check: str, found: str, fix: str) -> Finding:
    return Finding(check=check, state=State.WARNING, found=found, fix=fix)


def failed(check: str, found: str, fix: str) -> Finding:
    return Finding(check=check, state=State.FAILED, found=found, fix=fix)


def skipped(check: str, why: str) -> Finding:
    return Finding(check=check, state=State.SKIPPED, found=why)


_STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "bold red", State.SKIPPED: "dim"}


def print_report(report: Report, console: Console) -> None:
    """One table a section, and how many findings there are of each state."""
    for section in report.sections:
        console.print(Text(section.title, style="bold"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", expand=True)
        table.add_column("check", width=15, overflow="fold")
        table.add_column("state", width=7, no_wrap=True)
        table.add_column("found, → what to fix", ratio=1, overflow="fold")
        for one in section.findings:
            quiet = "dim" if one.state is State.SKIPPED else ""
            found = Text(printable(one.found), style=quiet)
            if one.fix:
                found.append(f"\n→ {printable(one.fix)}", style="bold")
            table.add_row(Text(one.check, style=quiet), Text(one.state, style=_STYLES[one.state]), found)
        console.print(table, "")
    counts = ((report.count(state), state) for state in State)
    parts = [Text(f"{num} {state}", style=_STYLES[state]) for num, state in counts if num]
    console.print(Text.assemble(Text(", ").join(parts), f"   march {report.version} on {report.host}"))
