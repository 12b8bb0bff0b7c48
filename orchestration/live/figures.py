"""The reward server's metrics as the figures that its live view shows; pure but for `read`.

There is no second book-keeping: everything is a difference of two readings of the server's own registry, over
the last ten seconds or the last minute, or a total since the start. What nobody told is None and never 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from prometheus_client import CollectorRegistry

from reward.types import Outcome

SHORT_S, LONG_S = 10.0, 60.0
STAGES = ("audit", "wait", "propose", "check")
_QUANTILES = (0.5, 0.95, 0.99)
_LATENCY = {
    "audit": ("march_audit_seconds_bucket", {}),
    "wait": ("march_audit_wait_seconds_bucket", {}),
    "propose": ("march_stage_seconds_bucket", {"stage": "propose"}),
    "check": ("march_stage_seconds_bucket", {"stage": "check"}),
}
_REFUSALS = ("march_requests_refused_total", "march_connections_refused_total")


@dataclass(frozen=True)
class Reading:
    """All samples of a registry at one time."""

    at_s: float  # on the monotonic clock
    samples: Mapping[str, Sequence[tuple[Mapping[str, str], float]]]

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric's series with these labels."""
        return sum(value for at, value in self.samples.get(name, ()) if labels.items() <= at.items())

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """The same by the values of a label, in the order of the registry."""
        found: dict[str, float] = {}
        for at, value in self.samples.get(name, ()):
            if labels.items() <= at.items():
                found[at[label]] = found.get(at[label], 0.0) + value
        return found


@dataclass(frozen=True)
class Estimate:
    """A time out of a histogram, which knows no more than its buckets."""

    seconds: float
    sign: Literal["", "<", ">"] = ""  # below the first bound, or above the last


@dataclass(frozen=True)
class Figures:
    """What the view shows; shares are between 0 and 1."""

    audits_per_s: tuple[float, float]  # over the last ten seconds and the last minute
    each_second: tuple[float, ...]  # audits that ended in it, the latest last
    outcomes: Mapping[str, int]
    unscored: Mapping[str, int]  # by reason
    agreement: float | None  # valid votes for their claim's first place
    unreadable: float | None  # of all votes
    repeating: float | None  # audits whose voters all wrote the same, of those who might have differed
    uncovered: float | None  # of the numbers to be checked
    num_in_flight: int
    num_waiting: int
    latency: Mapping[str, Sequence[Estimate]]  # p50, p95, p99 of each stage; none without observations
    tokens_per_s: tuple[float, float] | None  # prompts and completions; None where the sampler does not tell
    prefix_hits: float | None  # of the prompt tokens whose engine tells
    num_cached: int
    num_joined: int
    refused: Mapping[str, int]  # by reason
    weights_version: int | None


def read(registry: CollectorRegistry, *, at_s: float) -> Reading:
    """Reads every metric of a registry."""
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in registry.collect():
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return Reading(at_s, samples)


def count_figures(history: Sequence[Reading]) -> Figures:
    """The figures of the last reading.

    Args:
        history: Readings of the last minute in order, about one a second, the last one between two seconds.
    """
    now, short, long = history[-1], _before(history, SHORT_S), _before(history, LONG_S)
    weights_version = now.total("march_weights_version")
    return Figures(
        audits_per_s=(_rate(now, short, "march_audits_total"), _rate(now, long, "march_audits_total")),
        each_second=_each_second(history),
        outcomes={str(one): int(now.total("march_audits_total", outcome=one.value)) for one in Outcome},
        unscored=_counts(now.by("march_audits_total", "reason", outcome=Outcome.UNSCORED.value)),
        agreement=_share(now, "march_votes_agreeing_total", now.total("march_votes_total", state="valid")),
        unreadable=_share(now, "march_votes_total", now.total("march_votes_total"), state="unreadable"),
        repeating=_share(now, "march_voters_repeating_total", now.total("march_voters_asked_total")),
        uncovered=_share(now, "march_mentions_uncovered_total", now.total("march_mentions_total")),
        num_in_flight=int(now.total("march_audits_in_flight")),
        num_waiting=int(now.total("march_audits_waiting")),
        latency={stage: _quantiles(now, long, *_LATENCY[stage]) for stage in STAGES},
        tokens_per_s=_tokens(now, short),
        prefix_hits=_share(now, "march_cached_prompt_tokens_total", now.total("march_prompt_tokens_total")),
        num_cached=int(now.total("march_audits_cached_total")),
        num_joined=int(now.total("march_audits_joined_total")),
        refused=_counts({k: v for name in _REFUSALS for k, v in now.by(name, "reason").items()}),
        weights_version=None if math.isnan(weights_version) else int(weights_version),
    )


def quantile(bounds: Mapping[float, float], share: float) -> Estimate:
    """A quantile out of a histogram, by a line through its bucket as Prometheus's `histogram_quantile`.

    Args:
        bounds: Observations at or below each upper bound, of which the last is infinity; one at least.
        share: Between 0 and 1.
    """
    uppers = sorted(bounds)
    counts = [bounds[upper] for upper in uppers]
    rank = share * counts[-1]
    place = bisect_left(counts, rank)
    if place == 0:
        return Estimate(uppers[0], "<")
    low, high = uppers[place - 1], uppers[place]
    if math.isinf(high):
        return Estimate(low, ">")
    return Estimate(low + (high - low) * (rank - counts[place - 1]) / (counts[place] - counts[place - 1]))


def _quantiles(now: Reading, then: Reading, name: str, labels: Mapping[str, str]) -> list[Estimate]:
    before = then.by(name, "le", **labels)
    bounds = {float(le): n - before.get(le, 0.0) for le, n in now.by(name, "le", **labels).items()}
    return [quantile(bounds, share) for share in _QUANTILES] if bounds.get(math.inf) else []


def _before(history: Sequence[Reading], seconds: float) -> Reading:
    """The latest reading that is so old, or the oldest."""
    ends = history[-1].at_s - seconds
    return next((one for one in reversed(history) if one.at_s <= ends), history[0])


def _rate(now: Reading, then: Reading, name: str, **labels: str) -> float:
    seconds = now.at_s - then.at_s
    return (now.total(name, **labels) - then.total(name, **labels)) / seconds if seconds > 0 else 0.0


def _tokens(now: Reading, then: Reading) -> tuple[float, float] | None:
    name = "march_tokens_total"
    if not now.total(name):
        return None
    return _rate(now, then, name, kind="prompt"), _rate(now, then, name, kind="completion")


def _share(now: Reading, name: str, whole: float, **labels: str) -> float | None:
    return now.total(name, **labels) / whole if whole else None


def _each_second(history: Sequence[Reading]) -> tuple[float, ...]:
    name = "march_audits_total"
    return tuple(_rate(now, then, name) for then, now in pairwise(history[:-1]))


def _counts(values: Mapping[str, float]) -> dict[str, int]:
    """What happened at all, the most frequent first."""
    return {name: int(n) for name, n in sorted(values.items(), key=lambda one: -one[1]) if n}
