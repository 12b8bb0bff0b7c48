"""A run's curves as one PNG: the reward never without the truth beside it.

Colours are near the Okabe-Ito palette, which most colour-blind people can tell apart; the second line of a
panel is dashed, and every line carries its name at its end. Green is the truth and red is what goes wrong
unseen. Diamonds are the held-out measurements before and after, with 95% intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, PercentFormatter

from pipeline.demo.intervals import Estimate

_BLUE, _GREEN, _RED, _ORANGE, _PURPLE, _GREY = (
    "#0072B2",
    "#00805A",
    "#C44E00",
    "#B37700",
    "#A8548A",
    "#6B7280",
)
_INK, _MUTED, _GRID = "#1F2937", "#6B7280", "#E5E7EB"
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.7,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}
_LABEL_HEIGHT = 0.085  # of one row of a label, as a share of the panel's height
_LEAST_TOP, _LEAST_TOP_PERCENT = 1e-3, 0.05


@dataclass(frozen=True)
class Line:
    """One metric of `steps.jsonl`."""

    key: str
    label: str
    colour: str


@dataclass(frozen=True)
class Panel:
    """One small plot over the steps."""

    title: str
    lines: tuple[Line, ...]
    percent: bool = False
    at_most: float | None = None  # upper end of the axis, where one is natural
    width: int = 1  # columns


PANELS = (
    Panel(
        "What the check accepts, and what is true",
        (
            Line("audit/supported_rate", "accepted\n(the reward)", _BLUE),
            Line("oracle/faithful_rate", "faithful\n(the truth)", _GREEN),
        ),
        percent=True,
        at_most=1.0,
        width=2,
    ),
    Panel(
        "Where the check errs",
        (
            Line("oracle/false_accept_rate", "false\naccepts", _RED),
            Line("oracle/false_reject_rate", "false\nrejects", _PURPLE),
        ),
        percent=True,
    ),
    Panel(
        "Checkers' consensus is right",
        (Line("oracle/consensus_accuracy", "accuracy", _GREEN),),
        percent=True,
        at_most=1.0,
    ),
    Panel(
        "Is less said?",
        (
            Line("audit/mentions_per_answer", "mentions", _BLUE),
            Line("audit/claims_per_answer", "claims", _ORANGE),
        ),
    ),
    Panel(
        "Answers without a verdict on numbers",
        (
            Line("audit/unscored_rate", "unscored", _GREY),
            Line("audit/no_claims_rate", "no claims", _RED),
        ),
        percent=True,
    ),
    Panel(
        "Distance from the start (KL, nats a token)",
        (Line("solver/kl", "Solver", _BLUE), Line("checker/kl", "Checker", _ORANGE)),
    ),
    Panel(
        "Length (tokens)",
        (
            Line("solver/response_length", "Solver", _BLUE),
            Line("checker/response_length", "Checker", _ORANGE),
        ),
    ),
    Panel(
        "Trajectories trained a step",
        (Line("solver/num_trained", "Solver", _BLUE), Line("checker/num_trained", "Checker", _ORANGE)),
    ),
)

Ends = Mapping[str, tuple[Estimate, Estimate]]


def draw_curves(steps: Sequence[Mapping[str, float]], path: Path, *, ends: Ends) -> None:
    """Writes the PNG of a run.

    Args:
        steps: Rows of `steps.jsonl`; a metric that a step lacks leaves a gap.
        path: The PNG.
        ends: Held-out estimates before and after, by the key of the line that they belong to.

    Raises:
        ValueError: there is no step to draw.
    """
    if not steps:
        raise ValueError("steps: there is no finished step, so no curve to draw; train first")
    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=(13, 9.6), layout="constrained", facecolor="white")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.14)
        grid = figure.add_gridspec(3, 3)
        place = 0
        for panel in PANELS:
            row, column = divmod(place, 3)
            axes = figure.add_subplot(grid[row, column : column + panel.width])
            _draw_panel(axes, panel, steps, ends)
            place += panel.width
        figure.supxlabel(
            "PPO step        \u25c6 held-out rows before and after, with 95% intervals",
            color=_MUTED,
            size=10,
        )
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _draw_panel(axes: Any, panel: Panel, steps: Sequence[Mapping[str, float]], ends: Ends) -> None:
    axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold", pad=10)
    x = [row["step"] for row in steps]
    beyond = 0.025 * x[-1] / panel.width  # room beside the curve for a diamond
    labels: list[tuple[float, Line]] = []
    for place, line in enumerate(panel.lines):
        y = [row.get(line.key, float("nan")) for row in steps]
        axes.plot(x, y, color=line.colour, linewidth=1.8, dashes=(4, 1.2) if place else (None, None))
        if line.key in ends:
            offset = (1 + 1.5 * place) * beyond
            _draw_ends(axes, line, ends[line.key], (-offset, x[-1] + offset))
        last = next((value for value in reversed(y) if not math.isnan(value)), None)
        if last is not None:
            labels.append((last, line))
    axes.set_ylim(0, _top(axes, panel))  # from zero, so that a small change looks small
    axes.set_xlim(-4 * beyond, x[-1] + 4 * beyond)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    if panel.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    _name_lines(axes, labels)


def _draw_ends(axes: Any, line: Line, ends: tuple[Estimate, Estimate], places: tuple[float, float]) -> None:
    for x, estimate in zip(places, ends, strict=True):
        reach = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
        style = {
            "color": line.colour,
            "fmt": "D",
            "markersize": 7,
            "markeredgecolor": "white",
            "capsize": 2.5,
        }
        axes.errorbar(x, estimate.value, yerr=reach, clip_on=False, zorder=3, **style)


def _top(axes: Any, panel: Panel) -> float:
    """The upper end of the axis; a curve that stays at zero keeps some air above it."""
    least = _LEAST_TOP_PERCENT if panel.percent else _LEAST_TOP
    return 1.02 * (panel.at_most or max(float(axes.get_ylim()[1]), least))


def _name_lines(axes: Any, labels: Sequence[tuple[float, Line]]) -> None:
    """Names each line at its end; names that would overlap are pushed apart, half up and half down."""
    high = axes.get_ylim()[1]
    ordered = sorted(labels, key=lambda label: label[0])
    wanted = [value / high for value, _ in ordered]
    halves = [(line.label.count("\n") + 1) * _LABEL_HEIGHT / 2 for _, line in ordered]
    placed: list[float] = []
    for want, half in zip(wanted, halves, strict=True):
        floor = placed[-1] + halves[len(placed) - 1] + half if placed else 0.0
        placed.append(max(want, floor))
    shift = max((at - want for at, want in zip(placed, wanted, strict=True)), default=0.0) / 2
    shift = min(shift, max(placed[0], 0.0)) if placed else 0.0
    for at, (_, line) in zip(placed, ordered, strict=True):
        where = {"xy": (1.02, at - shift), "xycoords": "axes fraction", "va": "center"}
        axes.annotate(line.label, color=line.colour, fontsize=9.5, linespacing=1.05, **where)
