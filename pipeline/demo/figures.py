"""A run's curves as one PNG: the reward never without the truth beside it.

Colours are those of a style of matplotlib that most colour-blind people can tell apart, and the second line
of a panel is dashed. Diamonds are the held-out measurements before and after, with 95% intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, PercentFormatter

from pipeline.demo.evaluation import Estimate

_STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E7EB",
}
_LEAST_TOP, _LEAST_TOP_PERCENT = 1e-3, 0.05  # a curve that stays at zero keeps some air above it
_PLACES = "AAB;CDE;FGH"  # of the panels


@dataclass(frozen=True)
class Panel:
    title: str
    lines: Mapping[str, str]  # metrics of `steps.jsonl`, by their labels
    percent: bool = False
    top: float | None = None  # upper end of the axis, where one is natural


PANELS = (
    Panel(
        "What the check accepts, and what is true",
        {"accepted (the reward)": "audit/supported_rate", "faithful (the truth)": "oracle/faithful_rate"},
        percent=True,
        top=1.0,
    ),
    Panel(
        "Where the check errs",
        {"false accepts": "oracle/false_accept_rate", "false rejects": "oracle/false_reject_rate"},
        percent=True,
    ),
    Panel("Checkers' consensus is right", {"accuracy": "oracle/consensus_accuracy"}, percent=True, top=1.0),
    Panel("Is less said?", {"mentions": "audit/mentions_per_answer", "claims": "audit/claims_per_answer"}),
    Panel(
        "Answers of which nothing is judged",
        {"unscored": "audit/unscored_rate", "no claims": "audit/no_claims_rate"},
        percent=True,
    ),
    Panel("Distance from the start (KL, nats a token)", {"Solver": "solver/kl", "Checker": "checker/kl"}),
    Panel("Length (tokens)", {"Solver": "solver/response_length", "Checker": "checker/response_length"}),
    Panel("Trajectories trained a step", {"Solver": "solver/num_trained", "Checker": "checker/num_trained"}),
)

Ends = Mapping[str, tuple[Estimate, Estimate]]


def draw_curves(steps: Sequence[Mapping[str, float]], path: Path, *, ends: Ends) -> None:
    """Writes the PNG of a run; raises `ValueError` when there is no step to draw.

    Args:
        steps: Rows of `steps.jsonl`; a metric that a step lacks leaves a gap.
        path: The PNG.
        ends: Held-out estimates before and after, by the key of the line that they belong to.
    """
    if not steps:
        raise ValueError("steps: there is no finished step, so no curve to draw; train first")
    with plt.style.context(["petroff10", _STYLE]):
        figure, places = plt.subplot_mosaic(_PLACES, figsize=(13, 9.6), layout="constrained")
        for axes, panel in zip(places.values(), PANELS, strict=True):
            _draw_panel(axes, panel, steps, ends)
        figure.supxlabel("PPO step        \u25c6 held-out rows before and after, with 95% intervals", size=10)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _draw_panel(axes: Any, panel: Panel, steps: Sequence[Mapping[str, float]], ends: Ends) -> None:
    axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold")
    x = [row["step"] for row in steps]
    for place, (label, key) in enumerate(panel.lines.items()):
        y = [row.get(key, float("nan")) for row in steps]
        (line,) = axes.plot(x, y, label=label, linewidth=1.8, linestyle="--" if place else "-")
        beside = (1 + 1.5 * place) * 0.02 * x[-1]  # a diamond is beside the curve, not on it
        for at, estimate in zip((-beside, x[-1] + beside), ends.get(key, ()), strict=False):
            reach = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
            style = {"color": line.get_color(), "fmt": "D", "markersize": 7, "markeredgecolor": "white"}
            axes.errorbar(at, estimate.value, yerr=reach, capsize=2.5, clip_on=False, zorder=3, **style)
    if not any(key in row for row in steps for key in panel.lines.values()):
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center")
    least = _LEAST_TOP_PERCENT if panel.percent else _LEAST_TOP
    # From zero, so that a small change looks small.
    axes.set_ylim(0, 1.02 * (panel.top or max(float(axes.get_ylim()[1]), least)))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    if panel.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    axes.legend()
