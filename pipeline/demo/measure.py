"""A measurement in a process of its own, with its progress; kept, and not repeated."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pipeline.demo.evaluation import Evaluation, EvaluationSetup
from pipeline.launch.reward_servers import die_with_parent
from pipeline.record.run import TrainingFailedError

LOG_FILE = "evaluate.log"
_JUDGED = re.compile(rb"judged (\d+)\n?")
_SAID_EVERY = 50  # rows, where nobody watches a terminal


def measured(
    console: Console, setup: EvaluationSetup, out: Path, *, recipe: str, overrides: Sequence[str], shown: str
) -> Evaluation:
    """Returns the measurement of an earlier call, or measures; `shown` is the model as a user would type it.

    Raises:
        TrainingFailedError: the process failed; its log is beside `out`.
    """
    if (found := read_evaluation(out)) is not None and found.setup == setup:
        return found
    command = [sys.executable, "-m", "pipeline.demo.evaluate", setup.model, str(out), "--recipe", recipe]
    command += ["--rows", str(setup.num_rows), "--seed", str(setup.seed)]
    command += [word for one in overrides for word in ("--set", one)]
    label = f"measuring {shown} on {setup.num_rows} held-out rows"
    code = _run(console, command, out.parent / LOG_FILE, label, setup.num_rows)
    found = read_evaluation(out)
    if code != 0 or found is None:
        fix = f"log: {out.parent / LOG_FILE}; the same command resumes the demo"
        raise TrainingFailedError(f"{label} ended with code {code} ({fix})")
    assert found.setup == setup, f"{out.name}: measured {found.setup}, asked for {setup}"
    console.print(f"{label}: {found['solver_right'].value:.1%} of the answers are right")
    return found


def read_evaluation(path: Path) -> Evaluation | None:
    """None when there is none that this version can read."""
    try:
        return Evaluation.model_validate_json(path.read_text())
    except (FileNotFoundError, ValidationError):
        return None


def _run(console: Console, command: list[str], log_file: Path, label: str, num_rows: int) -> int:
    """Runs the command; what it says on stdout is its progress, and everything else is logged."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), MofNCompleteColumn())
    with (
        log_file.open("ab") as log,
        Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as progress,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, preexec_fn=die_with_parent) as process,
    ):
        task = progress.add_task(label, total=num_rows)
        assert process.stdout is not None
        for line in process.stdout:
            if (judged := _JUDGED.fullmatch(line)) is None:
                log.write(line)
                log.flush()
                continue
            num = int(judged[1])
            progress.update(task, completed=num)
            if not console.is_terminal and num % _SAID_EVERY == 0:
                console.print(f"{label}: {num}/{num_rows}")
    return process.returncode
