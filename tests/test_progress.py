"""Progress where there is no terminal: lines of a log."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.terminal import progress
from orchestration.terminal.progress import AnswerProgress, AuditProgress, ByteProgress
from pipeline.record import progress as training_progress
from reward.types import Outcome, Verdict


class _SlowLog(io.StringIO):
    """Lets other threads run before each write, some longer than others, as a busy machine does."""

    def write(self, text: str) -> int:
        time.sleep(random.random() * 1e-4)
        return super().write(text)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Where lines go, of which each is due at once."""
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    return _SlowLog()


def test_bytes_are_counted_from_all_threads(log: io.StringIO) -> None:
    with ByteProgress(Console(file=log, width=200), "sending", total=8_000_000) as bar:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(bar.advance, [1000] * 4000))
        bar.add_rows(1_000_000, 5)
    *_, before, after = lines = log.getvalue().splitlines()
    amounts = [float(line.split()[1]) for line in lines]
    assert amounts == sorted(amounts), "an older amount was printed after a newer one"
    assert before.startswith("sending: 4.0 of 8 MB, ") and "s left" in before
    assert after.startswith("sending: 5.0 of 8 MB, ") and "5 rows" in after


def test_rows_of_an_earlier_run_are_counted_apart(log: io.StringIO) -> None:
    with AuditProgress(Console(file=log, width=200)) as bar:
        bar.start(10, done=8)
        bar.advance(Verdict(id="a", outcome=Outcome.NO_CLAIMS, reward=None))
    first, second = log.getvalue().splitlines()
    assert first == "auditing: 8 of 10 rows are done by an earlier run"
    assert second == "auditing: 9 of 10 rows  1 NO_CLAIMS"


def test_answers_of_a_stage_are_counted_by_themselves(log: io.StringIO) -> None:
    with AnswerProgress(Console(file=log, width=200)) as bar:
        for done in (1, 2, 3):
            bar.tell(label="generating", done=done, total=4)
        bar.tell(label="judging", done=1, total=9)
    lines = log.getvalue().splitlines()
    assert lines[0].strip() == "generating: 1 of 4 answers"
    assert lines[2].startswith("generating: 3 of 4 answers, ") and "answers/s" in lines[2]
    assert lines[3].strip() == "judging: 1 of 9 answers", "no rate of the stage before"


def test_steps_trained_again_after_a_checkpoint_are_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training_progress, "_POLL_S", 0.05)
    file = tmp_path / "steps.jsonl"
    lines = [json.dumps({"step": step, "audit/supported_rate": step / 10}) + "\n" for step in (1, 2, 3)]
    file.write_text("".join(lines))
    resumed = (
        "import pathlib, sys, time; file = pathlib.Path(sys.argv[1])\n"
        "lines = file.read_text().splitlines(True)\n"
        "for kept in (2, 3): file.write_text(''.join(lines[:kept])); time.sleep(1)"
    )
    with subprocess.Popen([sys.executable, "-c", resumed, str(file)]) as worker:
        training_progress.show_progress(worker, tmp_path, total_steps=3, note="")
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step")]
    assert shown == ["step 2/3  accepted 0.20", "step 3/3  accepted 0.30"]


def test_figures_have_a_line_of_their_own_beside_a_narrow_bar(tmp_path: Path) -> None:
    screen = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    with training_progress.StepProgress(console=screen) as bar:
        task = bar.add_task("training", total=40, figures="accepted 0.50  true 0.70  unscored 0.00")
        bar.update(task, completed=4)
    last = screen.file.getvalue().split("\x1b[2K")[-1]  # type: ignore[attr-defined]
    bar_line, figures_line, *_ = (line for line in last.splitlines() if line.strip())
    assert "4/40" in bar_line and "accepted" not in bar_line
    assert figures_line.strip() == "accepted 0.50  true 0.70  unscored 0.00"
