"""Gate reports and the registry for people and programs: tables, a version as a tree, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from orchestration.promotion.records import GateReport, GateState
from orchestration.registry.chain import Decision, Made
from orchestration.registry.decisions import Decisions
from orchestration.registry.store import ModelVersion
from pipeline.lineage.show import Node, leaf
from reward.offline.excerpt import printable, shortened

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {
    GateState.PASSED: "green",
    GateState.INCONCLUSIVE: "yellow",
    GateState.FAILED: "red",
    GateState.ERROR: "bold red",
}


@dataclass(frozen=True)
class ModelReport:
    """What is registered and decided about a model."""

    model: str
    versions: Sequence[ModelVersion]
    last: Decision | None = None
    waiting: Sequence[Decision] = ()
    problems: Sequence[str] = ()


def print_report(report: GateReport, console: Console) -> None:
    """One row a gate."""
    table = _table("gate", "state", "finding", "bound", "figures", whole=("state",))
    for one in report.gates:
        figures = ", ".join(f"{name} {_shown(value)}" for name, value in list(one.figures.items())[:6])
        state = Text(one.state, style=_STYLES[one.state])
        table.add_row(_plain(one.gate), state, *map(_plain, (one.reason, one.bound, figures)))
    console.print(table)


def print_models(reports: Sequence[ModelReport], console: Console) -> None:
    """One row a version, and the last decision about each model."""
    table = _table("model", "version", "aliases", "waits", "weights", "at", whole=("version", "weights"))
    most = console.width // 2
    for report in reports:
        waiting = {one.about.version: f"asked by {one.by}" for one in report.waiting}
        for one in report.versions:
            asked = waiting.get(one.version, "")
            known = (report.model, one.version, ", ".join(one.aliases), asked, one.sha256[:12])
            cells = (*known, shortened(one.uri, most))
            table.add_row(*map(_plain, cells))
    if table.rows:
        console.print(table)
    else:
        console.print("no version is registered; `march model register MODEL WEIGHTS` registers one")
    for report in reports:
        if last := report.last:
            champion = last.after.champion.version if last.after.champion else "none"
            decided = f"decision {last.number}: {last.action} of version {last.about.version}"
            said = f"{report.model}: champion {champion}; {decided} by {last.by} at {last.at}"
            console.print(_plain(said))


def _table(*columns: str, whole: Sequence[str]) -> Table:
    """A table whose long cells take several lines; those of the columns `whole` never do."""
    table = Table(box=None, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name in whole)
    return table


def _plain(text: str) -> Text:
    return Text(printable(text))


def models_json(reports: Sequence[ModelReport]) -> str:
    """What is registered and decided, for programs; `champion` is null where nobody is or nobody can say."""
    return json.dumps([_as_tree(report) for report in reports], indent=1)


def _as_tree(report: ModelReport) -> dict[str, object]:
    champion = report.last.after.champion if report.last else None
    return {
        "model": report.model,
        "champion": champion.version if champion else None,
        "versions": [
            {"version": one.version, "aliases": list(one.aliases), "sha256": one.sha256, "uri": one.uri}
            for one in report.versions
        ],
        "waiting": [{"version": one.about.version, "by": one.by, "at": one.at} for one in report.waiting],
        "last_decision": report.last.model_dump(mode="json") if report.last else None,
        "problems": list(report.problems),
    }


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) and abs(value) >= 1 else f"{value:.3f}"


def version_node(decisions: Decisions, version: ModelVersion) -> Node:
    """A version, and every decision that it was in."""
    made = [one for one in decisions.chain.history() if _is_about(one.decision, version.version)]
    below = (
        leaf("weights digest", version.sha256),
        leaf("weights at", version.uri),
        leaf("aliases", ", ".join(version.aliases) or "none"),
        *([_node(one) for one in reversed(made)] or [Node("decisions", "none yet")]),
    )
    return Node("registered", f"{decisions.model} version {version.version}", below)


def _is_about(decision: Decision, version: str) -> bool:
    champion = decision.after.champion
    is_replaced = decision.was == version and champion is not None and champion.version != version
    return decision.about.version == version or is_replaced


def _node(made: Made) -> Node:
    decision = made.decision
    facts = {
        "reason": decision.reason,
        "manifest": made.digest,
        "evaluation": decision.evaluation,
        "champion's evaluation": decision.champion_evaluation,
    }
    below = [Node(name, value) for name, value in facts.items() if value]
    if decision.report is not None:
        below.append(_gates(decision.report))
    label = f"decision {decision.number}: {decision.action} version {decision.about.version}"
    return Node(label, f"by {decision.by} at {decision.at}", tuple(below))


def _gates(report: GateReport) -> Node:
    gates = tuple(
        Node(one.gate, f"{one.state}: {one.reason}" + (f" ({one.bound})" if one.bound else ""))
        for one in report.gates
    )
    return Node("gates", report.state, (*gates, leaf("policy", report.policy_sha256)))
