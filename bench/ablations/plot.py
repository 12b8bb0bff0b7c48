"""The differences with their intervals as one SVG: a row a comparison, on the claimed side of 0 or not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from bench.ablations.compare import Finding

# Near the Okabe-Ito palette, which most colour-blind people can tell apart.
_COLOURS = {"yes": "#00805A", "no": "#C44E00", "undecided": "#6B7280"}
_PENDING, GRID, INK = "#B6BBC4", "#E5E7EB", "#1F2937"
STYLE = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "march", "svg.fonttype": "none"}


def draw(findings: Sequence[Finding], path: Path) -> None:
    """Writes the plot; equal findings give equal bytes. Comparisons without a seed stay as empty rows."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(10, 0.38 * len(findings) + 1.2), layout="constrained")
        for place, finding in enumerate(findings):
            _draw_row(axes, len(findings) - place, finding)
        axes.axvline(0, color=INK, linewidth=1)
        labels = [f"{one.comparison.question}: {one.verdict}" for one in findings]
        axes.set_yticks(range(len(findings), 0, -1), labels)
        said = "difference in points (questions: in hundredths) with 95% interval; dots are seeds"
        figure.supxlabel(said, fontsize="medium")  # centred below the labels, too
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.tick_params(left=False)
        axes.grid(axis="x", color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Writes a picture without the time and the version, so that equal figures give equal bytes."""
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def _draw_row(axes: Any, y: int, finding: Finding) -> None:
    colour = _COLOURS.get(finding.verdict, _PENDING)
    points = [100 * difference for difference in finding.differences]
    axes.plot(points, [y] * len(points), ".", color=colour, alpha=0.5)
    if finding.interval is None:
        return
    axes.plot([100 * finding.interval.low, 100 * finding.interval.high], [y, y], color=colour, linewidth=2)
    axes.plot([100 * finding.interval.value], [y], "D", color=colour, markersize=6)
