"""What the records of a job's retrainings say about its triggers; pure.

A trigger is settled by a command that began after it and ended well, whoever started it, or that was the last
attempt. Until then it stays due: a command that was killed settles nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestration.retrain.records import Retraining, RetrainingState, Seen
from orchestration.retrain.triggers import BackoffSettings, Cause

_FAILED = (RetrainingState.FAILED, RetrainingState.STOPPED_BY_BUDGET)  # others were killed or interrupted


@dataclass(frozen=True)
class Past:
    """What a job has behind it. Times are seconds since 1970, by the clock of whoever wrote them."""

    began: float | None = None  # the latest start of a command that settled its triggers
    data: Mapping[str, str] = field(default_factory=dict)  # digests that need no retraining
    verdicts: Mapping[str, int] = field(default_factory=dict)  # lines of verdicts that are settled
    drift_began: float | None = None  # the last retraining for drift
    goes_on: tuple[Cause, ...] = ()  # triggers of a command that was killed or failed
    num_failures: int = 0  # commands in a row that did not end well
    gave_up: bool = False  # after them; only a trigger that comes later starts another one
    waits_until: float | None = None  # before the next attempt
    order: int = 0  # of the last command
    attempt: int = 1  # of the next command


# A clock is set back by an hour or so; what began later than that was under one that was far ahead.
_MOST_AHEAD_S = 86_400.0


def read_past(history: Sequence[Retraining], backoff: BackoffSettings, now: float) -> Past:
    """Works it out at `now` (seconds since 1970), when no retraining of the job is running."""
    known = [(one.seen.order, one, one.seen) for one in history if one.seen is not None]
    known.sort(key=lambda one: one[0])  # not by time: clocks are set back
    if not known:
        return Past()
    settled = [seen for _, one, seen in known if _settles(one, seen, backoff)]
    _, last, seen = known[-1]
    for_drift = [one.began_ms / 1000 for _, _, one in known if Cause.DRIFT in one.causes]
    latest = now + _MOST_AHEAD_S
    began = [one.began_ms / 1000 for one in settled if one.began_ms / 1000 <= latest]
    has_settled, ended_well = _settles(last, seen, backoff), _ended_well(last)
    return Past(
        began=max(began, default=None),
        data=settled[-1].data if settled else {},
        verdicts=settled[-1].verdicts if settled else {},
        drift_began=max(for_drift, default=None),
        goes_on=() if has_settled else seen.causes,
        num_failures=0 if ended_well else seen.attempt,
        gave_up=has_settled and not ended_well,
        waits_until=None if has_settled else _waits_until(last, seen, backoff, now),
        order=seen.order,
        attempt=1 if has_settled else seen.attempt + 1,
    )


def _ended_well(one: Retraining) -> bool:
    """Whether somebody was notified of its decision; one that was killed just before is gone on with."""
    return one.state.is_final and one.is_closed


def _settles(one: Retraining, seen: Seen, backoff: BackoffSettings) -> bool:
    return _ended_well(one) or one.needs_person or seen.attempt >= backoff.attempts


def _waits_until(one: Retraining, seen: Seen, backoff: BackoffSettings, now: float) -> float | None:
    """None: it may start now, since it was cut short for the first time, or since the clock was set back."""
    if one.state not in _FAILED and seen.attempt == 1:
        return None
    ended = (one.ended_ms or one.last_sign_ms) / 1000
    until = ended + min(backoff.first_s * 2 ** (seen.attempt - 1), backoff.most_s)
    return until if ended <= now < until else None
