"""The data card of prepared rows: what they are made of, beside the paper's Table 1; Markdown and HTML.

It is made from the manifest alone, so the same rows give the same card. The HTML page is safe to open and
draws its plots itself (`reward/offline/page.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.atomic import write_atomically
from pipeline.data.prepare import REMOVED_FILE, Manifest
from pipeline.data.sources import SOURCES
from pipeline.data.statistics import PAPER, SourceStatistics, Spread, bin_of, bin_start
from reward.offline.page import render_page

CARD_MARKDOWN, CARD_HTML = "data_card.md", "data_card.html"
HEADINGS = (
    "Dataset",
    "Rows",
    "Query words",
    "Documents",
    "Document words",
    "Document characters",
    "Irrelevant",
    "Prompt tokens",
)
EVALUATION_HEADINGS = ("Evaluation set", "Queries", "Questions", "Instructions", "Documents")
PAPER_NOTE = (
    "The paper's row of each dataset is below ours; means a query, with least to most in brackets. Its "
    "lengths of MuSiQue, headed as words, are as large as those in characters here, and its irrelevant share "
    "of 2WikiMultiHopQA is as large as the relevant share by its supporting facts."
)
_TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True)
class Section:
    """A table with its heading."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram, in thousandths of its width and height."""

    left: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Plot:
    """One histogram."""

    title: str
    bars: tuple[Bar, ...]
    first: str
    last: str
    paper: float | None  # where the paper's mean lies, in thousandths of the width


def write_card(manifest: Manifest, folder: Path) -> list[Path]:
    """Writes both forms beside the rows; returns their paths."""
    markdown, html = folder / CARD_MARKDOWN, folder / CARD_HTML
    write_atomically(markdown, render_markdown(manifest))
    write_atomically(html, render_html(manifest))
    return [markdown, html]


def table(manifest: Manifest) -> list[tuple[str, ...]]:
    """Our statistics by source, each with the paper's below it where it has some."""
    rows: list[tuple[str, ...]] = []
    for statistics in manifest.statistics:
        rows.append(_ours(statistics))
        if statistics.source in PAPER:
            rows.append(_papers(statistics.source))
    return rows


def render_markdown(manifest: Manifest) -> str:
    """The card as Markdown."""
    lines = ["# Data card", "", f"{manifest.num_rows:,} rows of {manifest.num_read:,} read.", ""]
    lines += _markdown_table(HEADINGS, table(manifest))
    lines += ["", PAPER_NOTE]
    for section in sections(manifest):
        lines += ["", f"## {section.title}", "", *_markdown_table(section.headings, section.rows)]
        if section.note:
            lines += ["", section.note.replace(REMOVED_FILE, f"`{REMOVED_FILE}`")]
    return "\n".join(lines) + "\n"


def render_html(manifest: Manifest) -> str:
    """The card as a page."""
    return render_page(
        "data_card.html",
        folder=_TEMPLATES,
        style=_STYLE,
        manifest=manifest,
        headings=HEADINGS,
        rows=table(manifest),
        note=PAPER_NOTE,
        sections=sections(manifest),
        plots=[(title(one.source), plots(one)) for one in manifest.statistics if one.num_rows],
    )


def sections(manifest: Manifest) -> list[Section]:
    """The tables below the statistics; without those that have no rows."""
    removed = [(reason.replace("_", " "), f"{num:,}") for reason, num in manifest.removed.items()]
    made_of = [(title(file.source), file.name, file.licence, file.sha256) for file in manifest.inputs]
    apart = [
        (one.dataset, *(f"{getattr(one, f'num_{kind.lower()}'):,}" for kind in EVALUATION_HEADINGS[1:]))
        for one in manifest.evaluation_sets
    ]
    settings = {
        "tokenizer": manifest.tokenizer,
        "max prompt tokens": manifest.max_prompt_tokens,
        "prompts": manifest.prompt_digest,
        "rows": manifest.rows_sha256,
    } | {name.replace("_", " "): value for name, value in manifest.choices.model_dump(mode="json").items()}
    made = (
        Section("Left out", ("Why", "Rows"), removed, f"Each with its reason and match in {REMOVED_FILE}."),
        Section("Made of", ("Source", "File", "Licence", "SHA-256"), made_of),
        Section("Kept apart from", EVALUATION_HEADINGS, apart),
        Section("Settings", ("Setting", "Value"), [(name, str(value)) for name, value in settings.items()]),
    )
    return [section for section in made if section.rows]


def plots(statistics: SourceStatistics) -> list[Plot]:
    """The histograms of one source, each with the paper's mean where it has one."""
    paper = PAPER.get(statistics.source)
    drawn = [
        _plot("Query words", statistics.query_words, paper.query_words if paper else None),
        _plot("Documents", statistics.num_documents, paper.num_documents[0] if paper else None),
        _plot("Document words", statistics.document_words, paper.document_words[0] if paper else None),
    ]
    if statistics.prompt_tokens is not None:
        drawn.append(_plot("Prompt tokens", statistics.prompt_tokens, None))
    return drawn


def title(source: str) -> str:
    """A source's full name."""
    return SOURCES[source].title if source in SOURCES else source


def _plot(name: str, spread: Spread, paper: float | None) -> Plot:
    places = [*spread.histogram, *([] if paper is None else [bin_of(paper)])]
    first, num_bins = min(places), max(places) - min(places) + 1
    most = max(spread.histogram.values())
    bars = tuple(
        Bar(
            left=round(1000 * (place - first) / num_bins, 1),
            width=round(1000 / num_bins, 1),
            height=round(1000 * num / most, 1),
            label=f"{bin_start(place):,.0f} to {bin_start(place + 1):,.0f}: {num:,} rows",
        )
        for place, num in spread.histogram.items()
    )
    at = None if paper is None else round(1000 * (bin_of(paper) + 0.5 - first) / num_bins, 1)
    ends = (bin_start(first), bin_start(first + num_bins))
    return Plot(name, bars, first=f"{ends[0]:,.0f}", last=f"{ends[1]:,.0f}", paper=at)


def _ours(statistics: SourceStatistics) -> tuple[str, ...]:
    ratio = statistics.irrelevant_ratio
    return (
        title(statistics.source),
        f"{statistics.num_rows:,}",
        f"{statistics.query_words.mean:.2f}",
        _spread(statistics.num_documents),
        _spread(statistics.document_words),
        _spread(statistics.document_chars),
        "not given" if ratio is None else f"{ratio:.1%}",
        "not counted" if statistics.prompt_tokens is None else _spread(statistics.prompt_tokens),
    )


def _papers(source: str) -> tuple[str, ...]:
    paper = PAPER[source]
    return (
        f"paper, {paper.dataset}",
        f"{paper.num_rows:,}",
        f"{paper.query_words:.2f}",
        _triple(*paper.num_documents),
        _triple(*paper.document_words),
        "",
        f"{paper.irrelevant_ratio:.1%}",
        "",
    )


def _spread(spread: Spread) -> str:
    return _triple(spread.mean, spread.max, spread.min)


def _triple(mean: float, most: int, least: int) -> str:
    return f"{mean:,.2f} ({least:,} to {most:,})"


def _markdown_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [headings, ("---",) * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


_STYLE = """
.wide { overflow-x: auto; }
.paper td { color: var(--soft); font-style: italic; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: 1rem; }
.plots figure { margin: 0; padding: .9rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .8rem; }
.plots svg { display: block; width: 100%; height: 7rem; }
.plots rect { fill: var(--accent); }
.plots line { stroke: var(--bad-fill); stroke-width: 2; stroke-dasharray: 6 4;
  vector-effect: non-scaling-stroke; }
.plots .ends { display: flex; justify-content: space-between; }
td.digest { font-family: ui-monospace, monospace; font-size: .8rem; overflow-wrap: anywhere; }
"""
