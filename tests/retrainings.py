"""Shared by the tests of retraining: a loop with scripted stages, registry and ledger on a local store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from orchestration.promotion.policy import GatePolicy
from orchestration.registry.decisions import Decisions
from orchestration.retrain.inputs import Plan
from orchestration.retrain.job import load_job
from orchestration.retrain.ledger import Ledger, chosen
from orchestration.retrain.loop import Place
from orchestration.retrain.records import (
    Ending,
    Retraining,
    RetrainingState,
    Stage,
    StageProblem,
    StageProgress,
    StageRequest,
    StageResult,
)
from orchestration.retrain.results import Results
from orchestration.retrain.view import Watch
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from pipeline.settings.recipe import load_recipe
from tests.test_retrain_job import write_job

OUTPUTS = {
    Stage.PREPARE: ("rows",),
    Stage.TRAIN: ("model", "run"),
    Stage.EVALUATE: ("evaluation",),
    Stage.EVALUATE_CHAMPION: ("evaluation",),
    Stage.PUBLISH: ("lineage",),
}
CANDIDATE, CHAMPION = "c" * 64, "e" * 64


@dataclass
class Version:
    """What the loop reads of a registered version."""

    version: str
    sha256: str
    uri: str = "file:///weights"
    tags: dict[str, str] = field(default_factory=dict)


class ScriptedDecisions:
    """A registry that knows who is champion."""

    def __init__(self) -> None:
        self.champion: Version | None = None
        self.errors: list[Exception] = []
        self.model, self.registered = "shop-solver", [("7", 5)]  # numbers, and when they were made

    @property
    def registry(self) -> SimpleNamespace:
        found = [SimpleNamespace(version=number, created_ms=made) for number, made in self.registered]
        return SimpleNamespace(versions=lambda _model: found)

    def state(self) -> SimpleNamespace:
        if self.errors:
            raise self.errors.pop(0)
        return SimpleNamespace(champion=self.champion.version if self.champion else None, waiting={})

    def version(self, _reference: str) -> Version:
        assert self.champion is not None
        return self.champion


class MemoryLedger:
    """A ledger in memory; writes may fail."""

    def __init__(self) -> None:
        self.runs: dict[str, Retraining] = {}
        self.errors: list[Exception] = []

    def open(self, fresh: Retraining, *, params: object = None) -> Retraining:
        found = chosen(self.retrainings(fresh.job), fresh)
        if not found.run_id:
            found = found.model_copy(update={"run_id": f"run {len(self.runs)}"})
            self.runs[found.run_id] = found
        return found

    def retrainings(self, _job: str) -> list[Retraining]:
        return list(reversed(self.runs.values()))

    def save(self, retraining: Retraining, *, patiently: bool = True) -> None:
        if self.errors:
            raise self.errors.pop(0)
        is_closed = retraining.state is not RetrainingState.RUNNING
        self.runs[retraining.run_id] = retraining.model_copy(update={"is_closed": is_closed})


@dataclass
class Scripted:
    """An attempt at a stage that ends as it is told, after some looks at it."""

    end: Callable[[], StageProblem | None]
    looks: int = 0
    tokens: int = 0
    stopped: bool = False

    def has_ended(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def problem(self) -> StageProblem | None:
        return self.end()

    def progress(self) -> StageProgress:
        return StageProgress(label="working", tokens=self.tokens)

    def stop(self) -> None:
        self.stopped = True


class Factory:
    """Starts scripted stages: each makes its result stand, unless there is a problem left for it.

    Args:
        results: Where results stand.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.problems: dict[Stage, list[StageProblem]] = {}
        self.started: Counter[Stage] = Counter()
        self.requests: list[StageRequest] = []
        self.looks, self.tokens = 0, 0
        self.outcome = Ending.PROMOTED
        self.last: Scripted | None = None
        self.before_end: Callable[[Stage], None] = lambda _stage: None

    def __call__(self, request: StageRequest) -> Scripted:
        self.started[request.stage] += 1
        self.requests.append(request)

        def end() -> StageProblem | None:
            self.before_end(request.stage)
            left = self.problems.get(request.stage)
            if left:
                return left.pop(0)
            self.results.put(request.stage, self.made(request))
            return None

        self.last = Scripted(end, looks=self.looks, tokens=self.tokens)
        return self.last

    def made(self, request: StageRequest) -> StageResult:
        """What a stage makes; the same for the same key."""
        name = {Stage.EVALUATE_CHAMPION: "evaluation", Stage.EVALUATE: "evaluation"}.get(request.stage)
        name = name or {Stage.PREPARE: "rows", Stage.TRAIN: "model", Stage.PUBLISH: "lineage"}.get(
            request.stage
        )
        outputs = {}
        for one in (name, "run" if request.stage is Stage.TRAIN else None):
            if one:
                published = self.results.store.publish(kind=one, record={"key": request.key})
                outputs[one] = published.digest
        facts: dict[str, Any] = {
            Stage.PREPARE: {"rows_sha256": "b" * 64},
            Stage.TRAIN: {"weights_sha256": CANDIDATE, "steps": 2},
            Stage.REGISTER: {"version": "7", "registered_ms": 5},
            Stage.PROMOTE: {"outcome": self.outcome, "version": "7", "reason": "primary: failed"},
        }.get(request.stage, {})
        key, name = request.key, request.stage.result_name
        return StageResult(stage=name, key=key, outputs=outputs, facts=facts)


class Notes:
    """A watch that remembers."""

    def __init__(self) -> None:
        self.waited: list[tuple[str, float]] = []
        self.last: Retraining | None = None

    def show(self, retraining: Retraining, progress: StageProgress | None = None) -> None:
        self.last = retraining

    def waits(self, line: str, seconds: float) -> None:
        self.waited.append((line.partition(":")[0], seconds))


@dataclass
class Rig:
    """A loop's place with all of its scripted parts."""

    place: Place
    factory: Factory
    decisions: ScriptedDecisions
    ledger: MemoryLedger
    notes: Notes


def rig(folder: Path, *assignments: str) -> Rig:
    """A place on a store in a folder; a second one in the same folder finds what the first has made."""
    store = ArtifactStore(LocalBackend(folder / "store"))
    job = load_job(str(write_job(folder / "job")), ["retries.first_wait_s=0", *assignments])
    results, decisions, ledger, notes = Results(store, job.name), ScriptedDecisions(), MemoryLedger(), Notes()
    recipe = load_recipe(job.recipe.name, list(job.recipe.overrides))
    plan = Plan(job, recipe, GatePolicy(), code="1", data="2", evaluation="3")
    factory = Factory(results)
    place = Place(
        plan, cast(Decisions, decisions), results, cast(Ledger, ledger), None, factory, cast(Watch, notes)
    )
    return Rig(place, factory, decisions, ledger, notes)
