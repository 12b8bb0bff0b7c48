"""What a person sees while a run trains: the phase, the steps, the time left and the figures."""

import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pipeline.record.tracking import STEPS_FILE, read_steps

_POLL_S = 0.5
_GUARDS = "guards/"
_FIGURES = (
    ("warmup/loss", "loss"),
    ("audit/supported_rate", "accepted"),
    ("oracle/faithful_rate", "true"),
    ("oracle/false_accept_rate", "false accepts"),
    ("audit/unscored_rate", "unscored"),
    ("held_out/score", "held out"),
)


def figures(step: dict[str, float]) -> str:
    """Returns the figures of a step for one line, and the guards whose patience is over."""
    parts = [f"{label} {step[key]:.2f}" for key, label in _FIGURES if key in step]
    parts += [
        f"guard {key.removeprefix(_GUARDS)}!" for key in step if key.startswith(_GUARDS) and step[key] >= 1
    ]
    return "  ".join(parts)


def show_progress(worker: subprocess.Popen[bytes], run_dir: Path, *, total_steps: int, note: str) -> None:
    """Follows `steps.jsonl` until the worker ends; stops the worker on Ctrl-C."""
    console = Console()
    if note:
        console.print(f"[dim]{note}[/dim]")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[figures]}"),
    )
    try:
        with Progress(*columns, console=console) as progress:
            done = len(read_steps(run_dir))
            task = progress.add_task("starting", total=total_steps, completed=done, figures="")
            while worker.poll() is None:
                done = _update(progress, task, run_dir, done, total_steps)
                time.sleep(_POLL_S)
            _update(progress, task, run_dir, done, total_steps)
    except KeyboardInterrupt:
        worker.terminate()
        worker.wait()
        raise


def _update(progress: Progress, task: TaskID, run_dir: Path, done: int, total_steps: int) -> int:
    if not (run_dir / STEPS_FILE).exists():
        return done
    steps = read_steps(run_dir)
    if len(steps) > done:
        phase = "saving" if len(steps) == total_steps else "training"
        last = steps[-1]
        progress.update(task, completed=len(steps), description=phase, figures=figures(last))
        if not progress.console.is_terminal:
            line = f"step {int(last['step'])}/{total_steps}  {figures(last)}"
            progress.console.print(line, soft_wrap=True, highlight=False)
    return max(done, len(steps))
