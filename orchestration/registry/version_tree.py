"""A registered version as a tree, for people: where it is, who decided what about it, and by which gates."""

from __future__ import annotations

from orchestration.promotion.records import GateReport
from orchestration.registry.chain import Decision, Made
from orchestration.registry.decisions import Decisions
from orchestration.registry.store import ModelVersion
from pipeline.lineage.show import Node, leaf


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
    below = [Node("reason", decision.reason)] if decision.reason else []
    below.append(Node("manifest", made.digest))
    if decision.evaluation:
        below.append(Node("evaluation", decision.evaluation))
    if decision.champion_evaluation:
        below.append(Node("champion's evaluation", decision.champion_evaluation))
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
