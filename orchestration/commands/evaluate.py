"""`march evaluate` and `march best`.

Inspect runs, resumes and shows it. Exit codes: 0; 2 for what a user can fix, a server that is down included;
130 when it was interrupted. In each case what was paid for is kept, and the same command goes on.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orchestration.commands.options import set_option
from orchestration.terminal.messages import error_console, fail, output_console, table_console, warn_ignored

if TYPE_CHECKING:
    from pipeline.evaluate.plan import EvaluationJob

_tested = partial(typer.Option, rich_help_panel="The model under test")
_judge = partial(typer.Option, rich_help_panel="The judge")
_cost = partial(typer.Option, rich_help_panel="Cost")
_people = partial(typer.Option, rich_help_panel="For people")


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="URL of an OpenAI-compatible server; a model's folder or name, for vLLM here; or an MLflow "
            "URI (models:/NAME/1, runs:/ID/PATH).",
        ),
    ],
    benchmark: Annotated[
        list[str],
        typer.Option(metavar="NAME=PATH", help="A benchmark and its official files; several times."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for everything that is kept; resumed if it is there.")],
    style: Annotated[
        Literal["plain", "cot", "10-shot"], typer.Option(help="How the Solver is asked.")
    ] = "plain",
    limit: Annotated[int | None, typer.Option(min=1, help="First items of each benchmark only.")] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1024, help="Items at once; each is --generations requests.")
    ] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Of generations, judgements and audits.")] = 0,
    audit: Annotated[
        Literal["lexical", "model", "none"],
        typer.Option(help="Audit of the answers' numbers: looked up, or by the judge's model."),
    ] = "lexical",
    only: Annotated[
        Literal["generate", "judge"] | None,
        typer.Option(help="This stage alone, so that model and judge need not run together."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it will take, and ask nothing.")
    ] = False,
    assignments: Annotated[
        list[str] | None,
        set_option(
            help="Any other setting, such as generation.top_k=20, model.timeout_s=60, cache=false or "
            "audit_settings.voters=5 (EvaluationJob)."
        ),
    ] = None,
    model_name: Annotated[str | None, _tested(help="The model's name, when MODEL is a URL.")] = None,
    generations: Annotated[int, _tested(min=1, max=128, help="Of each prompt; the majority decides.")] = 8,
    judge: Annotated[str | None, _judge(help="URL of an OpenAI-compatible server.")] = None,
    judge_model: Annotated[str | None, _judge(help="The judge's name on that server.")] = None,
    price_in: Annotated[float, _cost(min=0, help="Judge's price of a million prompt tokens.")] = 0.0,
    price_out: Annotated[float, _cost(min=0, help="Judge's price of a million written tokens.")] = 0.0,
    model_price_in: Annotated[float, _cost(min=0, help="The same of the model.")] = 0.0,
    model_price_out: Annotated[float, _cost(min=0, help="The same of the model.")] = 0.0,
    html: Annotated[Path | None, _people(help="Write a page to read, too.")] = None,
    compare: Annotated[
        Path | None,
        _people(metavar="DIR", help="Another evaluation's folder: paired differences on the same items."),
    ] = None,
    mlflow: Annotated[
        str | None, _people(metavar="URI", help="Log to this MLflow server or sqlite: URI.")
    ] = None,
    mlflow_run: Annotated[
        str | None, _people(metavar="ID", help="Log into this run, e.g. a training's.")
    ] = None,
) -> None:
    """Ask a model the questions of benchmarks, have a judge read the answers, and say how sure it is.

    The same command resumes what was interrupted.
    """
    from orchestration.settings.evaluate import (
        EvaluationSettings,
        benchmark_paths,
        evaluation_job,
        judge_settings,
    )
    from pipeline.redaction import refuse_password

    refuse_password("--mlflow", mlflow)
    given = EvaluationSettings.model_validate(
        {
            "benchmarks": benchmark_paths(benchmark),
            "judge": judge_settings(judge, judge_model),
            "style": style,
            "limit": limit,
            "generations": generations,
            "seed": seed,
            "audit": audit,
            "concurrency": concurrency,
            "overrides": assignments or (),
        }
    )
    job = evaluation_job(given, model, model_name=model_name, out=out, only=only)
    if job.model.kind == "vllm" and only != "judge":
        from reward.samplers.token_ids import require_tokenizer_files

        require_tokenizer_files(job.model.model, field="MODEL")  # before minutes of reading and loading
    if find_spec("inspect_ai") is None:
        raise ValueError("inspect_ai is not installed; pip install '.[evaluate]'")
    if dry_run:
        from pipeline.evaluate.plan import make_plan
        from pipeline.evaluate.report import print_expected

        warn_ignored("with --dry-run", html=html, compare=compare, mlflow=mlflow)
        prices = [(model_price_in, model_price_out), (price_in, price_out)]
        print_expected(make_plan(job), prices, output_console())
    else:
        warn_ignored(
            "without --dry-run",
            price_in=price_in,
            price_out=price_out,
            model_price_in=model_price_in,
            model_price_out=model_price_out,
        )
        _evaluate(job, html=html, compared=compare, mlflow=mlflow, mlflow_run=mlflow_run)


def best(
    evaluations: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Evaluations, from the earliest checkpoint to the last."),
    ],
) -> None:
    """Name the best checkpoint by its average, and those that cannot be distinguished from it."""
    from pipeline.evaluate.compare import choose_best
    from pipeline.evaluate.report import print_choice

    print_choice(choose_best(evaluations), table_console())


def _evaluate(
    job: EvaluationJob,
    *,
    html: Path | None,
    compared: Path | None,
    mlflow: str | None,
    mlflow_run: str | None,
) -> None:
    from orchestration.terminal.progress import AnswerProgress
    from pipeline.evaluate.compare import compare
    from pipeline.evaluate.plan import Stage
    from pipeline.evaluate.report import print_manifest, render_report
    from pipeline.evaluate.results import read_manifest
    from pipeline.evaluate.run import run_evaluation
    from reward.offline.files import replace_file

    if mlflow is not None:
        from orchestration.registry.evaluated import log_evaluation, require_server

        require_server(mlflow, mlflow_run)
    other = read_manifest(compared) if compared is not None else None
    console, files = output_console(), [job.results_path]
    viewer = html.with_name(f"{html.stem}-items") if html else None  # Inspect's, with the logs
    try:
        if console.is_terminal:
            manifest, num_tokens = run_evaluation(job, compared=other, display="rich", bundle=viewer)
        else:
            with AnswerProgress(error_console()) as bar:
                manifest, num_tokens = run_evaluation(job, compared=other, tell=bar.tell, bundle=viewer)
    except KeyboardInterrupt:
        fail(f"stopped; {job.out} keeps what is done, and the same command goes on", code=130)
    if manifest is None:
        print(f"{num_tokens:,} tokens; {job.out} keeps the answers, and --only judge goes on")
        return
    comparison = compare(job.out, compared) if compared is not None else None
    print_manifest(manifest, comparison, console)
    log_dir = str(job.log_dir(Stage.JUDGE))
    if html is not None and viewer is not None:
        page = render_report(manifest, comparison, log_dir=log_dir, viewer=f"{viewer.name}/index.html")
        replace_file(html, page)
        files.append(html)
    if mlflow is not None:
        run_id = log_evaluation(mlflow, job, manifest, page=html, run_id=mlflow_run)
        print(f"MLflow run {run_id} at {mlflow}")
    print(f"{num_tokens:,} tokens in this run: {', '.join(str(file) for file in files)}")
    print(f"Every item: inspect view --log-dir {log_dir}")
