"""A lineage as a tree, for a terminal and for a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.lineage.record import DataRecord, EvaluationRecord, Lineage, ModelRecord, Surroundings
from pipeline.models.cache import Origin
from reward.offline.page import render_page
from reward.offline.terminal import spoken

NOT_RECORDED = "not recorded"
_TEMPLATES = Path(__file__).parent / "templates"
_STYLE = ".tree, .tree ul { list-style: none; padding-left: 1.2rem; } .tree code { overflow-wrap: anywhere; }"


@dataclass(frozen=True)
class Node:
    """A line of the tree and what is below it."""

    label: str
    value: str = ""
    below: tuple[Node, ...] = ()


def tree_of(lineage: Lineage) -> Node:
    """The whole record."""
    seconds = f"{lineage.worker_s:,.0f} s" if lineage.worker_s is not None else None
    preset = str(lineage.recipe.get("preset") or "none")
    settings = (
        leaf("digest", lineage.recipe_digest),
        leaf("preset", preset),
        leaf("seed", str(lineage.seed)),
    )
    parts = (
        _model("weights", lineage.model) if lineage.model else Node("weights", "the run is not finished"),
        _model("started from", lineage.parent),
        Node("recipe", lineage.recipe_name, settings),
        _data(lineage.data) if lineage.data else leaf("data", None),
        Node("prompts", "", tuple(leaf(name, one) for name, one in lineage.prompt_digests.items())),
        *(_surroundings(one) for one in lineage.surroundings),
        *(() if lineage.surroundings else (leaf("code and machine", None),)),
        leaf("MLflow run", lineage.mlflow_run_id),
        Node("trained", f"{lineage.num_steps:,} steps", (leaf("wall time", seconds), _metrics(lineage))),
        *(_evaluation(one) for one in lineage.evaluations),
        *(() if lineage.evaluations else (leaf("evaluation", None),)),
        _gates(lineage),
    )
    return Node("run", lineage.run, parts)


def render_html(root: Node) -> str:
    """A page of a tree; it works from a disk."""
    return render_page("lineage.html", folder=_TEMPLATES, style=_STYLE, root=root)


def _model(label: str, model: ModelRecord) -> Node:
    below = (leaf("weights digest", model.weights_sha256), leaf("in the store", model.artifact))
    lineage = (leaf("its lineage", model.lineage),) if model.lineage else ()
    return Node(label, model.name, (*below, *lineage, *(_origin(model.origin) if model.origin else ())))


def _origin(origin: Origin) -> tuple[Node, ...]:
    leaves = {
        "fetched from": origin.short_source,
        "its digest": origin.sha256,
        "converted": origin.conversion,
    }
    return tuple(Node(label, value) for label, value in leaves.items() if value)


def _data(data: DataRecord) -> Node:
    below = (
        leaf("manifest", data.manifest_sha256),
        leaf("rows", data.rows_sha256),
        leaf("in the store", data.artifact),
        *((leaf("version id", data.version_id),) if data.version_id else ()),
        *(leaf(name, digest) for name, digest in data.inputs.items()),
    )
    return Node("data", f"{data.source}: {data.num_rows:,} rows", below)


def _surroundings(one: Surroundings) -> Node:
    dirty = {True: " with changes", False: "", None: ""}[one.git_dirty]
    commit = f"{one.git_commit}{dirty}" if one.git_commit else None
    return Node(
        "ran in",
        one.hardware.get("gpus") or f"{one.hardware.get('cores', '?')} cores",
        (
            leaf("git commit", commit),
            *((leaf("changes", one.git_diff_sha256),) if one.git_diff_sha256 else ()),
            leaf("image", one.image_digest),
            *(leaf(name, digest) for name, digest in one.locks.items()),
            Node("machine", "", tuple(leaf(name, value) for name, value in one.hardware.items())),
            Node("versions", f"Python {one.python}", tuple(leaf(*item) for item in one.packages.items())),
        ),
    )


def _evaluation(one: EvaluationRecord) -> Node:
    figures = (
        Node(
            name,
            "nothing scored" if value is None else f"{value:.3f}, {one.num_unscored.get(name, 0)} unscored",
        )
        for name, value in one.benchmarks.items()
    )
    average = () if one.average is None else (Node("average", f"{one.average:.3f}"),)
    below = (leaf("judge", one.judge), leaf("settings", one.settings_sha256), *figures, *average)
    prompts = tuple(leaf(f"prompts of {name}", digest) for name, digest in one.prompts.items())
    seeds = tuple(Node(f"seed of {name}", str(seed)) for name, seed in one.seeds.items())
    return Node("evaluation", one.model, (*below, *prompts, *seeds, leaf("in the store", one.artifact)))


def _metrics(lineage: Lineage) -> Node:
    items = sorted(lineage.metrics.items())
    return Node(
        "last step", "" if items else "none", tuple(Node(name, f"{value:.6g}") for name, value in items)
    )


def _gates(lineage: Lineage) -> Node:
    if lineage.gate_report is None:
        return leaf("gate report", None)
    items = lineage.gate_report.items()
    return Node("gate report", "", tuple(Node(spoken(name), str(value)) for name, value in items))


def leaf(label: str, value: str | None) -> Node:
    """A line that may be missing."""
    return Node(label, value or NOT_RECORDED)
