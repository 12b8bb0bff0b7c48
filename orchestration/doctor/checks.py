"""Runs checks side by side: each has its time, and what goes wrong inside one is one line of the report."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestration.doctor.records import Finding, Section, failed

_MOST_CHARS = 400
_LOOK_AT_LOG = "MARCH_DEBUG=1 shows where; please report it"

Look = Callable[[], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A check by the name that `--only` takes."""

    name: str
    look: Look


@dataclass
class _Running:
    check: Check
    findings: tuple[Finding, ...] | None = None
    error: Exception | None = None
    thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """On a daemon thread: one that hangs must not keep the command from ending."""
        self.thread = threading.Thread(target=self._look, name=f"doctor {self.check.name}", daemon=True)
        self.thread.start()

    def _look(self) -> None:
        try:
            self.findings = tuple(self.check.look())
        except Exception as error:
            self.error = error


def run_sections(
    sections: Mapping[str, Sequence[Check]], *, only: Sequence[str], timeout_s: float, debug: bool = False
) -> tuple[Section, ...]:
    """Runs the checks of all sections at the same time.

    Args:
        sections: Checks by title.
        only: Names of those that are run; all when empty.
        timeout_s: Of each check.
        debug: Whether an error that only we can fix is raised.

    Raises:
        ValueError: `only` names a check that there is not.
    """
    known = [check.name for checks in sections.values() for check in checks]
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"--only: {unknown[0]!r} is no check; there are {', '.join(known)}")
    chosen = {
        title: [check for check in checks if not only or check.name in only]
        for title, checks in sections.items()
    }
    every = [check for checks in chosen.values() for check in checks]
    found = dict(zip(every, run_checks(every, timeout_s=timeout_s, debug=debug), strict=True))
    return tuple(
        Section(title=title, findings=tuple(one for check in checks for one in found[check]))
        for title, checks in chosen.items()
        if checks
    )


def run_checks(
    checks: Sequence[Check], *, timeout_s: float, debug: bool = False
) -> list[tuple[Finding, ...]]:
    """Returns the findings of each check, in their order.

    Args:
        checks: Run at the same time.
        timeout_s: Of each; one that takes longer has failed.
        debug: Whether an error that only we can fix is raised.
    """
    running = [_Running(check) for check in checks]
    for one in running:
        one.start()
    until = time.monotonic() + timeout_s
    for one in running:
        one.thread.join(max(until - time.monotonic(), 0))
    return [_ended(one, timeout_s, debug=debug) for one in running]


def _ended(one: _Running, timeout_s: float, *, debug: bool) -> tuple[Finding, ...]:
    name = one.check.name
    if one.findings is not None:
        return one.findings
    if one.error is None:
        return (failed(name, f"no answer within {timeout_s:g} s", "raise --timeout, or look what hangs"),)
    from orchestration.terminal.errors import user_error

    if debug:
        raise one.error
    line = user_error(one.error)
    problem = " ".join((line or f"{type(one.error).__name__}: {one.error}").split())
    return (failed(name, problem[:_MOST_CHARS], "" if line else _LOOK_AT_LOG),)
