"""The page of an evaluation: one HTML file with its figures, the paper's tables, and items to look through.

It is made of the parts of the audit's page and as safe to open (`reward/offline/page.py`): no network, and
whatever a model or a judge wrote is text. The same evaluation gives the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.evaluate.compare import Comparison
from pipeline.evaluate.manifest import BenchmarkFigures, Manifest, read_all_results
from pipeline.evaluate.paper import beside_paper
from pipeline.evaluate.plan import EvaluationJob, MakeBenchmark, make_plan
from pipeline.evaluate.report_items import Pair, items_data, state_of
from pipeline.evaluate.statistics import OVERALL, Estimate, PairedDifference
from pipeline.evaluate.terminal import agreement_in_words, percent, signed
from reward.offline.files import replace_file
from reward.offline.page import render_page, stacked_bar
from reward.types import Outcome

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BINS = 17  # of the histogram of votes


@dataclass(frozen=True)
class Line:
    """One line of the table of figures."""

    name: str
    slice: str
    is_overall: bool
    estimate: Estimate
    difference: PairedDifference | None


@dataclass(frozen=True)
class Bar:
    """A part of a histogram's column: how many items of a state have this share of passed answers."""

    share: float
    num_items: int
    top: float  # of 100, from above
    height: float
    state: str


@dataclass(frozen=True)
class Shown:
    """One benchmark of the page."""

    name: str
    figures: BenchmarkFigures
    lines: Sequence[Line]
    bars: Sequence[Bar]
    audits: dict[str, int]  # answers by the outcome of their audit
    audit_bar: Sequence[tuple[str, float, float]]
    agreement: str


def write_report(
    path: Path, job: EvaluationJob, make: MakeBenchmark, manifest: Manifest, comparison: Comparison | None
) -> None:
    """Writes the page of an evaluation that is whole.

    Args:
        path: The page.
        job: The evaluation; its items are read again.
        make: A benchmark by its name.
        manifest: Its figures.
        comparison: What is different from another evaluation.
    """
    results = read_all_results(job.out, manifest)
    planned = {one.name: one for one in make_plan(job, make).benchmarks}
    pairs = {name: list(zip(planned[name].items, results[name], strict=True)) for name in manifest.benchmarks}
    replace_file(path, render_report(manifest, pairs, comparison))


def render_report(
    manifest: Manifest, pairs: dict[str, list[Pair]], comparison: Comparison | None = None
) -> str:
    """Returns the page."""
    primary = {name: one.card.primary for name, one in manifest.benchmarks.items()}
    shown = [_shown(name, one, pairs[name], comparison) for name, one in manifest.benchmarks.items()]
    slices = sorted({item.slice for part in pairs.values() for item, _ in part})
    return render_page(
        "evaluation.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "evaluation.css").read_text(encoding="utf-8"),
        script=(_TEMPLATES / "evaluation.js").read_text(encoding="utf-8"),
        manifest=manifest,
        comparison=comparison,
        shown=shown,
        slices=slices,
        paper=beside_paper(manifest),
        num_items=sum(len(part) for part in pairs.values()),
        percent=percent,
        signed=signed,
        overall=OVERALL,
        outcomes=list(Outcome),
        data=items_data(pairs, primary),
        settings=json.dumps(manifest.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )


def _shown(name: str, one: BenchmarkFigures, pairs: Sequence[Pair], comparison: Comparison | None) -> Shown:
    outcomes = Counter(
        found.verdict.outcome.value for _, result in pairs for found in result.generations if found.verdict
    )
    audits = {outcome.value: outcomes[outcome.value] for outcome in Outcome}
    return Shown(
        name=name,
        figures=one,
        lines=_lines(name, one, comparison),
        bars=_bars(one, pairs),
        audits=audits,
        audit_bar=stacked_bar(audits),
        agreement=agreement_in_words(one.agreement[OVERALL]) if one.agreement else "",
    )


def _lines(name: str, one: BenchmarkFigures, comparison: Comparison | None) -> list[Line]:
    differences = comparison.benchmarks.get(name, {}) if comparison else {}
    slices = [OVERALL, *(sorted(one.estimates.keys() - {OVERALL}) if len(one.estimates) > 2 else ())]
    return [
        Line(name, part, part == OVERALL, one.estimates[part][one.card.primary], differences.get(part))
        for part in slices
        if one.card.primary in one.estimates[part]
    ]


def _bars(one: BenchmarkFigures, pairs: Sequence[Pair]) -> list[Bar]:
    """How many items have which share of passed answers, of those that were judged."""
    counts: Counter[tuple[float, str]] = Counter()
    for _, result in pairs:
        judged = [found.judgement.passed for found in result.generations if found.judgement]
        if judged:
            share = round(sum(judged) / len(judged) * (_MOST_BINS - 1)) / (_MOST_BINS - 1)
            counts[share, state_of(result, one.card.primary)] += 1
    columns: Counter[float] = Counter()
    for (share, _), number in counts.items():
        columns[share] += number
    if one.is_calibration or len(columns) < 2:
        return []
    unit, tops = 100 / max(columns.values()), dict.fromkeys(columns, 100.0)
    found = []
    for (share, state), number in sorted(counts.items()):
        tops[share] -= unit * number
        found.append(Bar(share, number, round(tops[share], 2), round(unit * number, 2), state))
    return found
