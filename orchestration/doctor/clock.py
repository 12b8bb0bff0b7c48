"""This machine's clock, against those of the servers around, by the Date of their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestration.doctor.asking import Answer, UnansweredError, ask
from orchestration.doctor.records import Finding, failed, ok, skipped, warning

_REFUSED_S = 900.0  # S3 refuses what was signed a quarter of an hour ago (RequestTimeTooSkewed)
_WORTH_FIXING_S = 60.0
_FIX = "synchronise it (Debian: apt-get install chrony; timedatectl)"
_DATES_ARE_SECONDS = 0.5  # Date is rounded down, so the truth is half a second later on average


@dataclass(frozen=True)
class Skew:
    """How far a server's clock is ahead of ours; negative: behind."""

    server: str
    seconds: float


def gather_skews(servers: Mapping[str, str], *, timeout_s: float) -> list[Skew]:
    """Asks each server for anything; those that do not answer are the business of their own checks.

    Args:
        servers: Addresses by name.
        timeout_s: Of each.
    """
    found = []
    for name, url in servers.items():
        try:
            skew = skew_of(ask(url, timeout_s=timeout_s))
        except UnansweredError:
            continue
        found += [Skew(name, skew)] if skew is not None else []
    return found


def skew_of(answer: Answer) -> float | None:
    """Seconds by which the server is ahead; None where it did not tell its time."""
    if answer.date is None:
        return None
    return answer.date.timestamp() + _DATES_ARE_SECONDS - answer.asked_at


def check_clock(skews: list[Skew], *, asked: Mapping[str, str]) -> Iterator[Finding]:
    """Judges the worst of them."""
    if not asked:
        yield skipped("clock", "no server is configured to compare it with")
        return
    if not skews:
        yield skipped("clock", f"no server told its time ({', '.join(asked)})")
        return
    worst = max(skews, key=lambda skew: abs(skew.seconds))
    told = f"{_said(worst)} {worst.server}'s"
    others = ", ".join(f"{one.server} {one.seconds:+.0f} s" for one in skews if one is not worst)
    found = f"{told} ({others})" if others else told
    if abs(worst.seconds) >= _REFUSED_S:
        yield failed("clock", f"{found}; S3 refuses what is 15 minutes off", _FIX)
    elif abs(worst.seconds) >= _WORTH_FIXING_S:
        yield warning("clock", found, _FIX)
    else:
        yield ok("clock", found)


def _said(skew: Skew) -> str:
    size = abs(skew.seconds)
    if size < 2:
        return "within 2 s of"
    shown = f"{size:,.0f} s" if size < 120 else f"{size / 60:,.0f} minutes"
    return f"{shown} {'behind' if skew.seconds > 0 else 'ahead of'}"
