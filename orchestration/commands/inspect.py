"""`march inspect`: what a training run did, by steps and answer by answer.

RUN is a run folder, finished or not, or the id of an MLflow run. Without options it prints the figures of the
steps; with any that chooses answers, those answers; with --html it writes a page of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestration.commands.promote_options import RegistryUri

if TYPE_CHECKING:
    from orchestration.inspect.choice import Wanted
    from orchestration.inspect.run import Run

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
    mlflow: RegistryUri = None,
) -> None:
    """Show what a training run did: its steps, and its answers with claims, votes and evidence."""
    from orchestration.inspect.choice import Wanted
    from orchestration.inspect.run import open_run
    from reward.types import Outcome

    if html is not None and html.suffix.lower() not in (".html", ".htm"):  # no record of the run is at risk
        raise ValueError(f"--html: {html} does not end in .html; name the page so")
    steps = _steps(step) if step else None
    wanted = Wanted(Outcome(outcome) if outcome else None, query_id, worst)
    with _run_folder(run, mlflow) as folder:
        opened = open_run(folder)
        if html is None and not (steps or limit) and wanted == Wanted():
            _print_overview(opened)
        else:
            _show_answers(opened, steps, wanted, limit, html)


def _print_overview(run: Run) -> None:
    from rich.console import Console

    from orchestration.inspect.terminal import print_overview

    print_overview(run, Console())


def _show_answers(
    run: Run, steps: tuple[int, int] | None, wanted: Wanted, limit: int | None, html: Path | None
) -> None:
    """Prints the answers that fit, or writes a page of them."""
    from rich.console import Console

    from orchestration.inspect.choice import choose, few, totals
    from orchestration.inspect.page import render_run
    from orchestration.inspect.run import read_answers, read_entries
    from orchestration.inspect.terminal import print_answers
    from reward.offline.files import replace_file

    fitting = choose(read_entries(run, steps), wanted)
    if html is None:
        rows = read_answers(run, fitting[: limit or _TERMINAL_ROWS])
        print_answers(run, rows, totals(fitting), Console())
        return
    shown = few(fitting, limit or _PAGE_ROWS)
    replace_file(html, render_run(run, read_answers(run, shown), totals(fitting)))
    left = len(fitting) - len(shown)
    cut = f"; {left:,} more fit and are not on it (--limit)" if left else ""
    print(f"{html}: {len(shown):,} of {len(fitting):,} answers{cut}")


def _steps(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip())
    if found is None:
        raise ValueError(f"--step: {text!r} is no step; give one, such as 7, or a range, such as 7-12")
    return int(found[1]), int(found[2] or found[1])


@contextmanager
def _run_folder(run: str, mlflow: str | None) -> Iterator[Path]:
    """The run's folder; what MLflow has of a run is put into one for as long as it is needed."""
    if Path(run).exists() or not _MLFLOW_ID.fullmatch(run):
        yield Path(run)
        return
    from pipeline.record.tracking import fetch_mlflow_run

    with TemporaryDirectory() as folder:
        fetch_mlflow_run(mlflow or "sqlite:///runs/mlflow.db", run, Path(folder))
        yield Path(folder)
