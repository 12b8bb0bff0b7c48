"""`march init`: a folder with a job, a recipe, gates and benchmark rows of one's own, which runs as it is."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

_RECIPE = """\
# Begun from the shipped recipe {base}: what is not said here is as it says (docs/recipes.md).
# `march recipe show {path} --all` lists every setting with its value and where it comes from.
extends: {base}
name: {name}
"""


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New or empty; it names the job.")],
    base: Annotated[
        str, typer.Option("--from", metavar="JOB", help="A shipped job: tiny, smollm2.")
    ] = "tiny",
) -> None:
    """Begin a retraining of your own: a job, its recipe, its gates and its benchmark, ready to run."""
    from orchestration.retrain.job import JOBS, load_job

    source = JOBS / f"{base}.yaml"
    if not source.is_file() or "recipe:" not in source.read_text():
        known = ", ".join(sorted(path.stem for path in JOBS.glob("*.yaml") if "recipe:" in path.read_text()))
        raise ValueError(f"--from {base!r}: no such shipped job; there are: {known}")
    name = folder.resolve().name
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise ValueError(
            f"{name!r} cannot name a job; name the folder with small letters, digits, dots, - and _"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder}: is there and not empty; name a new folder")
    shipped, job = load_job(base), folder / "job.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for file in (*shipped.evaluation.benchmarks.values(), shipped.registry.policy):
            shutil.copy(file, folder / file.name)
        recipe = folder / "recipe.yaml"
        begun = _RECIPE.format(base=shipped.recipe.name, name=name, path=shlex.quote(str(recipe)))
        recipe.write_text(begun, encoding="utf-8")
        job.write_text(_renamed(source.read_text(encoding="utf-8"), name), encoding="utf-8")
        load_job(str(job))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # half a job would be refused as "not empty" the next time
        raise
    print(f"{folder}: job.yaml, recipe.yaml, and the gates and rows that the job names")
    command = shlex.join(["march", "retrain", str(job)])
    print(f"look:  {command} --dry-run\nrun:   {command}")


def _renamed(job: str, name: str) -> str:
    """A shipped job's text, comments too, under another name and with the recipe beside it."""
    body = job[job.index("\nname: ") + 1 :]
    body = re.sub(r"^name: .*", f"name: {name}", body, count=1)
    body = re.sub(r"(?m)^(recipe:\n  name: ).*", r"\1recipe.yaml", body, count=1)
    body = re.sub(r"(?m)^(registry:\n  model: ).*", rf"\g<1>{name}", body, count=1)
    return (
        f"# A retraining: `march retrain` with the path of this file. The keys: docs/retraining.md.\n{body}"
    )
