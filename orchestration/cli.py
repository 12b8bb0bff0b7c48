"""`march`: one command for audits, the reward server, data and training.

Nothing heavy is imported before a command needs it, so that help and a wrong option answer at once. What a
user can fix is one line on standard error and exit code 2; a training that stopped has exit code 1.
`march --debug` (or MARCH_DEBUG=1) shows the traceback of either.
"""

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from orchestration.commands.artifacts import artifacts
from orchestration.commands.audit import audit, review
from orchestration.commands.base_model import base_model
from orchestration.commands.doctor import doctor
from orchestration.commands.evaluate import best, evaluate
from orchestration.commands.init import init
from orchestration.commands.inspect import inspect
from orchestration.commands.lineage import lineage, reproduce
from orchestration.commands.options import Overrides
from orchestration.commands.prepare import prepare
from orchestration.commands.promote import approve, promote, register, registered, reject, rollback
from orchestration.commands.recipe import recipe
from orchestration.commands.retrain import retrain
from orchestration.commands.schedule import schedule, status
from orchestration.commands.serve import serve
from orchestration.commands.serve_model import serve_model
from orchestration.commands.world import world
from orchestration.terminal.messages import fail, user_error

_DEBUG = "MARCH_DEBUG"
_SECRETS = ("KEY", "KEY_ID", "TOKEN", "PASSWORD", "USERNAME", "SECRET")  # last words of their names


class _Commands(TyperGroup):
    """The commands; what is wrong with an option's value says which value that is."""

    def invoke(self, ctx: Any) -> Any:
        from pydantic import ValidationError

        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValidationError):
                found = f"{error.__cause__.errors()[0]['input']!r:.60}"
                error.message += "" if found in error.message else f" (found {found})"
            raise


app = typer.Typer(
    name="march",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Check answers against their documents, and train models that answer from nothing else.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line; ends by SystemExit, but for errors that only we can fix."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal cannot show ends no work, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # else each new database is reported
    warnings.filterwarnings("ignore", message="The pynvml package is deprecated", category=FutureWarning)
    _end_secrets_without_a_newline()
    try:
        app(args=arguments, prog_name="march")
    except Exception as error:
        line = user_error(error)
        if line is None or os.environ.get(_DEBUG):
            raise
        fail(line, code=2)
    except SystemExit as ended:
        if isinstance(ended.code, str) and not os.environ.get(_DEBUG):
            fail(ended.code, code=2)
        raise


def _end_secrets_without_a_newline() -> None:
    """A secret made from a file often ends in a newline, with which S3, MLflow and httpx refuse it."""
    for name, value in os.environ.items():
        if name.endswith(_SECRETS) and value.endswith("\n"):
            os.environ[name] = value.removesuffix("\n").removesuffix("\r")


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


_AUDIT, _TRAIN, _EVALUATE, _LOOP, _KEPT, _MACHINE = (
    "Audit", "Train", "Evaluate", "Retrain", "Models, and where they are kept", "This machine",
)  # fmt: skip
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    _AUDIT: (audit, review, serve),
    _TRAIN: (prepare, world, inspect),
    _EVALUATE: (evaluate, best),
    _LOOP: (init, retrain, schedule, status),
    _MACHINE: (doctor,),
}
_MODEL_COMMANDS: dict[str, Callable[..., None]] = {
    "register": register,
    "promote": promote,
    "approve": approve,
    "reject": reject,
    "rollback": rollback,
    "list": registered,
    "serve": serve_model,
    "lineage": lineage,
    "reproduce": reproduce,
}
model = typer.Typer(
    name="model",
    no_args_is_help=True,
    help="Models of the registry: register and promote, list and serve, what made them.",
)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
for _name, _command in _MODEL_COMMANDS.items():
    model.command(_name)(_command)
for _group, _panel in ((recipe, _TRAIN), (base_model, _TRAIN), (model, _KEPT), (artifacts, _KEPT)):
    app.add_typer(_group, rich_help_panel=_panel)


@app.command(rich_help_panel=_AUDIT)
def token(
    name: Annotated[str, typer.Argument(help="Whose token it is; the audit log shows this name.")],
) -> None:
    """Make a token of the reward server, shown once on standard error; print its line for `tokens_file`."""
    from reward.serving.tokens import new_token

    made = new_token(name)
    typer.echo(f"The token, for the caller; it is shown this once:\n{made.token}", err=True)
    typer.echo("Its line, for the server's tokens_file:", err=True)
    typer.echo(made.line)


@app.command(rich_help_panel=_TRAIN)
def train(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe (tiny, ...) or path of a YAML file.")],
    run_dir: Annotated[
        Path | None, typer.Option(help="The run's folder; resumed if it is there.", show_default="runs/NAME")
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print OpenRLHF's command and what it will take.")
    ] = False,
) -> None:
    """Train a policy with MARCH on OpenRLHF, or resume a training."""
    from pipeline.train import train as run_training

    _finish(lambda: run_training(recipe, run_dir=run_dir, overrides=overrides or [], dry_run=dry_run))


@app.command(rich_help_panel=_TRAIN)
def record(run_dir: Annotated[Path, typer.Argument(help="The folder of a training or a warm-up.")]) -> None:
    """Send MLflow what it lacks of a run: figures, rollouts, how the run ended."""
    from pipeline.launch.run_lock import only_run_in
    from pipeline.record.mlflow_sender import missing, send
    from pipeline.record.tracking import RUN_FILE

    if not (run_dir / RUN_FILE).is_file():  # before a lock is left there
        raise ValueError(f"{run_dir}: has no {RUN_FILE}; give the folder of a training or a warm-up")
    with only_run_in(run_dir, "march record"):
        lacked = missing(run_dir)
        send(run_dir)
    print(f"{run_dir}: MLflow now has {lacked}" if lacked else f"{run_dir}: MLflow lacked nothing")


@app.command(rich_help_panel=_TRAIN)
def warmup(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, or path of a YAML file.")],
    run_dir: Annotated[
        Path | None,
        typer.Option(help="The run's folder; resumed if it is there.", show_default="runs/NAME-warmup"),
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the demonstrations to look at, and train nothing.")
    ] = False,
) -> None:
    """Teach a model the three roles' formats before it is trained, or go on with it."""
    from pipeline.warmup.run import warmup as run_warmup

    _finish(lambda: run_warmup(recipe, run_dir=run_dir, overrides=overrides or [], dry_run=dry_run))


@app.command(rich_help_panel=_TRAIN)
def demo(
    run_dir: Annotated[Path, typer.Option(help="Where the run and its report go.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="PPO steps.", show_default="the recipe's")] = None,
    recipe: Annotated[
        str, typer.Option(help="A recipe with known answers: tiny, tiny_kinds, smollm2, or a YAML file.")
    ] = "tiny",
    rows: Annotated[int, typer.Option(min=1, help="Held-out rows that are measured.")] = 400,
    overrides: Overrides = None,
) -> None:
    """Measure a policy, train it on this machine, measure it again, and show what it learned."""
    from pipeline.demo.run import run_demo

    _finish(
        lambda: run_demo(
            run_dir=run_dir, seed=seed, steps=steps, recipe=recipe, overrides=overrides or [], num_rows=rows
        )
    )


def _finish(command: Callable[[], int]) -> NoReturn:
    """Ends with a training's exit code; a training that stopped says why in one line."""
    from pipeline.record.run import TrainingFailedError

    try:
        code = command()
    except TrainingFailedError as error:
        if os.environ.get(_DEBUG):
            raise
        fail(str(error), code=error.exit_code)
    except KeyboardInterrupt:
        fail("stopped; the same command goes on from the last checkpoint", code=130)
    raise typer.Exit(code)
