"""Where a demo's training starts: a checkpoint of the repository, or a real model, fetched and warmed up."""

from pathlib import Path

from rich.console import Console

from pipeline.models.cache import cached, read_origin
from pipeline.settings.recipe import Recipe
from pipeline.warmup.run import MODEL, warmup

WARMUP = "warmup"  # folder of the demo's run

# Seconds on two cores of an AMD EPYC with AVX512-BF16, SmolLM2-135M (docs/log.md).
_S_PER_DEMONSTRATION, _S_PER_MEASURED_ROW, _S_PER_ANSWER, _S_AROUND = 1.05, 0.6, 1.5, 120
_GIB, _GIB_WITH_CRITIC = 14, 21


def is_warmed_up_first(recipe: Recipe) -> bool:
    """Whether a start must be made: real text is asked, of a model that no warm-up made."""
    if recipe.oracle != "wiki":
        return False
    origin = read_origin(Path(recipe.model_path))
    return origin is None or origin.source != "warmup"


def make_start(console: Console, name: str, recipe: Recipe, run_dir: Path, overrides: list[str]) -> Path:
    """The folder of the model that the training starts from; resumes a warm-up that was interrupted.

    Raises:
        ValueError, FileNotFoundError: the model cannot be had, or a warm-up of other settings is there.
        TrainingFailedError: the warm-up stopped.
    """
    if cached(recipe.model) is not None:
        from pipeline.models.fetch import Request, fetch

        _, origin, is_new = fetch(Request(recipe.model), say=lambda line: console.print(line, style="dim"))
        if is_new:
            console.print(
                f"fetched {recipe.model} {origin.version} from {origin.location} ({origin.licence})"
            )
    folder = run_dir / WARMUP
    if not (folder / MODEL / "config.json").is_file():
        console.print("warming up: supervised fine-tuning on what each role should write")
    warmup(name, run_dir=folder, overrides=overrides)  # a finished one of other settings is refused
    return (folder / MODEL).resolve()


def say_what_it_takes(console: Console, recipe: Recipe, num_rows: int) -> None:
    steps = recipe.data.max_steps or 0
    answers = recipe.rollout.batch_size * recipe.rollout.samples_per_query
    phases = {
        "warm-up": recipe.warmup.num_demonstrations * _S_PER_DEMONSTRATION,
        "two measurements": 2 * num_rows * _S_PER_MEASURED_ROW,
        f"{steps} steps of {answers} answers": steps * answers * _S_PER_ANSWER + _S_AROUND,
    }
    shares = ", ".join(f"{name} {seconds / 60:.0f}" for name, seconds in phases.items())
    minutes = sum(phases.values()) / 60
    gib = _GIB_WITH_CRITIC if recipe.has_critic else _GIB
    console.print(
        f"{recipe.name}: about {minutes:.0f} minutes on two cores of an AMD EPYC ({shares}), more on older "
        f"ones; {gib} GiB of memory, 4 GB of disk. What is done is kept: the same command resumes it."
    )
