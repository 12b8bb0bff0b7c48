"""What a person reads of an evaluation: tables in the terminal, and a page.

The page is one HTML file, made of the parts of the audit's page and as safe to open
(`reward/offline/page.py`): no network, no script, and whatever a model or a judge wrote is text. The same
evaluation gives the same bytes. Items are looked at in Inspect's viewer.

The paper's figures come from other judges, prompts and selections of items, so they are shown as data with
their source (`PAPER` explains them), are not subtracted from ours, and have no common column with them.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

import yaml
from rich.console import Console
from rich.text import Text

from pipeline.evaluate.compare import MAX_MISSING, Choice, Comparison, figure_lines
from pipeline.evaluate.plan import PlannedBenchmark, expect
from pipeline.evaluate.results import Manifest
from pipeline.statistics import OVERALL, Estimate, Figure, PairedDifference
from reward.offline.page import render_page
from reward.offline.terminal import plain_table

_TEMPLATES, PAPER = Path(__file__).with_name("templates"), Path(__file__).with_name("paper.yaml")


def print_expected(
    planned: Sequence[PlannedBenchmark], prices: Sequence[tuple[float, float]], console: Console
) -> None:
    """Prints what an evaluation asks, and what it will cost.

    `prices` are of a million read and written tokens, of the model and of the judge.
    """
    table = plain_table("To be asked", "benchmark", "items", "answers", "tokens", "verdicts", "judge tokens")
    cost = 0.0
    for one in planned:
        cells = [f"{len(one.asked):,}"]
        for asked, (read, written) in zip(expect(one), prices, strict=True):
            cost += (asked.num_read * read + asked.num_written * written) / 1_000_000
            cells += [f"{asked.number:,}", f"{asked.num_read:,} + {asked.num_written:,}"]
        table.add_row(one.name, *cells)
    said = "Tokens: prompts, of four characters each, + what is written, of assumed length."
    if cost:
        said += f"\nAbout {cost:,.2f} by the given prices; retries of the judge come on top."
    console.print(table, Text(said, style="dim"), sep="\n")


def print_manifest(manifest: Manifest, comparison: Comparison | None, console: Console) -> None:
    """Prints the figures, what changed since another evaluation, and what to hold against them."""
    figures = plain_table("Figures", "benchmark", "score", "value", "95% interval", "n", "unscored")
    title = f"Compared with {comparison.name} ({comparison.model})" if comparison else ""
    changes = plain_table(title, "benchmark", "before", "now", "difference", "95% interval", "n")
    for one in (line for line in figure_lines(manifest, comparison) if line.is_shown):
        label, score = (one.benchmark, one.score) if one.is_overall else (f"  {one.slice}", "")
        figures.add_row(label, score, *_cells(one.figure))
        if one.change:
            paired = one.change if isinstance(one.change, PairedDifference) else None  # else an average
            sides = [percent(paired.baseline), percent(paired.candidate)] if paired else ["", ""]
            changes.add_row(label, *sides, *_cells(one.change, "+")[:3])
    console.print(figures, Text("\n".join(manifest.warnings), style="yellow"), sep="\n")
    if comparison is not None:
        console.print(changes)


def print_choice(choice: Choice, console: Console) -> None:
    """Prints the averages of all checkpoints, the best one, and how far the others are behind."""
    header = ("checkpoint", "average", "95% interval", "behind", "95%")
    table = plain_table("Average over the benchmarks", *header)
    for name, one in choice.averages.items():
        share, gap = choice.missing[name], choice.behind.get(name)
        doubt = f" ({percent(share)}% missing)" if share > MAX_MISSING else ""
        label = Text(name + doubt, style="bold" if name == choice.best else "")
        table.add_row(label, *_cells(one)[:2], *(_cells(gap)[:2] if gap else ()))
    console.print(table, Text("\n".join(_said(choice))), sep="\n")
    console.print(Text(choice.averages[choice.best].warning, style="yellow"))


def _said(choice: Choice) -> list[str]:
    excluded = [name for name, share in choice.missing.items() if share > MAX_MISSING]
    gaps = {name: gap.interval for name, gap in choice.behind.items()}
    worse = [name for name, gap in gaps.items() if gap is not None and gap.high < 0]
    near = [name for name, gap in gaps.items() if gap is None or gap.low <= 0]
    lines = {
        "Cannot be distinguished from it": [name for name in near if name not in {*worse, *excluded}],
        f"Not chosen, since more than {MAX_MISSING:.0%} is missing": excluded,
        "On the items that both have it is worse than": worse,
    }
    said = [f"Best: {choice.best}"]
    said += [f"{line}: {', '.join(names)}" for line, names in lines.items() if names]
    said.append("The best of several is partly the luckiest: measure it again before you report its figure.")
    return said


def percent(value: float | None, sign: str = "") -> str:
    """A share in percent, or a difference in points where `sign` is "+"; a dash where there is none."""
    return "-" if value is None else f"{100 * value:{sign}.1f}"


def _cells(figure: Figure, sign: str = "") -> list[str]:
    """A figure, its interval, and how many items have it and have it not; an average is not over items."""
    near = figure.interval
    interval = f"{100 * near.low:.1f} to {100 * near.high:.1f}" if near else ""
    counts = [figure.num_items, figure.num_unscored] if isinstance(figure, Estimate) else []
    return [percent(figure.value, sign), interval, *(f"{n:,}" for n in counts)]


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

    `log_dir` is that of the judged logs, for `inspect view`; `viewer` where they are bundled, from the page.
    """
    paper = []
    for table in yaml.safe_load(PAPER.read_text(encoding="utf-8"))["tables"]:
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
        overall=OVERALL,
        log_dir=log_dir,
        viewer=viewer,
        settings=json.dumps(manifest.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )
