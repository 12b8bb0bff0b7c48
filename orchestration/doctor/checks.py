"""Which checks there are; one that crashes is one failed finding, and the others go on."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from orchestration.doctor import machine
from orchestration.doctor.fit import check_fit, gather_resources
from orchestration.doctor.packages import check_packages, gather_packages
from orchestration.doctor.report import Finding, Section, failed, skipped
from orchestration.doctor.s3_store import check_store
from orchestration.terminal.messages import user_error
from pipeline.artifacts.settings import StoreSettings
from pipeline.settings.recipe import Recipe

_REQUEST_TIMEOUT_S = 5.0
_MOST_CHARS = 400

Check = Callable[[], Iterable[Finding]]


def run_sections(
    store: StoreSettings, run_dir: Path, recipe: Recipe | None, *, only: Sequence[str], debug: bool = False
) -> tuple[Section, ...]:
    """Runs the checks that `only` names, all when it is empty; with `debug` errors of ours are raised.

    Raises:
        ValueError: `only` names a check that there is not.
    """
    here = gather_packages()
    sections: dict[str, dict[str, Check]] = {
        "this machine": {
            "packages": lambda: check_packages(here),
            "gpu": lambda: machine.check_gpus(machine.gather_gpus(), here),
            "machine": lambda: machine.check_machine(machine.gather_machine(), here),
            "disk": lambda: machine.check_disks(machine.gather_disks(machine.places(run_dir, store)), here),
        },
        "artifact store": {"s3": lambda: check_store(store, timeout_s=_REQUEST_TIMEOUT_S)},
        f"recipe {recipe.name}" if recipe else "recipe": {"recipe": lambda: _check_recipe(recipe, run_dir)},
    }
    every = [name for checks in sections.values() for name in checks]
    if unknown := [name for name in only if name not in every]:
        raise ValueError(f"--only: {unknown[0]!r} is no check; there are {', '.join(every)}")
    return tuple(
        Section(
            title=title,
            findings=tuple(one for name in chosen for one in findings_of(name, checks[name], debug=debug)),
        )
        for title, checks in sections.items()
        if (chosen := [name for name in checks if not only or name in only])
    )


def findings_of(name: str, check: Check, *, debug: bool = False) -> tuple[Finding, ...]:
    try:
        return tuple(check())
    except Exception as error:
        if debug:
            raise
        line = user_error(error)
        problem = " ".join((line or f"{type(error).__name__}: {error}").split())[:_MOST_CHARS]
        return (failed(name, problem, "" if line else "MARCH_DEBUG=1 shows where; please report it"),)


def _check_recipe(recipe: Recipe | None, run_dir: Path) -> Iterable[Finding]:
    if recipe is None:
        return [skipped("recipe", "needs --recipe")]
    return check_fit(recipe, gather_resources(run_dir))
