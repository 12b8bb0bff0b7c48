"""Gate reports and the registry, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from orchestration.promotion.records import GateReport, GateState
from orchestration.registry.log import State
from orchestration.registry.store import ModelVersion
from reward.offline.excerpt import printable

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {
    GateState.PASSED: "green",
    GateState.INCONCLUSIVE: "yellow",
    GateState.FAILED: "red",
    GateState.ERROR: "bold red",
}


def print_report(report: GateReport, console: Console) -> None:
    """One row a gate."""
    table = Table("gate", "state", "finding", "bound", "figures", box=None, header_style="bold")
    for one in report.gates:
        figures = ", ".join(f"{name} {_shown(value)}" for name, value in list(one.figures.items())[:6])
        gate, reason, bound, shown = (
            Text(printable(part)) for part in (one.gate, one.reason, one.bound, figures)
        )
        table.add_row(gate, Text(one.state, style=_STYLES[one.state]), reason, bound, shown)
    console.print(table)


def print_models(found: Sequence[tuple[str, Sequence[ModelVersion], State]], console: Console) -> None:
    """One row a version, and the last decision about each model."""
    table = Table("model", "version", "aliases", "waits", "weights", "at", box=None, header_style="bold")
    for model, versions, state in found:
        waiting = {entry.version: entry.by for entry in state.waiting.values()}
        for one in versions:
            asked = f"asked by {waiting[one.version]}" if one.version in waiting else ""
            cells = (model, one.version, ", ".join(one.aliases), asked, one.sha256[:12], one.uri)
            table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    for model, _, state in found:
        if state.history:
            last = state.history[-1]
            entry = last.entry
            said = f"{entry.action} of version {entry.version} by {entry.by} at {entry.at}: {last.effect}"
            console.print(Text(printable(f"{model}: entry {last.number}, {said}")))


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) and abs(value) >= 1 else f"{value:.3f}"
