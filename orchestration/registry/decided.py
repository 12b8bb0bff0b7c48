"""What is known of a registered version beside its lineage: its place, who decided what, by which gates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pydantic import ValidationError

from orchestration.promotion.records import GateReport
from orchestration.registry.decisions import Desk
from orchestration.registry.history import HISTORY_FILE, read_rows
from orchestration.registry.log import MOVES, Effect, Numbered
from orchestration.registry.store import REPORT_TAG, ModelVersion
from pipeline.evaluate.plan import digest
from pipeline.lineage.show import Node, leaf


def version_node(desk: Desk, version: ModelVersion) -> Node:
    """A version, and every decision that it was in; gate reports are held against the digest in the log."""
    reports = {digest(one.model_dump(mode="json")): one for one in _reports(desk, version)}
    decided = [_decision(one, reports) for one in desk.state().history if _is_about(one, version.version)]
    below = (
        leaf("weights digest", version.sha256),
        leaf("weights at", version.uri),
        leaf("aliases", ", ".join(version.aliases) or "none"),
        *(decided or [Node("decisions", "none yet")]),
    )
    return Node("registered", f"{desk.model} version {version.version}", below)


def _is_about(one: Numbered, version: str) -> bool:
    entry = one.entry
    is_replaced = entry.champion == version and entry.action in MOVES and one.effect is Effect.IN_EFFECT
    return entry.version == version or is_replaced


def _decision(one: Numbered, reports: dict[str, GateReport]) -> Node:
    entry = one.entry
    below = [Node("reason", entry.reason)] if entry.reason else []
    if one.why:
        below.append(Node("why not", one.why))
    if entry.report_sha256:
        below.append(_gates(entry.report_sha256, reports.get(entry.report_sha256)))
    label = f"decision {one.number}: {entry.action} version {entry.version}"
    return Node(label, f"by {entry.by} at {entry.at}, {one.effect}", tuple(below))


def _gates(sha256: str, report: GateReport | None) -> Node:
    if report is None:
        return Node("gates", f"report {sha256[:12]} is in the history file of who decided")
    gates = tuple(
        Node(one.gate, f"{one.state}: {one.reason}" + (f" ({one.bound})" if one.bound else ""))
        for one in report.gates
    )
    digests = leaf("candidate's evaluation", report.candidate_sha256), leaf("policy", report.policy_sha256)
    champions = (leaf("champion's evaluation", report.champion_sha256),) if report.champion_sha256 else ()
    return Node("gates", report.state, (*gates, *digests, *champions))


def _reports(desk: Desk, version: ModelVersion) -> Iterator[GateReport]:
    """The last report, which the version has, and those of the history file of this machine."""
    rows = read_rows(desk.history / desk.model / HISTORY_FILE)
    kept: list[object] = [row["report"] for row in rows if row.get("kind") == "report"]
    with suppress(ValidationError):  # none yet, or of another version
        yield GateReport.model_validate_json(version.tags.get(REPORT_TAG, ""))
    yield from (GateReport.model_validate(one) for one in kept)
