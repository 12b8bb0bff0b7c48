"""`march inspect`: what a training run did, by steps and answer by answer.

RUN is a run folder, finished or not, or the id of an MLflow run. Without options it prints the figures of the
steps; with any that chooses answers, those answers; with --html it writes a page of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestration.terminal.messages import warn_ignored

if TYPE_CHECKING:
    from orchestration.inspect.choice import Wanted
    from orchestration.inspect.run import Entry, Run

_TERMINAL_ROWS, _PAGE_ROWS = 3, 500
_MLFLOW_ID = re.compile(r"[0-9a-f]{32}")


def inspect(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, or an MLflow run id.")],
    step: Annotated[str | None, typer.Option(metavar="N or N-M", help="Of these steps.")] = None,
    outcome: Annotated[
        Literal["SUPPORTED", "REFUTED", "NO_CLAIMS", "UNSCORED"] | None,
        typer.Option(case_sensitive=False, help="With this outcome."),
    ] = None,
    query_id: Annotated[str | None, typer.Option(metavar="ID", help="To this query.")] = None,
    worst: Annotated[bool, typer.Option("--worst", help="The worst first.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most answers shown.", show_default=f"{_TERMINAL_ROWS}, on a page {_PAGE_ROWS}"
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page: figures, filters, answers.")] = None,
    mlflow: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="MLflow server of the run, or sqlite:///FILE; else MLFLOW_TRACKING_URI.",
            show_default="sqlite:///runs/mlflow.db",
        ),
    ] = None,
) -> None:
    """Show what a training run did: its steps, and its answers with claims, votes and evidence."""
    from orchestration.inspect.choice import Wanted
    from orchestration.inspect.run import open_run
    from reward.types import Outcome

    if html is not None and html.suffix.lower() not in (".html", ".htm"):  # no record of the run is at risk
        raise ValueError(f"--html: {html} does not end in .html; name the page so")
    wanted = Wanted(
        steps=_steps(step) if step else None,
        outcome=Outcome(outcome) if outcome else None,
        query_id=query_id,
        worst=worst,
    )
    with _run_folder(run, mlflow) as folder:
        opened = open_run(folder)
        if html is not None:
            _write_page(opened, wanted, html, limit or _PAGE_ROWS)
        else:
            _print(opened, wanted, limit)


def _print(run: Run, wanted: Wanted, limit: int | None) -> None:
    """The run by steps, or some of its answers where any option chooses them."""
    from rich.console import Console

    from orchestration.inspect.choice import Wanted, totals
    from orchestration.inspect.run import read_answers
    from orchestration.inspect.terminal import print_answers, print_overview

    if limit is None and wanted == Wanted():
        print_overview(run, Console())
        return
    fitting = _fitting(run, wanted)
    print_answers(run, read_answers(run, fitting[: limit or _TERMINAL_ROWS]), totals(fitting), Console())


def _write_page(run: Run, wanted: Wanted, path: Path, limit: int) -> None:
    from orchestration.inspect.choice import few, totals
    from orchestration.inspect.page import render_run
    from orchestration.inspect.run import read_answers
    from reward.offline.files import replace_file

    fitting = _fitting(run, wanted)
    shown = few(fitting, limit)
    replace_file(path, render_run(run, read_answers(run, shown), totals(fitting)))
    left = len(fitting) - len(shown)
    cut = f"; {left:,} more fit and are not on it (--limit)" if left else ""
    print(f"{path}: {len(shown):,} of {len(fitting):,} answers{cut}")


def _fitting(run: Run, wanted: Wanted) -> list[Entry]:
    """The answers that fit, in order; reads no file of a step that is not asked for.

    Raises:
        ValueError: a step that the run has not finished.
    """
    from orchestration.inspect.choice import choose
    from orchestration.inspect.run import read_entries

    return choose(read_entries(run, _asked_for(run, wanted)), wanted)


def _asked_for(run: Run, wanted: Wanted) -> Sequence[Mapping[str, float]]:
    if wanted.steps is None:
        return run.steps
    first, last = wanted.steps
    inside = [step for step in run.steps if first <= step["step"] <= last]
    if not inside:
        done = [int(step["step"]) for step in run.steps]
        have = f"steps {done[0]} to {done[-1]}" if done else "no finished step"
        raise ValueError(f"--step: {first}-{last}: the run has {have}; give one of them")
    return inside


def _steps(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip())
    if found is None:
        raise ValueError(f"--step: {text!r} is no step; give one, such as 7, or a range, such as 7-12")
    return int(found[1]), int(found[2] or found[1])


@contextmanager
def _run_folder(run: str, mlflow: str | None) -> Iterator[Path]:
    """The run's folder; what MLflow has of a run is put into one for as long as it is needed."""
    if Path(run).exists() or not _MLFLOW_ID.fullmatch(run):
        warn_ignored("on a run folder", mlflow=mlflow)
        yield Path(run)
        return
    from pipeline.record.tracking import fetch_mlflow_run

    with TemporaryDirectory() as folder:
        uri = mlflow or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///runs/mlflow.db"
        fetch_mlflow_run(uri, run, Path(folder))
        yield Path(folder)
