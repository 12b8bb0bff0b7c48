"""`march inspect`: what a training run did, by steps and answer by answer.

RUN is a run folder, finished or not. Without options it prints the figures of the last steps; with any that
chooses answers, those answers; with --html it writes a page of them.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestration.terminal.messages import output_console

_TERMINAL_ROWS, _PAGE_ROWS = 3, 500


def inspect(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
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
) -> None:
    """Show what a training run did: its steps, and its answers with claims, votes and evidence."""
    from orchestration.inspect.page import render_run
    from orchestration.inspect.run import Wanted, choose, few, open_run, read_answers, read_entries, totals
    from orchestration.inspect.terminal import print_answers, print_overview
    from reward.offline.files import replace_file
    from reward.types import Outcome

    if html is not None and html.suffix.lower() not in (".html", ".htm"):  # no record of the run is at risk
        raise ValueError(f"--html: {html} does not end in .html; name the page so")
    steps = _steps(step) if step else None
    wanted = Wanted(Outcome(outcome) if outcome else None, query_id, worst)
    opened = open_run(run)
    if html is None and not (steps or limit) and wanted == Wanted():
        return print_overview(opened, output_console())
    fitting = choose(read_entries(opened, steps), wanted)
    if html is None:
        rows = read_answers(opened, fitting[: limit or _TERMINAL_ROWS])
        return print_answers(opened, rows, totals(fitting), output_console())
    shown = few(fitting, limit or _PAGE_ROWS)
    replace_file(html, render_run(opened, read_answers(opened, shown), totals(fitting)))
    left = len(fitting) - len(shown)
    cut = f"; {left:,} more fit and are not on it (--limit)" if left else ""
    print(f"{html}: {len(shown):,} of {len(fitting):,} answers{cut}")


def _steps(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip())
    if found is None:
        raise ValueError(f"--step: {text!r} is no step; give one, such as 7, or a range, such as 7-12")
    return int(found[1]), int(found[2] or found[1])
