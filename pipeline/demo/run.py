"""`march demo`: measure a policy, train it with MARCH, measure it again, and show what came of it.

Everything lands in one run folder: the training run (`pipeline.train`), `evaluation_before.json` and
`evaluation_after.json`, `curves.png`, `demo.html`, and `summary.json`, which comes last and says that the
demo is done. The same command resumes a demo that was interrupted; what is measured is not measured again. A
recipe of real text is the same, with a warm-up of the model before it (`start.py`, folder `warmup/`).
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipeline.demo.evaluate import setup_for
from pipeline.demo.evaluation import MEASURES, NUM_ROWS, Evaluation
from pipeline.demo.figures import draw_curves
from pipeline.demo.measure import measured, read_evaluation
from pipeline.demo.report import find, render_page, table
from pipeline.demo.start import is_warmed_up_first, make_start, say_what_it_takes
from pipeline.demo.summary import Summary, command_again, first_model, paired
from pipeline.record.run import RunState
from pipeline.record.tracking import RUN_FILE, finish_mlflow_run, read_steps
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.train import train
from reward.offline.files import replace_file

SUMMARY_FILE, PAGE_FILE, CURVES_FILE = "summary.json", "demo.html", "curves.png"
BEFORE_FILE, AFTER_FILE = "evaluation_before.json", "evaluation_after.json"
_PHASES_FILE, _ASKED_FILE = "phases.json", "asked.json"


def run_demo(
    *,
    run_dir: Path = Path("runs/demo"),
    seed: int = 0,
    steps: int | None = None,
    recipe: str = "tiny",
    overrides: Sequence[str] = (),
    num_rows: int = NUM_ROWS,
) -> int:
    """Runs, resumes or shows the demo; returns the exit code. A run that misses its goal still returns 0.

    Raises:
        ValueError, FileNotFoundError: this machine or the run folder cannot be used.
        TrainingFailedError: a phase failed; the same command resumes the demo.
    """
    console, own = Console(), tuple(overrides)
    if wrong := [one for one in own if one.startswith(("seed=", "data.max_steps="))]:
        raise ValueError(f"--set {wrong[0]}: give it by --seed or --steps")
    given = [*own, f"seed={seed}", *([] if steps is None else [f"data.max_steps={steps}"])]
    loaded = load_recipe(recipe, given)
    if loaded.oracle == "none":
        raise ValueError("data.source: prepared rows have no known answers; use a recipe with tiny or wiki")
    if (run_dir / SUMMARY_FILE).is_file():
        _show_finished(console, run_dir, (seed, loaded.data.max_steps, recipe, num_rows, own))
        return 0
    _begin(run_dir, [recipe, seed, loaded.data.max_steps, num_rows, *own])
    console.print(
        f"{recipe}: {num_rows} rows are answered, the policy is trained on others, and they are answered "
        f"again; all in {run_dir}, where the same command goes on",
        soft_wrap=True,
    )
    if is_warmed_up_first(loaded):
        say_what_it_takes(console, loaded, num_rows)
        with _timed(run_dir, "warmup"):
            start = make_start(console, recipe, loaded, run_dir, given)
        given.append(f"model={start}")
        loaded = load_recipe(recipe, given)

    def measure(model: str, out: str) -> Evaluation:
        setup, shown = setup_for(loaded, model, num_rows=num_rows), _as_typed(Path(model))
        return measured(console, setup, run_dir / out, recipe=recipe, overrides=given, shown=shown)

    with _timed(run_dir, "before"):
        before = measure(loaded.model_path, BEFORE_FILE)
    with _timed(run_dir, "training"):
        # It says so if an earlier call finished it.
        train(recipe, run_dir=run_dir, overrides=given, part_of=run_dir.name)
    with _timed(run_dir, "after"):
        after = measure(str((run_dir / "model").resolve()), AFTER_FILE)
    summary = _summarise(recipe, loaded, run_dir, before, after, own)
    _write_pictures(run_dir, before, after, summary)
    _log_to_mlflow(run_dir, before, after, summary)
    replace_file(run_dir / SUMMARY_FILE, summary.model_dump_json(indent=2) + "\n")
    print_report(console, run_dir, summary)
    return 0


def print_report(console: Console, run_dir: Path, summary: Summary) -> None:
    """Prints the table, the finding and where everything lies."""
    before, after = (read_evaluation(run_dir / name) for name in (BEFORE_FILE, AFTER_FILE))
    if before is None or after is None:
        raise ValueError(f"run_dir: {run_dir} holds a demo of another version; remove it, or use another")
    figures = Table(title=f"MARCH, recipe {summary.recipe}: seed {summary.seed}, {summary.steps} PPO steps")
    figures.add_column(f"{summary.rows_held_out} held-out rows, 95% intervals")
    for heading in ("before", "after", "change"):
        figures.add_column(heading, justify="right")
    for row in table(before, after):
        figures.add_row(row.label, row.before, row.after, row.change)
    figures.add_section()
    seconds = {name: _duration(value) for name, value in summary.phases_s.items()}
    if "warmup" in seconds:
        figures.add_row("Time: warm-up", seconds["warmup"], "", "")
    figures.add_row("Time: measuring", seconds.get("before", ""), seconds.get("after", ""), "")
    all_together = _duration(summary.wall_s)
    figures.add_row("Time: training, all together", seconds.get("training", ""), all_together, "")
    console.print(figures)
    console.print(summary.finding, style="bold green" if summary.goal_met else "bold yellow")
    console.print(summary.note, style="dim")
    console.print(f"page     {_as_typed(run_dir / PAGE_FILE)}\nfigures  {_as_typed(run_dir / SUMMARY_FILE)}")
    console.print(f"MLflow   {_mlflow_command(_state(run_dir).tracking_uri)}", soft_wrap=True)


def _summarise(
    name: str, recipe: Recipe, run_dir: Path, before: Evaluation, after: Evaluation, own: tuple[str, ...]
) -> Summary:
    rows, phases = read_steps(run_dir), _phases(run_dir)
    finding, estimates = find(before, after), paired(before, after)
    return Summary.model_validate(
        {figure: None if estimate is None else estimate.value for figure, estimate in estimates.items()}
        | {
            "recipe": name,
            "seed": recipe.seed,
            "steps": len(rows),
            "num_checker_trajectories": round(sum(row.get("checker/num_trained", 0) for row in rows)),
            "wall_s": sum(phases.values()),
            "mlflow_run_id": _state(run_dir).mlflow_run_id,
            "command": command_again(name, recipe.seed, len(rows), own, after.setup.num_rows),
            "overrides": own,
            "preset": recipe.preset,
            "model": first_model(recipe),
            "rows_held_out": after.setup.num_rows,
            "goal_met": finding.goal_met,
            "finding": finding.sentence,
            "note": recipe.note,
            "phases_s": phases,
            "intervals": {name: (e.low, e.high) for name, e in estimates.items() if e is not None},
        }
    )


def _write_pictures(run_dir: Path, before: Evaluation, after: Evaluation, summary: Summary) -> None:
    curves = {
        "oracle/faithful_rate": "oracle_faithfulness",
        "audit/supported_rate": "supported",
        "oracle/false_accept_rate": "false_accept",
        "oracle/false_reject_rate": "false_reject",
    }
    ends = {curve: (before[figure], after[figure]) for curve, figure in curves.items()}
    draw_curves(read_steps(run_dir), run_dir / CURVES_FILE, ends=ends)
    commands = [summary.command, _mlflow_command(_state(run_dir).tracking_uri)]
    page = render_page(before, after, summary=summary, curves=run_dir / CURVES_FILE, commands=commands)
    replace_file(run_dir / PAGE_FILE, page)


def _log_to_mlflow(run_dir: Path, before: Evaluation, after: Evaluation, summary: Summary) -> None:
    """Logs each figure as a curve of two points, at step 0 and at the last step."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    state = _state(run_dir)
    client = MlflowClient(state.tracking_uri)
    now = int(time.time() * 1000)
    points = [
        Metric(f"held_out/{name}", estimate.value, now, step)
        for name in MEASURES
        for step, evaluation in ((0, before), (summary.steps, after))
        if (estimate := evaluation.figures[name]) is not None
    ]
    client.log_batch(state.mlflow_run_id, metrics=points)
    client.log_dict(state.mlflow_run_id, summary.model_dump(mode="json"), SUMMARY_FILE)
    client.set_tag(state.mlflow_run_id, "mlflow.note.content", f"{summary.finding}\n\n{summary.note}")
    pages = (run_dir / CURVES_FILE, run_dir / PAGE_FILE)
    finish_mlflow_run(state.tracking_uri, state.mlflow_run_id, status="FINISHED", artifacts=pages)


def _show_finished(console: Console, run_dir: Path, asked: tuple[object, ...]) -> None:
    """Shows the demo of what is asked: seed, steps, recipe, rows and settings."""
    summary = Summary.model_validate_json((run_dir / SUMMARY_FILE).read_text())
    planned = RunState.model_validate_json((run_dir / RUN_FILE).read_text()).recipe.data.max_steps
    found = (summary.seed, planned, summary.recipe, summary.rows_held_out, summary.overrides)
    if found != asked:
        settings = f", with {' '.join(summary.overrides)}" if summary.overrides else ""
        raise ValueError(
            f"run_dir: {run_dir} holds a finished demo of seed {summary.seed} and {planned} steps of "
            f"{summary.recipe}{settings}, measured on {summary.rows_held_out} rows; use another --run-dir"
        )
    print_report(console, run_dir, summary)
    console.print(
        f"This demo was finished before. To run it again: remove {run_dir}, or use another --run-dir."
    )


def _begin(run_dir: Path, asked: list[object]) -> None:
    """Makes the folder; ValueError where another demo has begun in it."""
    path = run_dir / _ASKED_FILE
    if path.is_file() and (found := json.loads(path.read_text())) != asked:
        raise ValueError(
            f"run_dir: {run_dir} holds an unfinished demo of {found} (recipe, seed, steps, rows, settings), "
            f"not of {asked}; use another --run-dir"
        )
    run_dir.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(asked) + "\n")


@contextmanager
def _timed(run_dir: Path, phase: str) -> Iterator[None]:
    """Adds the time of a phase to that of earlier calls, also when the phase fails."""
    start = time.monotonic()
    try:
        yield
    finally:
        phases = _phases(run_dir)
        phases[phase] = phases.get(phase, 0.0) + time.monotonic() - start
        replace_file(run_dir / _PHASES_FILE, json.dumps(phases) + "\n")


def _phases(run_dir: Path) -> dict[str, float]:
    path = run_dir / _PHASES_FILE
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def _state(run_dir: Path) -> RunState:
    return RunState.model_validate_json((run_dir / RUN_FILE).read_text())


def _as_typed(path: Path) -> str:
    """The path as a user here would type it: relative when it lies below this folder."""
    relative = os.path.relpath(path)
    return str(path.absolute()) if relative.startswith("..") else relative


def _mlflow_command(tracking_uri: str) -> str:
    scheme, separator, path = tracking_uri.partition("sqlite:///")
    uri = f"sqlite:///{_as_typed(Path(path))}" if separator and not scheme else tracking_uri
    program = shlex.quote(_as_typed(Path(sys.executable).with_name("mlflow")))
    return f"{program} ui --backend-store-uri {shlex.quote(uri)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
