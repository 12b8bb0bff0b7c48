"""The page of an evaluation: one HTML file with its figures, what changed, and the paper's tables.

It is made of the parts of the audit's page and as safe to open (`reward/offline/page.py`): no network, no
script, and whatever a model or a judge wrote is text. The same evaluation gives the same bytes. Items are
looked at in Inspect's viewer, to which it links.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.evaluate.compare import Comparison
from pipeline.evaluate.manifest import BenchmarkFigures, Manifest
from pipeline.evaluate.paper import beside_paper
from pipeline.evaluate.statistics import OVERALL, Estimate, PairedDifference
from pipeline.evaluate.terminal import agreement_in_words, percent, signed, slices_of
from reward.offline.files import replace_file
from reward.offline.page import render_page

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Line:
    """One line of the table of figures."""

    slice: str
    estimate: Estimate
    difference: PairedDifference | None

    @property
    def is_overall(self) -> bool:
        return self.slice == OVERALL


@dataclass(frozen=True)
class Shown:
    """One benchmark of the page."""

    figures: BenchmarkFigures
    lines: Sequence[Line]
    agreement: str


def write_report(
    path: Path, manifest: Manifest, comparison: Comparison | None = None, *, log_dir: str, viewer: str = ""
) -> None:
    """Writes the page.

    Args:
        path: The page.
        manifest: The evaluation's figures.
        comparison: What is different from another evaluation.
        log_dir: Of the judged logs, for `inspect view`.
        viewer: Address of the bundled logs, from the page.
    """
    replace_file(path, render_report(manifest, comparison, log_dir=log_dir, viewer=viewer))


def render_report(
    manifest: Manifest, comparison: Comparison | None = None, *, log_dir: str = "", viewer: str = ""
) -> str:
    """Returns the page."""
    return render_page(
        "evaluation.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "evaluation.css").read_text(encoding="utf-8"),
        script="",
        manifest=manifest,
        comparison=comparison,
        shown=[_shown(name, one, comparison) for name, one in manifest.benchmarks.items()],
        paper=beside_paper(manifest),
        num_items=sum(one.counts.num_items for one in manifest.benchmarks.values()),
        percent=percent,
        signed=signed,
        overall=OVERALL,
        log_dir=log_dir,
        viewer=viewer,
        settings=json.dumps(manifest.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )


def _shown(name: str, one: BenchmarkFigures, comparison: Comparison | None) -> Shown:
    changes = comparison.benchmarks.get(name, {}) if comparison else {}
    primary = {part: one.estimates[part].get(one.card.primary) for part in slices_of(one)}
    lines = [Line(part, found, changes.get(part)) for part, found in primary.items() if found]
    return Shown(one, lines, agreement_in_words(one.agreement[OVERALL]) if one.agreement else "")
