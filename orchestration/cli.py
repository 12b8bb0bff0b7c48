"""`march`: one command for audits, the reward server, data and training.

Nothing heavy is imported before a command needs it, so that help and a wrong option answer at once. What a
user can mend is one line on standard error and exit code 2; a training that stopped has exit code 1.
`march --debug` (or MARCH_DEBUG=1) shows the traceback of either.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from reward.offline.plan import AuditJob
    from reward.offline.run import Summary

_DEBUG = "MARCH_DEBUG"

app = typer.Typer(
    name="march",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Check answers against their documents, and train models that answer from nothing else.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; ends by SystemExit, but for errors that only we can mend."""
    warnings.filterwarnings("ignore", message="The pynvml package is deprecated", category=FutureWarning)
    try:
        app(args=arguments, prog_name="march")
    except Exception as error:
        from orchestration.errors import user_error

        line = user_error(error)
        if line is None or os.environ.get(_DEBUG):
            raise
        _fail(line, code=2)
    except SystemExit as ended:
        if isinstance(ended.code, str) and not os.environ.get(_DEBUG):
            _fail(ended.code, code=2)
        raise


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(f"march {importlib.metadata.version('march-pipeline')}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks, as {_DEBUG}=1 does.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    if debug:
        os.environ[_DEBUG] = "1"


@app.command()
def audit(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Rows to audit: a JSONL file, or RAGTruth's folder.")
    ],
    out: Annotated[Path, typer.Option(help="Verdicts, one a row, in order; resumed if it is there.")],
    row_format: Annotated[
        Literal["jsonl", "ragtruth"],
        typer.Option("--format", help='jsonl: {"id", "query", "documents": [{"id", "text"}], "response"}.'),
    ] = "jsonl",
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or name for vLLM here, or URL of an OpenAI-compatible server."),
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="The model's name, when --model is a URL.")] = None,
    prompts: Annotated[
        str | None, typer.Option(help="full, compact, or a YAML file like them.", show_default="full")
    ] = None,
    voters: Annotated[
        int | None, typer.Option(help="Independent checks of each claim; odd.", show_default="3")
    ] = None,
    max_documents_chars: Annotated[
        int | None, typer.Option(help="Most characters of a row's documents.", show_default="1000000")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to read, too.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First rows only.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1024, help="Audits at once, with a model.")] = 16,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again instead of resuming.")] = False,
) -> None:
    """Check every number of every response against its documents.

    Without --model, each number is looked up in the documents.

    With --model, it asks about every number, answers from the documents alone, and votes.

    The same command resumes what was interrupted.
    """
    from orchestration.settings import audit_sampler
    from reward.config import AuditConfig
    from reward.offline.plan import AuditJob
    from reward.offline.rows import RowFormat

    if model is None:
        _warn_ignored("without --model", model_name=model_name, prompts=prompts, voters=voters)
        prompts = voters = None
    given = {"prompts": prompts, "voters": voters, "max_documents_chars": max_documents_chars}
    settings = AuditConfig.model_validate({key: value for key, value in given.items() if value is not None})
    job = AuditJob(
        input=source,
        output=out,
        row_format=RowFormat(row_format),
        audit=settings,
        sampler=audit_sampler(model, model_name) if model else None,
        limit=limit,
        concurrency=concurrency,
        overwrite=overwrite,
    )
    _run_audit(job, html)


@app.command()
def serve(
    config: Annotated[Path | None, typer.Option(help="Settings in YAML; options override them.")] = None,
    openai_url: Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible server that is sampled, e.g. http://127.0.0.1:8000/v1."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Its model's name; without --openai-url a model for vLLM here.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port to listen on.", show_default="5001")
    ] = None,
    prompts: Annotated[
        str | None, typer.Option(help="full, compact, or a YAML file like them.", show_default="full")
    ] = None,
) -> None:
    """Run the reward server: audits over HTTP, for OpenRLHF and for any RAG system.

    The environment variable MARCH_REWARD_TOKEN holds the token that every caller must present.
    """
    from orchestration.settings import server_config

    options = {"host": host, "port": port, "prompts": prompts}
    settings = server_config(config, openai_url=openai_url, model=model, options=options)
    from reward.server import serve as run_server

    run_server(settings)


@app.command()
def prepare(
    dataset: Annotated[Literal["2wikimultihopqa"], typer.Argument(help="What the input is.")],
    source: Annotated[Path, typer.Option("--input", help="Rows in the official format: JSON list or JSONL.")],
    out: Annotated[Path, typer.Option(help="Folder for train.jsonl and manifest.json.")],
    prompts: Annotated[str, typer.Option(help="full, compact, or a YAML file like them.")] = "full",
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder or name of the policy's tokenizer, or tiny.")
    ] = None,
    max_prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Leave out longer prompts; needs --tokenizer.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First rows only.")] = None,
) -> None:
    """Turn a benchmark's rows into the rows that a training reads."""
    from itertools import islice

    from orchestration.progress import RowProgress
    from pipeline.config import TINY_POLICY
    from pipeline.data.prepare import file_sha256, write_rows
    from pipeline.data.twowiki import read_twowiki
    from reward.prompts import load_prompts

    prompt_set = load_prompts(prompts)
    with RowProgress(_errors(), "preparing") as progress:
        queries = list(islice(read_twowiki(source), limit))
        manifest = write_rows(
            progress.over(queries),
            out,
            prompts=prompt_set,
            tokenizer_path=str(TINY_POLICY) if tokenizer == "tiny" else tokenizer,
            max_prompt_tokens=max_prompt_tokens,
            source=dataset,
            source_sha256=file_sha256(source),
        )
    print(
        f"{manifest.num_rows:,} of {manifest.num_read:,} rows in {out / 'train.jsonl'}; left out: "
        f"{manifest.num_duplicates:,} duplicates, {manifest.num_overlong:,} with too long a prompt"
    )


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe (tiny, ...) or path of a YAML file.")],
    run_dir: Annotated[
        Path | None, typer.Option(help="The run's folder; resumed if it is there.", show_default="runs/NAME")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. ppo.kl_coef=0.01."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print OpenRLHF's command and exit.")] = False,
) -> None:
    """Train a policy with MARCH on OpenRLHF, or resume a training."""
    from pipeline.train import train as run_training

    _finish(lambda: run_training(recipe, run_dir=run_dir, overrides=overrides or [], dry_run=dry_run))


@app.command()
def demo(
    run_dir: Annotated[Path, typer.Option(help="Where the run and its report go.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    steps: Annotated[int, typer.Option(min=1, help="PPO steps.")] = 40,
) -> None:
    """Train the tiny policy on this machine's CPUs and show what it learned."""
    from pipeline.tiny.demo import run_demo

    _finish(lambda: run_demo(run_dir=run_dir, seed=seed, steps=steps))


def _run_audit(job: AuditJob, html: Path | None) -> None:
    from rich.console import Console

    from orchestration.progress import AuditProgress
    from reward.offline.report import print_summary, render_report
    from reward.offline.run import audited_rows, refuse_inputs, replace_file, run_audit

    if html is not None:
        refuse_inputs(html, job)
    try:
        with AuditProgress(_errors()) as progress:
            summary, changed = run_audit(job, progress)
    except KeyboardInterrupt:
        _fail(f"stopped; {job.output} keeps what is done, and the same command goes on", code=130)
    print_summary(summary, Console())
    if html is not None:
        page = render_report(summary, audited_rows(job))
        if not html.exists() or html.read_text(encoding="utf-8") != page:
            html.parent.mkdir(parents=True, exist_ok=True)
            replace_file(html, page)
    print(_closing_line(summary, changed, [job.output, job.summary_path, *([html] if html else [])]))


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


def _finish(command: Callable[[], int]) -> NoReturn:
    """Ends with a training's exit code; a training that stopped says why in one line."""
    from pipeline.train import TrainingFailedError

    try:
        code = command()
    except TrainingFailedError as error:
        if os.environ.get(_DEBUG):
            raise
        _fail(str(error), code=1)
    raise typer.Exit(code)


def _warn_ignored(where: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            print(f"march: --{name.replace('_', '-')} has no effect {where}", file=sys.stderr)


def _errors() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _fail(line: str, *, code: int) -> NoReturn:
    print(f"march: {' '.join(line.split())}", file=sys.stderr)
    raise SystemExit(code)
