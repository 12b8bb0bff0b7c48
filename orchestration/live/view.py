"""What `march serve` shows in a terminal: a snapshot as a rich renderable; pure.

Blocks stand beside each other, as many as the width takes, and what the height does not take is left out from
the end: engines, then warnings, then blocks. Nothing wraps. Every line is composed here, since rich's tables
and panels take five times as long, four times a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.text import Text

from orchestration.live.figures import STAGES, Estimate, Figures
from reward.offline.excerpt import printable
from reward.offline.terminal import STYLES
from reward.samplers import EngineState, EngineStatus
from reward.types import Outcome

READY = "ready"
_BLOCK_WIDTH = 29  # the narrowest
_BORDERS = 2  # lines of a block
_SIDES = 4  # columns of a block
_MOST_REASONS = 3
_MOST_WARNINGS = 8
_BARS = "▁▂▃▄▅▆▇█"
_DOTS = {EngineState.READY: "green", EngineState.FAILING: "red", EngineState.UNKNOWN: "yellow"}
_FRAME = "dim"
Row = tuple[str | Text, ...]  # what stands on the left, then cells on the right


@dataclass(frozen=True)
class Warned:
    """A line of the log that a person should see."""

    time: str
    level: str
    text: str


@dataclass(frozen=True)
class Snapshot:
    """All that is shown at one moment."""

    url: str
    sampler: str  # kind
    model: str
    uptime_s: float
    readiness: str  # READY, or why not
    figures: Figures
    engines: Sequence[EngineStatus] = ()
    max_in_flight: int = 0
    max_waiting: int = 0
    warnings: Sequence[Warned] = ()  # the latest last


@dataclass(frozen=True)
class _Block:
    """A small table with a title; the first column is on the left, the others on the right."""

    title: str
    rows: Sequence[Row]


def render(snapshot: Snapshot, *, width: int, height: int) -> Text:
    """The view, at most so many columns and lines large."""
    parts = [_header(snapshot, width), [_speed(snapshot, width)], *_blocks(snapshot, width)]
    left = height - sum(map(len, parts))
    if snapshot.warnings and left > _BORDERS:
        shown = snapshot.warnings[-min(_MOST_WARNINGS, left - _BORDERS) :]
        parts.append(_framed("warnings", [_warning(one, width) for one in shown], width))
        left -= len(parts[-1])
    if len(snapshot.engines) > 1 and left > _BORDERS:
        rows = [_engine(one) for one in snapshot.engines[: left - _BORDERS]]
        parts.append(_framed("engines", _aligned(rows, width - _SIDES), width))
    while sum(map(len, parts)) > height:
        parts.pop()
    text = Text("\n").join(line for part in parts for line in part)
    text.no_wrap, text.overflow = True, "crop"
    return text


def sparkline(values: Sequence[float], width: int) -> str:
    """The last values as bars, the highest of them a full one."""
    shown = values[-width:] if width > 0 else ()
    top = max(shown, default=0)
    if top <= 0:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in shown)


def _header(snapshot: Snapshot, width: int) -> list[Text]:
    is_ready = snapshot.readiness == READY
    state = Text.assemble(("● ", "green" if is_ready else "yellow"), snapshot.readiness.replace("_", " "))
    told = [name for name in (snapshot.sampler, snapshot.model) if name]
    if snapshot.figures.weights_version is not None:
        told.append(f"weights {snapshot.figures.weights_version:,}")
    if snapshot.engines:
        num_up = sum(engine.state is EngineState.READY for engine in snapshot.engines)
        told.append(f"{num_up} of {len(snapshot.engines)} engines ready")
    return [
        _apart(Text.assemble(("march serve  ", "bold"), (snapshot.url, "cyan")), state, width),
        _apart(Text(printable(" · ".join(told))), Text(f"up {_clock(snapshot.uptime_s)}"), width),
    ]


def _speed(snapshot: Snapshot, width: int) -> Text:
    short, long = snapshot.figures.audits_per_s
    text = Text.assemble((f"{short:,.1f}", "bold"), " audits/s last 10 s", ("  ·  ", "dim"))
    text.append(f"{long:,.1f} last minute  ")
    text.append(sparkline(snapshot.figures.each_second, width - text.cell_len), style="cyan")
    text.truncate(width)
    return text


def _blocks(snapshot: Snapshot, width: int) -> list[list[Text]]:
    """The blocks' lines, with one, two or four blocks beside each other."""
    figures = snapshot.figures
    blocks = [_outcomes(figures), _latency(figures), _load(snapshot), _votes(figures)]
    num = next(n for n in (4, 2, 1) if n == 1 or width // n >= _BLOCK_WIDTH)
    return [_beside(blocks[i : i + num], width) for i in range(0, len(blocks), num)]


def _beside(blocks: Sequence[_Block], width: int) -> list[Text]:
    num_rows = max(len(block.rows) for block in blocks)
    columns = []
    for i, block in enumerate(blocks):
        own = width * (i + 1) // len(blocks) - width * i // len(blocks)
        rows = [*block.rows, *[("",)] * (num_rows - len(block.rows))]
        columns.append(_framed(block.title, _aligned(rows, own - _SIDES), own))
    return [Text.assemble(*line) for line in zip(*columns, strict=True)]


def _aligned(rows: Sequence[Row], width: int) -> list[Text]:
    """Rows as lines: what stands on the left gives way to columns that are flush on the right."""
    cells = [[Text.assemble(cell) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip_longest(*cells, fillvalue=Text())]
    lines = []
    for left, *others in cells:
        right = Text()
        for cell, own in zip(others, widths[1:], strict=False):
            right.append(" " * (own - cell.cell_len + bool(right))).append_text(cell)
        lines.append(_apart(left, right, width))
    return lines


def _framed(title: str, lines: Sequence[Text], width: int) -> list[Text]:
    rule = "─" * (width - len(title) - 5)
    framed = [Text.assemble(("╭─ ", _FRAME), (title, "bold"), (f" {rule}╮", _FRAME))]
    framed += [Text.assemble(("│ ", _FRAME), line, (" │", _FRAME)) for line in lines]
    return [*framed, Text(f"╰{'─' * (width - 2)}╯", style=_FRAME)]


def _apart(left: Text, right: Text, width: int) -> Text:
    """A line with something at both ends; the left one gives way."""
    left.truncate(max(width - right.cell_len - bool(right), 0), overflow="ellipsis", pad=True)
    return Text.assemble(left, " " * bool(right), right)


def _outcomes(figures: Figures) -> _Block:
    num_audits = sum(figures.outcomes.values())
    rows: list[Row] = []
    for outcome in Outcome:
        num = figures.outcomes[outcome]
        share = _percent(num / num_audits if num_audits else None)
        rows.append((Text(outcome, style=STYLES[outcome]), f"{num:,}", share))
    for reason, num in list(figures.unscored.items())[:_MOST_REASONS]:
        rows.append((Text(f" {reason}", style="dim"), f"{num:,}", _percent(num / max(num_audits, 1))))
    return _Block("outcomes", rows)


def _latency(figures: Figures) -> _Block:
    rows: list[Row] = [("", *(Text(name, style="dim") for name in ("p50", "p95", "p99")))]
    for stage in STAGES:
        found = figures.latency[stage]
        rows.append((stage, *([_seconds(one) for one in found] or "---")))
    return _Block("seconds, last minute", rows)


def _load(snapshot: Snapshot) -> _Block:
    figures = snapshot.figures
    tokens = [f"{n:,.0f}/s" for n in figures.tokens_per_s] if figures.tokens_per_s else "--"
    rows: list[Row] = [
        ("in flight", f"{figures.num_in_flight:,} of {snapshot.max_in_flight:,}"),
        ("waiting", f"{figures.num_waiting:,} of {snapshot.max_waiting:,}"),
        ("tokens in", tokens[0]),
        ("tokens out", tokens[1]),
        ("refused", _warned(sum(figures.refused.values()))),
    ]
    for reason, num in list(figures.refused.items())[:_MOST_REASONS]:
        rows.append((Text(f" {reason}", style="dim"), f"{num:,}"))
    return _Block("load", rows)


def _votes(figures: Figures) -> _Block:
    rows: list[Row] = [
        ("votes agree", _percent(figures.agreement)),
        ("votes unreadable", _percent(figures.unreadable)),
        ("voters repeating", _percent(figures.repeating)),
        ("numbers uncovered", _percent(figures.uncovered)),
        ("prefix cache", _percent(figures.prefix_hits)),
        ("verdicts kept", f"{figures.num_cached:,}"),
        ("requests joined", f"{figures.num_joined:,}"),
    ]
    return _Block("votes and caches", rows)


def _engine(engine: EngineStatus) -> Row:
    name = Text.assemble(("● ", _DOTS[engine.state]), printable(engine.name), f"  {engine.state}")
    return name, f"{engine.num_requests:,} requests"


def _warning(one: Warned, width: int) -> Text:
    style = "yellow" if one.level == "WARNING" else "red"
    said = printable(" ".join(one.text.split())[: 2 * width])
    return _apart(Text.assemble((f"{one.time} ", "dim"), (said, style)), Text(), width - _SIDES)


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def _warned(num: int) -> Text:
    return Text(f"{num:,}", style="yellow" if num else "")


def _seconds(one: Estimate) -> str:
    num_decimals = 0 if one.seconds >= 100 else 1 if one.seconds >= 10 or one.sign else 2
    return f"{one.sign}{one.seconds:.{num_decimals}f}"


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days} d {hour}:{minute:02}:{second:02}" if days else f"{hour}:{minute:02}:{second:02}"
