"""The differences with their intervals as one SVG: a row a comparison, on the claimed side of 0 or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from bench.ablations.compare import Finding

# Near the Okabe-Ito palette, which most colour-blind people can tell apart.
_COLOURS = {"yes": "#00805A", "no": "#C44E00", "undecided": "#6B7280"}
_PENDING, _GRID = "#B6BBC4", "#E5E7EB"
_STYLE = {"font.family": "DejaVu Sans", "font.size": 10, "svg.hashsalt": "march", "svg.fonttype": "none"}


def draw(findings: Sequence[Finding], path: Path) -> None:
    """Writes the plot; equal findings give equal bytes. Comparisons without a seed stay as empty rows."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(10, 0.38 * len(findings) + 1.2), layout="constrained")
        for place, finding in enumerate(findings):
            _draw_row(axes, len(findings) - place, finding)
        axes.axvline(0, color="#1F2937", linewidth=1)
        axes.set_yticks(
            range(len(findings), 0, -1), [f"{f.comparison.question}: {f.verdict}" for f in findings]
        )
        said = "difference in points (questions: in hundredths) with 95% interval; dots are seeds"
        figure.supxlabel(said, fontsize="medium")  # centred below the labels, too
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.tick_params(left=False)
        axes.grid(axis="x", color=_GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def _draw_row(axes: Any, y: int, finding: Finding) -> None:
    colour = _COLOURS.get(finding.verdict, _PENDING)
    axes.plot(
        [100 * d for d in finding.differences], [y] * len(finding.differences), ".", color=colour, alpha=0.5
    )
    if finding.interval is None:
        return
    low, value, high = (
        100 * x for x in (finding.interval.low, finding.interval.value, finding.interval.high)
    )
    axes.plot([low, high], [y, y], color=colour, linewidth=2)
    axes.plot([value], [y], "D", color=colour, markersize=6)
