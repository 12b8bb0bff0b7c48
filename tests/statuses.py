"""Shared by the tests of `march status`: a busy job and one that fails."""

from __future__ import annotations

import hashlib

from orchestration.retrain.job import BudgetSettings
from orchestration.retrain.records import (
    Ending,
    ParentWeights,
    Retraining,
    RetrainingState,
    Seen,
    Spent,
    Stage,
    StageState,
    StageStatus,
)
from orchestration.retrain.triggers import Cause
from orchestration.schedule.drift import Drift, DriftState
from orchestration.schedule.due import Look, Trigger
from orchestration.schedule.status import JobStatus, ModelStatus, Status, WaitingVersion

NOW = 1_793_000_000.0
HOUR = 3_600.0
MARKUP = "<b onclick=alert(1)>[red]x[/red]"  # what somebody may have written into a name


def retraining(
    *states: StageState, began_h: float, cause: str, state: RetrainingState, **more: object
) -> Retraining:
    """A retraining whose first stages stand so, each after half an hour; the others wait."""
    began = int((NOW - began_h * HOUR) * 1_000)
    stages = [
        StageStatus(stage=stage, state=one, attempts=1, wall_s=1_800.0, spent=Spent(hours=0.5, tokens=12_000))
        for stage, one in zip(Stage, states, strict=False)
    ]
    waiting = [StageStatus(stage=stage) for stage in list(Stage)[len(states) :]]
    return Retraining.model_validate(
        {
            "id": hashlib.sha256(str(began).encode()).hexdigest(),
            "given": "0" * 64,
            "parent": ParentWeights(uri="model", sha256=None),
            "job": "shop",
            "model": "shop-solver",
            "run_id": "1",
            "state": state,
            "stages": [*stages, *waiting],
            "started_ms": began,
            "last_sign_ms": int(NOW - 20) * 1_000,
            "cause": cause,
            **more,
        }
    )


def drift(num_refuted: int, num_scored: int, low: float | None, **more: object) -> Drift:
    """A look."""
    return Drift.model_validate(
        {
            "state": DriftState.WITHIN,
            "num_scored": num_scored,
            "num_refuted": num_refuted,
            "num_no_claims": 12,
            "num_unscored": 9,
            "num_documents": 180,
            "num_new": 38,
            "low": low,
            "alpha": 0.025,
            "allowed": 0.05,
            **more,
        }
    )


def shop() -> JobStatus:
    """A job with all triggers, a retraining under way, and a version that waits."""
    done, running = StageState.DONE, StageState.RUNNING
    nightly = "cron: 30 2 * * mon-fri (Europe/Berlin): 2026-10-26 02:30 CET"
    return JobStatus(
        name="shop",
        file="/srv/march/shop.yaml",
        model_name="shop-solver",
        budget=BudgetSettings(hours=12, tokens=5_000_000, money=60, price_per_hour=4),
        look=looked(
            Trigger(
                cause=Cause.CRON,
                what="30 2 * * mon-fri",
                next_at=NOW + 64_600,
                detail="next 2026-10-27 02:30 CET",
            ),
            Trigger(
                cause=Cause.DATA,
                what="runs/data/shop, datasets/shop",
                is_due=True,
                detail="changed: runs/data/shop",
            ),
            Trigger(
                cause=Cause.DRIFT,
                what="audits/*.jsonl",
                drift=drift(19, 412, 0.026),
                detail=str(drift(19, 412, 0.026)),
            ),
        ),
        model=ModelStatus(
            champion="3",
            previous="2",
            candidate="4",
            waiting=(
                WaitingVersion(
                    version="4",
                    by=MARKUP,
                    at="2026-10-25T20:11:00Z",
                    command="march model approve shop-solver 4",
                ),
            ),
        ),
        retrainings=(
            retraining(
                done, done, running, began_h=1.5, cause="data: changed: runs/data/shop",
                state=RetrainingState.RUNNING,
            ),
            retraining(
                *[done] * 7, began_h=26, cause=nightly, state=RetrainingState.WAITING_FOR_APPROVAL,
                outcome=Ending.WAITS, version="4",
            ),
            retraining(
                *[done] * 7, began_h=98, cause=nightly, state=RetrainingState.DONE,
                outcome=Ending.REFUSED, version="3", reason="slice qa: failed: -0.14 is not above -0.1",
            ),
        ),
    )  # fmt: skip


def books() -> JobStatus:
    """A job whose retraining fails, and whose registry does not answer."""
    return JobStatus(
        name="books",
        file="/srv/march/books.yaml",
        model_name="books-solver",
        budget=BudgetSettings(),
        look=looked(
            Trigger(
                cause=Cause.DRIFT,
                what="audits/books/*.jsonl",
                problem="audits/books/mon.jsonl:12: no verdict of march audit: outcome: missing; add it",
            ),
            num_failures=2,
            waits_until=NOW + 1_200,
        ),
        retrainings=(
            retraining(
                StageState.DONE,
                StageState.FAILED,
                began_h=2,
                cause="drift: drifted",
                state=RetrainingState.FAILED,
                reason="train: CUDA out of memory",
            ),
        ),
        problems=("--mlflow http://127.0.0.1:5000: connection refused; fix the address",),
    )


def looked(*triggers: Trigger, num_failures: int = 0, waits_until: float | None = None) -> Look:
    """A look at triggers."""
    return Look(
        at=NOW,
        triggers=triggers,
        num_failures=num_failures,
        gave_up=bool(num_failures) and waits_until is None,
        waits_until=waits_until,
        seen=Seen(order=9, attempt=1, began_ms=int(NOW * 1000)),
    )


def status(*jobs: JobStatus) -> Status:
    """All of it."""
    return Status(at=NOW, jobs=jobs)
