"""What a person sees while a run trains: the phase, the steps, the time left and the figures."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from pipeline.record.tracking import STEPS_FILE, last_row

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


class StepProgress(Progress):
    """The bar, and the figures of the last step in a line of their own, which a narrow terminal wraps."""

    @classmethod
    def get_default_columns(cls) -> tuple[ProgressColumn, ...]:
        return (
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        yield from (Text(task.fields["figures"]) for task in self.tasks)


def show_progress(worker: subprocess.Popen[bytes], run_dir: Path, *, total_steps: int, note: str) -> None:
    """Follows `steps.jsonl` until the worker ends; stops the worker on Ctrl-C."""
    console = Console()
    if note:
        console.print(f"[dim]{note}[/dim]")
    try:
        with StepProgress(console=console) as progress:
            done = _num_done(last_row(run_dir))
            task = progress.add_task("starting", total=total_steps, completed=done, figures="")
            seen = _version(run_dir)
            while worker.poll() is None:
                seen = _update(progress, task, run_dir, seen)
                time.sleep(_POLL_S)
            _update(progress, task, run_dir, seen)
    except KeyboardInterrupt:
        worker.terminate()
        worker.wait()
        raise


def _version(run_dir: Path) -> tuple[int, int] | None:
    """When `steps.jsonl` was written, and its size; None as long as there is none."""
    try:
        found = (run_dir / STEPS_FILE).stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def _update(
    progress: Progress, task: TaskID, run_dir: Path, seen: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Shows the last step if the file is not the one `seen`; returns which it was before it was read."""
    now = _version(run_dir)
    shown, total = progress.tasks[task].completed, progress.tasks[task].total
    if now == seen or (last := last_row(run_dir)) is None or _num_done(last) == shown:
        return now
    phase = "saving" if _num_done(last) == total else "training"
    progress.update(task, completed=_num_done(last), description=phase, figures=figures(last))
    if not progress.console.is_terminal:
        line = f"step {_num_done(last)}/{total:g}  {figures(last)}"
        progress.console.print(line, soft_wrap=True, highlight=False)
    return now


def _num_done(last: dict[str, float] | None) -> int:
    """Steps are counted from 1."""
    return int(last["step"]) if last else 0
