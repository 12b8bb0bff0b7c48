"""What the doctor says: findings, and the report that they make."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from reward.types import Record


class State(StrEnum):
    """How a check ended."""

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
    """All of it."""

    version: str = Field(description="Of this package.")
    host: str = Field(description="Where the doctor ran.")
    at: datetime
    sections: tuple[Section, ...]

    def count(self, state: State) -> int:
        """Findings of a state."""
        return sum(finding.state is state for section in self.sections for finding in section.findings)

    @property
    def exit_code(self) -> int:
        """1 when something failed; warnings do not count."""
        return 1 if self.count(State.FAILED) else 0


def ok(check: str, found: str) -> Finding:
    """Nothing to be done."""
    return Finding(check=check, state=State.OK, found=found)


def warning(check: str, found: str, fix: str) -> Finding:
    """It works, and will hurt."""
    return Finding(check=check, state=State.WARNING, found=found, fix=fix)


def failed(check: str, found: str, fix: str) -> Finding:
    """It will not work."""
    return Finding(check=check, state=State.FAILED, found=found, fix=fix)


def skipped(check: str, why: str) -> Finding:
    """Nothing was looked at."""
    return Finding(check=check, state=State.SKIPPED, found=why)
