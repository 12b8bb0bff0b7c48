"""The charts of a run's page: places in an SVG, computed here and drawn by `templates/run.html`.

Each chart is 300 by 100 units; a bin of steps is a column of it. Axes start at zero unless a figure is
negative, so that a small change looks small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestration.inspect.steps import Bin
from reward.types import Outcome

WIDTH, HEIGHT = 300.0, 100.0


@dataclass(frozen=True)
class Line:
    """One figure of `steps.jsonl` in a chart."""

    key: str
    label: str
    colour: str  # a class of run.css


@dataclass(frozen=True)
class Plan:
    """What a chart shows."""

    title: str
    lines: tuple[Line, ...]
    percent: bool = False


PLANS = (
    Plan(
        "Accepted, and true",
        (
            Line("audit/supported_rate", "accepted", "one"),
            Line("oracle/faithful_rate", "true", "two"),
            Line("oracle/false_accept_rate", "accepted, but wrong", "three"),
        ),
        percent=True,
    ),
    Plan(
        "Held-out answers",
        (
            Line("held_out/supported_rate", "accepted", "one"),
            Line("held_out/right_rate", "right", "two"),
            Line("held_out/unscored_rate", "unscored", "three"),
        ),
        percent=True,
    ),
    Plan("Reward", (Line("audit/reward", "scored answers", "one"),)),
    Plan(
        "Agreement",
        (
            Line("audit/vote_agreement", "of the voters", "one"),
            Line("oracle/consensus_accuracy", "with the truth", "two"),
        ),
        percent=True,
    ),
    Plan(
        "Against the frozen Checker",
        (
            Line("canary/support_gap", "more accepted", "one"),
            Line("canary/only_live_rate", "accepted by the live one alone", "three"),
        ),
    ),
    Plan(
        "Numbers and claims an answer",
        (
            Line("audit/mentions_per_answer", "mentions", "one"),
            Line("audit/claims_per_answer", "claims", "two"),
        ),
    ),
    Plan(
        "Response length, tokens",
        (
            Line("solver/response_length", "Solver", "one"),
            Line("checker/response_length", "Checker", "two"),
            Line("proposer/response_length", "Proposer", "three"),
        ),
    ),
    Plan(
        "KL, nats a token",
        (
            Line("solver/kl", "Solver", "one"),
            Line("checker/kl", "Checker", "two"),
            Line("proposer/kl", "Proposer", "three"),
        ),
    ),
)


@dataclass(frozen=True)
class Curve:
    """A drawn line."""

    line: Line
    points: Sequence[tuple[float, float]]
    last: str  # its last figure, in words


@dataclass(frozen=True)
class Chart:
    """A drawn chart."""

    title: str
    curves: Sequence[Curve]
    low: str  # the ends of the axis, in words
    high: str
    hints: Sequence[str]  # a bin's figures, in words


@dataclass(frozen=True)
class Stack:
    """The outcomes of a bin as a stacked column: name, upper end and height of each part, and in words."""

    parts: Sequence[tuple[str, float, float]]
    hint: str


def columns_of(num: int) -> list[tuple[float, float]]:
    """Left end and width of each bin's column."""
    width = WIDTH / max(num, 1)
    return [(round(place * width, 2), round(width, 2)) for place in range(num)]


def charts(found: Sequence[Bin]) -> list[Chart]:
    """Returns the charts that the run has figures for."""
    known = {key for one in found for key in one.figures}
    lines = [(plan, [line for line in plan.lines if line.key in known]) for plan in PLANS]
    return [_chart(plan, some, found) for plan, some in lines if some]


def outcome_stacks(found: Sequence[Bin]) -> list[Stack]:
    """Returns the share of each outcome, bin by bin."""
    stacks = []
    for one in found:
        parts, top = [], 0.0
        for outcome in Outcome:
            share = one.figures.get(f"audit/{outcome.value.lower()}_rate", 0.0)
            parts += [(outcome.value, round(top, 2), round(HEIGHT * share, 2))] if share else []
            top += HEIGHT * share
        shares = (f"{height:.0f}% {name.lower().replace('_', ' ')}" for name, _, height in parts)
        stacks.append(Stack(parts, f"{_steps(one)}: {', '.join(shares)}"))
    return stacks


def _chart(plan: Plan, lines: Sequence[Line], found: Sequence[Bin]) -> Chart:
    values = [one.figures[line.key] for line in lines for one in found if line.key in one.figures]
    low, high = min(0.0, *values), 1.0 if plan.percent else max(0.0, *values)
    high = high if high > low else low + 1.0
    return Chart(
        title=plan.title,
        curves=[_curve(line, found, low, high, percent=plan.percent) for line in lines],
        low=_words(low, percent=plan.percent),
        high=_words(high, percent=plan.percent),
        hints=[_hint(one, lines, percent=plan.percent) for one in found],
    )


def _curve(line: Line, found: Sequence[Bin], low: float, high: float, *, percent: bool) -> Curve:
    columns = columns_of(len(found))
    known = [(place, one.figures[line.key]) for place, one in enumerate(found) if line.key in one.figures]
    points = [
        (round(left + width / 2, 2), round(HEIGHT * (high - value) / (high - low), 2))
        for (left, width), value in ((columns[place], value) for place, value in known)
    ]
    return Curve(line, points, _words(known[-1][1], percent=percent))


def _hint(one: Bin, lines: Sequence[Line], *, percent: bool) -> str:
    figures = (
        f"{line.label} {_words(one.figures[line.key], percent=percent)}"
        for line in lines
        if line.key in one.figures
    )
    return f"{_steps(one)}: {', '.join(figures)}"


def _steps(one: Bin) -> str:
    return f"step {one.first}" if one.first == one.last else f"steps {one.first} to {one.last}"


def _words(value: float, *, percent: bool) -> str:
    if percent:
        return f"{value:.0%}"
    digits = 0 if abs(value) >= 100 or value == 0 else 2 if abs(value) >= 0.01 else 4
    return f"{value:,.{digits}f}" if math.isfinite(value) else "?"
