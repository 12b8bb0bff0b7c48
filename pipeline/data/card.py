"""The data card of prepared rows: what they are made of, beside the paper's Table 1, as Markdown.

It is made from the manifest alone, so the same rows give the same card.
"""

from collections.abc import Sequence

from pipeline.data.prepare import REMOVED_FILE, Manifest
from pipeline.data.sources import SOURCES
from pipeline.data.statistics import PAPER, SourceStatistics, Spread

_HEADINGS = (
    "Dataset",
    "Rows",
    "Query words",
    "Documents",
    "Document words",
    "Document characters",
    "Irrelevant",
    "Prompt tokens",
)
_EVALUATION_HEADINGS = ("Evaluation set", "Queries", "Questions", "Instructions", "Documents")
_PAPER_NOTE = (
    "The paper's row of each dataset is below ours; means a query, with least to most in brackets. Its "
    "lengths of MuSiQue, headed as words, are as large as those in characters here, and its irrelevant share "
    "of 2WikiMultiHopQA is as large as the relevant share by its supporting facts."
)
Rows = Sequence[tuple[str, ...]]


def render_card(manifest: Manifest) -> str:
    """The text of the card: our statistics by source, each with the paper's below it, and what follows."""
    rows: list[tuple[str, ...]] = []
    for statistics in manifest.statistics:
        rows.append(_ours(statistics))
        rows += [_papers(statistics.source)] if statistics.source in PAPER else []
    removed = [(reason.replace("_", " "), f"{num:,}") for reason, num in manifest.removed.items()]
    made_of = [(SOURCES[file.source].title, file.name, file.licence, file.sha256) for file in manifest.inputs]
    unused = [
        (SOURCES[one.source].title, key, f"{num:,}")
        for one in manifest.statistics
        for key, num in one.unused_keys.items()
    ]
    apart = [
        (one.dataset, *(f"{getattr(one, f'num_{kind.lower()}'):,}" for kind in _EVALUATION_HEADINGS[1:]))
        for one in manifest.evaluation_sets
    ]
    settings = {
        "tokenizer": manifest.tokenizer,
        "max prompt tokens": manifest.max_prompt_tokens,
        "prompts": manifest.prompt_digest,
        "rows": manifest.rows_sha256,
    } | {name.replace("_", " "): value for name, value in manifest.choices.model_dump(mode="json").items()}
    read = f"{manifest.num_rows:,} rows of {manifest.num_read:,} read."
    lines = ["# Data card", "", read, "", *_table(_HEADINGS, rows), "", _PAPER_NOTE]
    lines += _section("Left out", ("Why", "Rows"), removed)
    lines += ["", f"Each with its reason and match in `{REMOVED_FILE}`."]
    lines += _section("Keys that are not used", ("Source", "Key", "Rows"), unused)
    lines += _section("Made of", ("Source", "File", "Licence", "SHA-256"), made_of)
    lines += _section("Kept apart from", _EVALUATION_HEADINGS, apart)
    shown = [(name, str(value)) for name, value in settings.items()]
    return "\n".join([*lines, *_section("Settings", ("Setting", "Value"), shown)]) + "\n"


def _section(heading: str, headings: tuple[str, ...], rows: Rows) -> list[str]:
    """A table with its heading; nothing without rows."""
    return ["", f"## {heading}", "", *_table(headings, rows)] if rows else []


def _ours(statistics: SourceStatistics) -> tuple[str, ...]:
    ratio = statistics.irrelevant_ratio
    return (
        SOURCES[statistics.source].title,
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


def _table(headings: tuple[str, ...], rows: Rows) -> list[str]:
    lines = [headings, ("---",) * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
