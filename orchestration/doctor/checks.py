"""Which checks there are; all run at the same time, each with its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.disk import check_disks, gather_disks, places
from orchestration.doctor.fit import check_fit, gather_resources
from orchestration.doctor.gpu import check_gpus, gather_gpus
from orchestration.doctor.machine import check_machine, gather_machine
from orchestration.doctor.packages import check_packages, gather_packages, installation_of
from orchestration.doctor.report import Finding, Section, failed, skipped
from orchestration.doctor.s3_store import check_store
from orchestration.terminal.errors import user_error
from pipeline.artifacts.settings import StoreSettings
from pipeline.settings.recipe import Recipe

_REQUEST_TIMEOUT_S = 5.0
_MOST_CHARS = 400
_LOOK_AT_LOG = "MARCH_DEBUG=1 shows where; please report it"

Check = Callable[[], Iterable[Finding]]


@dataclass(frozen=True)
class Targets:
    """What the command line and the environment name."""

    store: StoreSettings
    run_dir: Path
    recipe: Recipe | None = None


def run_sections(
    targets: Targets, *, only: Sequence[str], timeout_s: float, debug: bool = False
) -> tuple[Section, ...]:
    """Runs the checks, by section of the report.

    Args:
        targets: What is looked at.
        only: Names of the checks that are run; all when empty.
        timeout_s: Of each check.
        debug: Whether an error that only we can fix is raised.

    Raises:
        ValueError: `only` names a check that there is not.
    """
    sections = _sections(targets)
    every = {name: check for checks in sections.values() for name, check in checks.items()}
    if unknown := [name for name in only if name not in every]:
        raise ValueError(f"--only: {unknown[0]!r} is no check; there are {', '.join(every)}")
    chosen = {name: check for name, check in every.items() if not only or name in only}
    found = run_checks(chosen, timeout_s=timeout_s, debug=debug)
    return tuple(
        Section(title=title, findings=tuple(one for name in checks for one in found.get(name, ())))
        for title, checks in sections.items()
        if checks.keys() & chosen.keys()
    )


def run_checks(
    checks: Mapping[str, Check], *, timeout_s: float, debug: bool = False
) -> dict[str, tuple[Finding, ...]]:
    """Returns the findings of each check; one that takes longer or crashes is one failed finding."""
    ended: dict[str, tuple[Finding, ...] | Exception] = {}

    def run(name: str, check: Check) -> None:
        try:
            ended[name] = tuple(check())
        except Exception as error:
            ended[name] = error

    # Daemon threads: one that hangs must not keep the command from ending.
    threads = [threading.Thread(target=run, args=one, daemon=True) for one in checks.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return {name: _findings(name, ended.get(name), timeout_s, debug=debug) for name in checks}


def _findings(
    name: str, ended: tuple[Finding, ...] | Exception | None, timeout_s: float, *, debug: bool
) -> tuple[Finding, ...]:
    if isinstance(ended, tuple):
        return ended
    if ended is None:
        return (failed(name, f"no answer within {timeout_s:g} s", "raise --timeout, or look what hangs"),)
    if debug:
        raise ended
    line = user_error(ended)
    problem = " ".join((line or f"{type(ended).__name__}: {ended}").split())
    return (failed(name, problem[:_MOST_CHARS], "" if line else _LOOK_AT_LOG),)


def _sections(targets: Targets) -> dict[str, dict[str, Check]]:
    """The checks by name, under the titles of the report."""
    facts = gather_packages()
    here, recipe = installation_of(facts), targets.recipe
    return {
        "this machine": {
            "packages": lambda: check_packages(facts),
            "gpu": lambda: check_gpus(gather_gpus(), here),
            "machine": lambda: check_machine(gather_machine(), here),
            "disk": lambda: check_disks(gather_disks(places(targets.run_dir, targets.store, here)), here),
        },
        "artifact store": {"s3": lambda: check_store(targets.store, timeout_s=_REQUEST_TIMEOUT_S)},
        f"recipe {recipe.name}" if recipe else "recipe": {"recipe": lambda: _recipe(targets)},
    }


def _recipe(targets: Targets) -> Iterable[Finding]:
    if targets.recipe is None:
        return [skipped("recipe", "needs --recipe")]
    return check_fit(targets.recipe, gather_resources(targets.run_dir))
