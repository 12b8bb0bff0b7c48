"""`march evaluate` and `march best`.

Inspect runs, resumes and shows it. Exit codes: 0; 2 for what a user can fix, a server that is down included;
130 when it was interrupted. In each case what was paid for is kept, and the same command goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.commands import evaluate_options as options
from orchestration.terminal.messages import fail, warn_ignored

if TYPE_CHECKING:
    from pipeline.evaluate.compare import Comparison
    from pipeline.evaluate.plan import EvaluationJob, Prices
    from pipeline.evaluate.results import Manifest


@dataclass(frozen=True)
class Wanted:
    """What shall be written or said beside the results."""

    html: Path | None
    compare: Path | None
    mlflow: str | None
    mlflow_run: str | None


def evaluate(
    model: options.Model,
    benchmark: options.Benchmarks,
    out: options.Out,
    style: options.Style = "plain",
    limit: options.Limit = None,
    concurrency: options.Concurrency = 16,
    seed: options.Seed = 0,
    audit: options.Audit = "lexical",
    only: options.Only = None,
    dry_run: options.DryRun = False,
    overwrite: options.Overwrite = False,
    timeout_s: options.TimeoutS = 600.0,
    assignments: options.Assignments = None,
    model_name: options.ModelName = None,
    generations: options.Generations = 8,
    max_tokens: options.MaxTokens = 8192,
    judge: options.Judge = None,
    judge_model: options.JudgeModel = None,
    judge_key_env: options.JudgeKeyEnv = "OPENAI_API_KEY",
    no_cache: options.NoCache = False,
    price_in: options.PriceIn = 0.0,
    price_out: options.PriceOut = 0.0,
    model_price_in: options.ModelPriceIn = 0.0,
    model_price_out: options.ModelPriceOut = 0.0,
    html: options.Html = None,
    compare: options.Compare = None,
    mlflow: options.Mlflow = None,
    mlflow_run: options.MlflowRun = None,
) -> None:
    """Ask a model the questions of benchmarks, have a judge read the answers, and say how sure it is.

    The same command resumes what was interrupted.
    """
    from orchestration.settings.evaluate import evaluation_job, judge_config
    from pipeline.redaction import refuse_password

    refuse_password("--mlflow", mlflow)
    named: dict[str, object] = {
        "out": out,
        "style": style,
        "limit": limit,
        "concurrency": concurrency,
        "audit": audit,
    }
    named |= {"only": only, "overwrite": overwrite, "num_generations": generations, "cache": not no_cache}
    job = evaluation_job(
        model,
        benchmark,
        model_name=model_name,
        judge=judge_config(judge, judge_model, key_env=judge_key_env),
        timeout_s=timeout_s,
        seed=seed,
        max_tokens=max_tokens,
        named=named,
        assignments=assignments or [],
    )
    _require_inspect()
    from pipeline.evaluate.plan import Prices

    prices = Prices(
        model_in=model_price_in, model_out=model_price_out, judge_in=price_in, judge_out=price_out
    )
    if dry_run:
        warn_ignored("with --dry-run", html=html, compare=compare, mlflow=mlflow, overwrite=overwrite)
        _expect(job, prices)
    else:
        warn_ignored(
            "without --dry-run",
            price_in=price_in,
            price_out=price_out,
            model_price_in=model_price_in,
            model_price_out=model_price_out,
        )
        _evaluate(job, Wanted(html, compare, mlflow, mlflow_run))


def best(evaluations: options.Evaluations) -> None:
    """Name the best checkpoint by its average, and those that cannot be distinguished from it."""
    from rich.console import Console

    from pipeline.evaluate.compare import choose_best
    from pipeline.evaluate.report import print_choice

    print_choice(choose_best(evaluations), Console())


def _require_inspect() -> None:
    from importlib.util import find_spec

    if find_spec("inspect_ai") is None:
        raise ValueError("march evaluate: needs Inspect; pip install 'march-pipeline[evaluate]'")


def _expect(job: EvaluationJob, prices: Prices) -> None:
    """Prints what an evaluation will take."""
    from rich.console import Console

    from pipeline.evaluate.plan import expect
    from pipeline.evaluate.report import print_expected

    print_expected(expect(job), prices, Console())


def _evaluate(job: EvaluationJob, wanted: Wanted) -> None:
    from rich.console import Console

    from pipeline.evaluate.compare import compare
    from pipeline.evaluate.plan import Stage
    from pipeline.evaluate.report import print_manifest
    from pipeline.evaluate.results import read_manifest
    from pipeline.evaluate.run import run_evaluation

    if wanted.compare is not None:
        read_manifest(wanted.compare)  # before anything is spent
    console = Console()
    try:
        display = "rich" if console.is_terminal else "none"
        outcome = run_evaluation(job, display=display, bundle=_viewer(wanted))
    except KeyboardInterrupt:
        fail(f"stopped; {job.out} keeps what is done, and the same command goes on", code=130)
    manifest = outcome.manifest
    if manifest is None:
        print(f"{outcome.num_tokens:,} tokens; {job.out} keeps the answers, and --only judge goes on")
        return
    comparison = compare(job.out, wanted.compare) if wanted.compare is not None else None
    print_manifest(manifest, comparison, console)
    files = [job.results_path, *_write(job, wanted, manifest, comparison)]
    print(f"{outcome.num_tokens:,} tokens in this run: {', '.join(str(file) for file in files)}")
    print(f"Every item: inspect view --log-dir {job.log_dir(Stage.JUDGE)}")


def _viewer(wanted: Wanted) -> Path | None:
    """The folder of Inspect's viewer with the logs, beside the page."""
    return wanted.html.with_name(f"{wanted.html.stem}-items") if wanted.html else None


def _write(
    job: EvaluationJob, wanted: Wanted, manifest: Manifest, comparison: Comparison | None
) -> list[Path]:
    """Writes the page and logs to MLflow; returns what was written."""
    from pipeline.evaluate.plan import Stage

    written = []
    if wanted.html is not None:
        from pipeline.evaluate.report import render_report
        from reward.offline.files import replace_file

        viewer = _viewer(wanted)
        log_dir = str(job.log_dir(Stage.JUDGE))
        address = f"{viewer.name}/index.html" if viewer else ""
        replace_file(wanted.html, render_report(manifest, comparison, log_dir=log_dir, viewer=address))
        written.append(wanted.html)
    if wanted.mlflow is not None:
        from pipeline.evaluate.track import log_evaluation

        run_id = log_evaluation(wanted.mlflow, job, manifest, page=wanted.html, run_id=wanted.mlflow_run)
        print(f"MLflow run {run_id} at {wanted.mlflow}")
    return written
