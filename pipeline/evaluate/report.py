"""The page of an evaluation: one HTML file with its figures, what changed, and the paper's tables.

It is made of the parts of the audit's page and as safe to open (`reward/offline/page.py`): no network, no
script, and whatever a model or a judge wrote is text. The same evaluation gives the same bytes. Items are
looked at in Inspect's viewer, to which it links.

The paper's figures come from other judges, prompts and selections of items, so they are shown as data with
their source (`paper.yaml`), are not subtracted from ours, and have no common column with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from pipeline.evaluate.compare import Comparison, figure_lines
from pipeline.evaluate.results import Manifest
from pipeline.evaluate.statistics import OVERALL, Figure
from pipeline.evaluate.terminal import agreement_in_words, percent
from reward.offline.page import render_page

_TEMPLATES, _PAPER = Path(__file__).with_name("templates"), Path(__file__).with_name("paper.yaml")


def load_paper() -> list[dict[str, Any]]:
    """The paper's tables, as `paper.yaml` explains them."""
    return list(yaml.safe_load(_PAPER.read_text(encoding="utf-8"))["tables"])


def beside_paper(manifest: Manifest, lines: Sequence[Mapping[str, str]]) -> list[Figure | None]:
    """What an evaluation has on a table's lines; a mean of the lines above has no interval."""
    found: list[Figure | None] = []
    for line in lines:
        if "benchmark" in line:
            one = manifest.measured.get(line["benchmark"])
            scores = one.estimates.get(line.get("slice", OVERALL), {}) if one else {}
            found.append(scores.get(one.card.primary) if one else None)
        else:
            values = [one.value for one in found if one and one.value is not None]
            is_whole = len(values) == len(found)
            found.append(Figure(value=fmean(values), interval=None) if is_whole else None)
    return found


def render_report(
    manifest: Manifest, comparison: Comparison | None = None, *, log_dir: str = "", viewer: str = ""
) -> str:
    """Returns the page.

    Args:
        manifest: The evaluation's figures.
        comparison: What is different from another evaluation.
        log_dir: Of the judged logs, for `inspect view`.
        viewer: Address of the bundled logs, from the page.
    """
    paper = []
    for table in load_paper():
        groups = groupby(table["columns"], lambda column: column["group"])
        headings = [(name, len(list(columns))) for name, columns in groups]
        if any(ours := beside_paper(manifest, table["lines"])):
            paper.append((table, headings, ours))
    return render_page(
        "evaluation.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "evaluation.css").read_text(encoding="utf-8"),
        script="",
        manifest=manifest,
        comparison=comparison,
        lines=[line for line in figure_lines(manifest, comparison) if line.is_shown],
        paper=paper,
        percent=percent,
        in_words=agreement_in_words,
        overall=OVERALL,
        log_dir=log_dir,
        viewer=viewer,
        settings=json.dumps(manifest.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )
