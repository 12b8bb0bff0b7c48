"""The options of `march evaluate` and `march best`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_MODEL, _JUDGE, _COST = "The model under test", "The judge", "Cost"
_PEOPLE = "For people"

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="URL of an OpenAI-compatible server; a model's folder or name, for vLLM here; or an MLflow URI "
        "(models:/NAME/1, runs:/ID/PATH).",
    ),
]
Benchmarks = Annotated[
    list[str],
    typer.Option(
        "--benchmark", metavar="NAME=PATH", help="A benchmark and its official files; several times."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for everything that is kept; resumed if it is there.")]
Style = Annotated[Literal["plain", "cot", "10-shot"], typer.Option(help="How the Solver is asked.")]
Limit = Annotated[int | None, typer.Option(min=1, help="First items of each benchmark only.")]
Concurrency = Annotated[int, typer.Option(min=1, max=1024, help="Requests at once.")]
Seed = Annotated[int, typer.Option(min=0, help="Of generations and judgements.")]
Audit = Annotated[
    Literal["lexical", "model", "none"],
    typer.Option(help="Audit of the answers' numbers: looked up, or by the judge's model."),
]
Only = Annotated[
    Literal["generate", "judge"] | None,
    typer.Option(help="This stage alone, so that model and judge need not run together."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other setting, such as generation.top_k=20, judge_retries=4, "
        "judging.max_tokens=1024 or audit_settings.voters=5 (EvaluationJob).",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it will take, and ask nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start again instead of resuming.")]

ModelName = Annotated[
    str | None, typer.Option(help="The model's name, when MODEL is a URL.", rich_help_panel=_MODEL)
]
Generations = Annotated[
    int, typer.Option(min=1, max=128, help="Of each prompt; the majority decides.", rich_help_panel=_MODEL)
]
MaxTokens = Annotated[int, typer.Option(min=1, help="Most tokens of one generation.", rich_help_panel=_MODEL)]
TimeoutS = Annotated[float, typer.Option("--timeout", help="Seconds for one request, retries included.")]

Judge = Annotated[
    str | None, typer.Option(help="URL of an OpenAI-compatible server.", rich_help_panel=_JUDGE)
]
JudgeModel = Annotated[
    str | None, typer.Option(help="The judge's name on that server.", rich_help_panel=_JUDGE)
]
JudgeKeyEnv = Annotated[
    str, typer.Option(help="Environment variable that holds its key.", rich_help_panel=_JUDGE)
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Ask for every judgement, and keep none in Inspect's cache for other evaluations.",
        rich_help_panel=_JUDGE,
    ),
]

PriceIn = Annotated[
    float, typer.Option(min=0, help="Judge's price of a million prompt tokens.", rich_help_panel=_COST)
]
PriceOut = Annotated[float, typer.Option(min=0, help="And of written tokens.", rich_help_panel=_COST)]
ModelPriceIn = Annotated[float, typer.Option(min=0, help="The model's.", rich_help_panel=_COST)]
ModelPriceOut = Annotated[float, typer.Option(min=0, rich_help_panel=_COST)]

Html = Annotated[Path | None, typer.Option(help="Write a page to read, too.", rich_help_panel=_PEOPLE)]
Compare = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Another evaluation's folder: paired differences on the same items.",
        rich_help_panel=_PEOPLE,
    ),
]
Mlflow = Annotated[
    str | None,
    typer.Option(metavar="URI", help="Log to this MLflow server or sqlite: URI.", rich_help_panel=_PEOPLE),
]
MlflowRun = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Log into this run, e.g. a training's.", rich_help_panel=_PEOPLE),
]
Evaluations = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="Evaluations, from the earliest checkpoint to the last."),
]
