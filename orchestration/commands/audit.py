"""`march audit` and `march review`.

Exit codes of an audit: 0; 2 for what a user can fix; 3 when --fail-under is not reached; 130 when it was
interrupted, after which the same command goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestration.commands.options import set_option
from orchestration.terminal.messages import error_console, fail, output_console, unused_keys, warn_ignored

if TYPE_CHECKING:
    from reward.offline.run import AuditJob, Summary

_BELOW_THRESHOLD = 3  # exit code
_NO_JSONL = (".csv", ".tsv", ".parquet", ".pq")
_model = partial(typer.Option, rich_help_panel="With a model")
_people = partial(typer.Option, rich_help_panel="For people and for CI")


def audit(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="Rows: a .jsonl, .csv or .parquet file, or RAGTruth's folder."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Verdicts, one a row, in order; resumed if it is there.")
    ] = None,
    row_format: Annotated[
        Literal["jsonl", "csv", "parquet", "ragtruth"] | None,
        typer.Option("--format", help="What IN is.", show_default="by its name"),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First rows only.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again instead of resuming.")] = False,
    assignments: Annotated[
        list[str] | None,
        set_option(
            help="Any other setting, such as structured=none, early_stop=true, locale=de-DE or "
            "checker.temperature=0.2 (reward/config.py, AuditConfig)."
        ),
    ] = None,
    model: Annotated[
        str | None, _model(help="Model folder or name for vLLM here, or URL of an OpenAI-compatible server.")
    ] = None,
    model_name: Annotated[str | None, _model(help="The model's name, when --model is a URL.")] = None,
    prompts: Annotated[
        str | None, _model(help="full, compact, or a YAML file like them.", show_default="full")
    ] = None,
    voters: Annotated[
        int | None, _model(help="Independent checks of each claim; odd.", show_default="3")
    ] = None,
    seed: Annotated[int | None, _model(help="The same seed and model give the same verdicts.")] = None,
    concurrency: Annotated[int, _model(min=1, max=1024, help="Audits at once.")] = 16,
    html: Annotated[Path | None, _people(help="Write a page to read, too.")] = None,
    compare: Annotated[
        Path | None, _people(metavar="OTHER", help="Show what changed since another audit, by its verdicts.")
    ] = None,
    review: Annotated[
        Path | None,
        _people(
            metavar="CSV", help="Write the claims for people to check; `march review` scores the filled file."
        ),
    ] = None,
    explain: Annotated[
        str | None, _people(metavar="ID", help="Show one row's whole path instead of auditing all.")
    ] = None,
    fail_under: Annotated[
        float | None,
        _people(
            min=0,
            max=1,
            metavar="SHARE",
            help=f"Exit with code {_BELOW_THRESHOLD} when a smaller share of all rows is SUPPORTED; rows "
            "that are NO_CLAIMS or UNSCORED count against it.",
        ),
    ] = None,
) -> None:
    """Check every number, name and date of every response against its documents.

    Without --model, each of them is looked up in the documents.

    With --model, it asks about each of them, answers from the documents alone, and votes.

    The same command resumes what was interrupted.
    """
    from orchestration.settings.audit import audit_job

    if out is None and explain is None:
        raise ValueError("--out: missing; say where the verdicts shall go")
    if out is not None and (str(out) == "-" or out.suffix.lower() in _NO_JSONL):
        raise ValueError(f"--out: {str(out)!r}: verdicts are JSON lines; name it OUT.jsonl")
    if out is not None and out.is_dir():
        raise ValueError(f"--out: {str(out)!r} is a folder; name a file in it, such as {out / 'OUT.jsonl'}")
    job = audit_job(
        source,
        out,
        row_format=row_format,
        model=model,
        model_name=model_name,
        named={"prompts": prompts, "voters": voters, "seed": seed},
        assignments=assignments or [],
        limit=limit,
        concurrency=concurrency,
        overwrite=overwrite,
    )
    if explain is not None:
        others = {"html": html, "compare": compare, "review": review, "fail_under": fail_under}
        warn_ignored("with --explain", **others, overwrite=overwrite, limit=limit)
        _explain(job, explain, out)
    else:
        _audit(job, html=html, review=review, compared=compare, fail_under=fail_under)


def review(
    filled: Annotated[Path, typer.Argument(metavar="REVIEW.csv", help="What --review wrote, filled in.")],
    verdicts: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="The audit that it was made from.")],
) -> None:
    """Score an audit against people who checked its claims.

    In the column human of REVIEW.csv: supported, unsupported or unclear; empty lines count as not checked.
    """
    from reward.offline.review import score_review
    from reward.offline.terminal import print_review

    print_review(score_review(filled, verdicts), output_console())


def _audit(
    job: AuditJob, *, html: Path | None, review: Path | None, compared: Path | None, fail_under: float | None
) -> None:
    from orchestration.terminal.progress import AuditProgress
    from reward.offline.compare import compare, read_earlier
    from reward.offline.files import replace_file
    from reward.offline.report import render_report
    from reward.offline.review import refuse_filled, review_csv
    from reward.offline.run import audited_rows, refuse_inputs, run_audit
    from reward.offline.terminal import print_comparison, print_summary

    written = [path for path in (html, review) if path is not None]
    for path in written:
        refuse_inputs(path, job)
    if review is not None:
        refuse_filled(review)
    if compared is not None and compared.resolve() in (job.output.resolve(), job.summary_path.resolve()):
        raise ValueError(f"--compare: {compared} is this audit's own output; give another audit's")
    named = {"--out": job.output, "its summary": job.summary_path, "--compare": compared}
    _refuse_one_file_twice({**named, "--html": html, "--review": review})
    earlier = read_earlier(compared) if compared else None
    missing = dict.fromkeys(path.parent for path in (job.output, *written) if not path.parent.exists())
    try:
        with AuditProgress(error_console()) as progress:
            summary, changed = run_audit(job, progress)
    except KeyboardInterrupt:
        fail(f"stopped; {job.output} keeps what is done, and the same command goes on", code=130)
    console = output_console()
    print_summary(summary, console)
    if summary.unused_keys:
        print(unused_keys(summary.unused_keys))
    if earlier:
        print_comparison(compare(earlier, audited_rows(job)), console)
    if html is not None:
        replace_file(html, render_report(summary, audited_rows(job)))
    if review is not None:
        replace_file(review, review_csv(audited_rows(job)))
    print(_closing_line(summary, changed, [job.output, job.summary_path, *written]))
    if missing:
        print(f"New folders: {', '.join(map(str, missing))}")
    if fail_under is not None:
        _hold_against(summary, fail_under)


def _refuse_one_file_twice(paths: Mapping[str, Path | None]) -> None:
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is not None and (first := seen.setdefault(path.resolve(), option)) != option:
            raise ValueError(f"{option}: {path} is {first}, too; write to another file")


def _closing_line(summary: Summary, changed: bool, files: Sequence[Path]) -> str:
    from reward.offline.resume import FINAL_REASONS

    where = ", ".join(str(file) for file in files)
    num_unscored = summary.figures.outcomes["UNSCORED"]
    if not changed:
        return f"Nothing to do: all {summary.figures.num_rows:,} rows were audited before ({where})"
    rate = f", {summary.rows_per_s:,.1f} rows/s" if summary.rows_per_s else ""
    line = f"Audited {summary.num_audited:,} rows in {summary.audit_s:.1f} s{rate}: {where}"
    if num_unscored:
        reasons = ", ".join(summary.figures.unscored_reasons)
        line += f"\n{num_unscored:,} rows could not be scored ({reasons}); "
        is_final = all(reason in FINAL_REASONS for reason in summary.figures.unscored_reasons)
        line += "raise the limit, or give less" if is_final else "the same command tries them again"
    return line


def _hold_against(summary: Summary, share: float) -> None:
    """Ends with exit code 3 unless enough of all rows are SUPPORTED."""
    outcomes, num_rows = summary.figures.outcomes, summary.figures.num_rows
    others = ", ".join(f"{outcomes[name]:,} {name}" for name in ("REFUTED", "NO_CLAIMS", "UNSCORED"))
    has_passed = outcomes["SUPPORTED"] >= Fraction(str(share)) * num_rows  # 0.55 of 100 are 55
    found = f"{outcomes['SUPPORTED'] / num_rows:.3f} of {num_rows:,} rows are SUPPORTED ({others})"
    print(f"{'Passed' if has_passed else 'Failed'} --fail-under {share:g}: {found}")
    if not has_passed:
        raise typer.Exit(_BELOW_THRESHOLD)


def _explain(job: AuditJob, row_id: str, out: Path | None) -> None:
    """Prints how one row came to its verdict: the output's, if the row is still the same, else a new one."""
    from reward.offline.explain import explanation, find_row, find_verdict
    from reward.offline.run import audit_row

    row = find_row(job, row_id)
    verdict = find_verdict(out, row) if out is not None else None
    where = f"From {out}" if verdict else "Audited now; nothing was written"
    output_console().print(explanation(row, verdict or audit_row(job, row)))
    print(where)
