"""The commands that make a model again, from its lineage."""

from __future__ import annotations

import shlex
from pathlib import Path

from pipeline.lineage.record import EvaluationRecord, Lineage, Surroundings

RECIPE_FILE = "recipe.yaml"


def write_recipe(lineage: Lineage, folder: Path) -> Path:
    """Writes the recipe as it was merged."""
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECIPE_FILE
    path.write_text(yaml.safe_dump(lineage.recipe, sort_keys=False))
    return path


def commands(lineage: Lineage, folder: Path, *, store: str | None = None) -> list[str]:
    """Lines for a shell; what cannot be made sure of is a comment before the line that it concerns.

    Args:
        lineage: Of the model.
        folder: Where the recipe was written, and where data and the run go.
        store: Where the rows are; None: in the store that is set then.
    """
    lines = _code(lineage.surroundings[-1] if lineage.surroundings else None)
    if len(lineage.surroundings) > 1:
        lines.insert(0, f"# the run went on in {len(lineage.surroundings)} surroundings; these are the last")
    train = ["march", "train", str(folder / RECIPE_FILE), "--run-dir", str(folder / "run")]
    if lineage.data and lineage.is_of_prepared_rows:
        lines += _data_lines(lineage, folder, store)
        train += ["--set", f"data.path={folder / 'data'}"]
    if lineage.parent.weights_sha256 is not None:
        lines.append(f"# it starts from {lineage.parent.name}: {lineage.parent.weights_sha256}")
    lines.append(shlex.join(train))
    for place, one in enumerate(lineage.evaluations, start=1):
        lines += _evaluation_lines(one, folder, place)
    if lineage.model and lineage.model.weights_sha256:
        lines.append(f"# the weights then (another training's differ): {lineage.model.weights_sha256}")
    return lines


def _code(around: Surroundings | None) -> list[str]:
    if around is None or around.git_commit is None:
        return ["# which commit it was trained by is not recorded"]
    lines = [f"git checkout {around.git_commit}"]
    if around.git_dirty:
        lines.insert(
            0, f"# files differed from this commit (diff {around.git_diff_sha256}); they are not kept"
        )
    lines += [
        f"echo {shlex.quote(f'{digest}  {name}')} | sha256sum -c" for name, digest in around.locks.items()
    ]
    return [*lines, "make .venv/ready"]


def _data_lines(lineage: Lineage, folder: Path, store: str | None) -> list[str]:
    assert lineage.data is not None
    if lineage.data.artifact:
        get = ["march", "artifacts", "get", lineage.data.artifact, str(folder / "data")]
        return [shlex.join([*get, *(["--store", store] if store else [])])]
    inputs = ", ".join(f"{name} ({digest[:12]})" for name, digest in lineage.data.inputs.items())
    return [
        f"# prepare the rows again from {inputs or lineage.data.source}; train.jsonl must have the digest "
        f"{lineage.data.rows_sha256}"
    ]


def _evaluation_lines(one: EvaluationRecord, folder: Path, place: int) -> list[str]:
    command = ["march", "evaluate", str(folder / "run" / "model")]
    command += ["--out", str(folder / f"evaluation-{place}")]
    for name, source in one.sources.items():
        command += ["--benchmark", f"{name}={source}"]
    judge = f' --judge "$JUDGE_URL" --judge-model {shlex.quote(one.judge)}' if one.judge else ""
    note = f"# its settings then: {one.settings_sha256}; the new results.json says whether they are the same"
    return [note, shlex.join(command) + judge]
