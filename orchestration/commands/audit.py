"""`march audit` and `march review`.

Exit codes of an audit: 0; 2 for what a user can fix; 3 when --fail-under is not reached; 130 when it was
interrupted, after which the same command goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.commands import audit_options as options
from orchestration.terminal.messages import error_console, fail, warn_ignored

if TYPE_CHECKING:
    from reward.offline.plan import AuditJob
    from reward.offline.run import Summary


@dataclass(frozen=True)
class Wanted:
    """What an audit shall write or say beside its verdicts."""

    html: Path | None
    review: Path | None
    compare: Path | None
    fail_under: float | None


def audit(
    source: options.Source,
    out: options.Out = None,
    row_format: options.Format = None,
    limit: options.Limit = None,
    overwrite: options.Overwrite = False,
    max_documents_chars: options.MaxDocumentsChars = None,
    assignments: options.Assignments = None,
    model: options.Model = None,
    model_name: options.ModelName = None,
    prompts: options.Prompts = None,
    voters: options.Voters = None,
    seed: options.Seed = None,
    concurrency: options.Concurrency = 16,
    html: options.Html = None,
    compare: options.Compare = None,
    review: options.Review = None,
    explain: options.Explain = None,
    fail_under: options.FailUnder = None,
) -> None:
    """Check every number, name and date of every response against its documents.

    Without --model, each of them is looked up in the documents.

    With --model, it asks about each of them, answers from the documents alone, and votes.

    The same command resumes what was interrupted.
    """
    from orchestration.settings.audit import audit_job

    if out is None and explain is None:
        raise ValueError("--out: missing; say where the verdicts shall go")
    named = {"prompts": prompts, "voters": voters, "seed": seed, "max_documents_chars": max_documents_chars}
    job = audit_job(
        source,
        out,
        row_format=row_format,
        model=model,
        model_name=model_name,
        named=named,
        assignments=assignments or [],
        limit=limit,
        concurrency=concurrency,
        overwrite=overwrite,
    )
    if explain is not None:
        warn_ignored("with --explain", html=html, compare=compare, review=review, overwrite=overwrite)
        _explain(job, explain, out)
    else:
        _audit(job, Wanted(html, review, compare, fail_under))


def review(
    filled: Annotated[Path, typer.Argument(metavar="REVIEW.csv", help="What --review wrote, filled in.")],
    verdicts: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="The audit that it was made from.")],
) -> None:
    """Score an audit against people who checked its claims.

    In the column human of REVIEW.csv: supported, unsupported or unclear; empty lines count as not checked.
    """
    from rich.console import Console

    from reward.offline.review import score_review
    from reward.offline.terminal import print_review

    print_review(score_review(filled, verdicts), Console())


def _audit(job: AuditJob, wanted: Wanted) -> None:
    from rich.console import Console

    from orchestration.terminal.progress import AuditProgress
    from reward.offline.compare import compare, read_earlier
    from reward.offline.run import audited_rows, run_audit
    from reward.offline.terminal import print_comparison, print_summary

    _refuse_outputs(job, wanted)
    earlier = read_earlier(wanted.compare) if wanted.compare else None
    try:
        with AuditProgress(error_console()) as progress:
            summary, changed = run_audit(job, progress)
    except KeyboardInterrupt:
        fail(f"stopped; {job.output} keeps what is done, and the same command goes on", code=130)
    console = Console()
    print_summary(summary, console)
    if earlier:
        print_comparison(compare(earlier, audited_rows(job)), console)
    written = _write(job, wanted, summary)
    print(_closing_line(summary, changed, [job.output, job.summary_path, *written]))
    if wanted.fail_under is not None:
        _hold_against(summary, wanted.fail_under)


def _refuse_outputs(job: AuditJob, wanted: Wanted) -> None:
    """Raises `ValueError`, before anything is spent, when a file must not be written or compared with."""
    from reward.offline.review import refuse_filled
    from reward.offline.run import refuse_inputs

    for path in (wanted.html, wanted.review):
        if path is not None:
            refuse_inputs(path, job)
    if wanted.review is not None:
        refuse_filled(wanted.review)
    own = {job.output.resolve(), job.summary_path.resolve()}
    if wanted.compare is not None and wanted.compare.resolve() in own:
        raise ValueError(f"--compare: {wanted.compare} is this audit's own output; give another audit's")


def _write(job: AuditJob, wanted: Wanted, summary: Summary) -> Sequence[Path]:
    """Writes the page and the file for people; returns their paths."""
    from reward.offline.files import replace_file
    from reward.offline.run import audited_rows

    written = []
    if wanted.html is not None:
        from reward.offline.report import render_report

        replace_file(wanted.html, render_report(summary, audited_rows(job)))
        written.append(wanted.html)
    if wanted.review is not None:
        from reward.offline.review import review_csv

        replace_file(wanted.review, review_csv(audited_rows(job)))
        written.append(wanted.review)
    return written


def _closing_line(summary: Summary, changed: bool, files: Sequence[Path]) -> str:
    where = ", ".join(str(file) for file in files)
    num_unscored = summary.figures.outcomes["UNSCORED"]
    if not changed:
        return f"Nothing to do: all {summary.figures.num_rows:,} rows were audited before ({where})"
    rate = f", {summary.rows_per_s:,.1f} rows/s" if summary.rows_per_s else ""
    line = f"Audited {summary.num_audited:,} rows in {summary.audit_s:.1f} s{rate}: {where}"
    if num_unscored:
        reasons = ", ".join(summary.figures.unscored_reasons)
        line += f"\n{num_unscored:,} rows could not be scored ({reasons}); the same command tries them again"
    return line


def _hold_against(summary: Summary, share: float) -> None:
    """Ends with exit code 3 unless enough of all rows are SUPPORTED."""
    outcomes, num_rows = summary.figures.outcomes, summary.figures.num_rows
    others = ", ".join(f"{outcomes[name]:,} {name}" for name in ("REFUTED", "NO_CLAIMS", "UNSCORED"))
    has_passed = outcomes["SUPPORTED"] >= share * num_rows
    found = f"{outcomes['SUPPORTED'] / num_rows:.3f} of {num_rows:,} rows are SUPPORTED ({others})"
    print(f"{'Passed' if has_passed else 'Failed'} --fail-under {share:g}: {found}")
    if not has_passed:
        raise typer.Exit(options.BELOW_THRESHOLD)


def _explain(job: AuditJob, row_id: str, out: Path | None) -> None:
    """Prints how one row came to its verdict: the output's, if the row is still the same, else a new one."""
    from rich.console import Console

    from reward.offline.explain import explanation, find_row, find_verdict
    from reward.offline.run import audit_row

    row = find_row(job, row_id)
    verdict = find_verdict(out, row) if out is not None else None
    where = f"From {out}" if verdict else "Audited now; nothing was written"
    Console().print(explanation(row, verdict or audit_row(job, row)))
    print(where)
