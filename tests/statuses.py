"""Shared by the tests of `march status`: a service with a busy job and one that fails."""

from __future__ import annotations

import hashlib

from orchestration.retrain.job import BudgetSettings
from orchestration.retrain.records import (
    Outcome,
    ParentWeights,
    Retraining,
    RetrainingState,
    StageState,
    StageStatus,
)
from orchestration.retrain.stages import Spent, Stage
from orchestration.schedule.drift import Drift, DriftState
from orchestration.schedule.journal import Cause
from orchestration.schedule.service import Sign
from orchestration.schedule.status import (
    AttemptStatus,
    JobStatus,
    ModelStatus,
    Status,
    TriggerStatus,
    WaitingVersion,
)

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
        triggers=(
            TriggerStatus(
                cause=Cause.CRON, what="30 2 * * mon-fri", timezone="Europe/Berlin", next_at=NOW + 64_600
            ),
            TriggerStatus(cause=Cause.DATA, what="runs/data/shop, datasets/shop", due_since=NOW - 1.6 * HOUR),
            TriggerStatus(
                cause=Cause.DRIFT,
                what="audits/*.jsonl",
                drift=drift(19, 412, 0.026),
                looked_at=NOW - 700,
                num_new=38,
            ),
        ),
        attempt=AttemptStatus(running_since=NOW - 1.5 * HOUR, log="/srv/march/runs/schedule/shop/logs/a.log"),
        model=ModelStatus(
            champion="3",
            previous="2",
            candidate="4",
            waiting=(
                WaitingVersion(
                    version="4", by=MARKUP, at="2026-10-25T20:11:00Z", command="march approve shop-solver 4"
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
                outcome=Outcome.WAITS, version="4",
            ),
            retraining(
                *[done] * 7, began_h=98, cause=nightly, state=RetrainingState.DONE,
                outcome=Outcome.REFUSED, version="3", reason="slice qa: failed: -0.14 is not above -0.1",
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
        triggers=(
            TriggerStatus(
                cause=Cause.DRIFT,
                what="audits/books/*.jsonl",
                problem="audits/books/mon.jsonl:12: no verdict of march audit: outcome: missing; add it",
            ),
        ),
        attempt=AttemptStatus(
            last_ended=NOW - HOUR,
            last_error="march: train: CUDA out of memory",
            num_failures=2,
            next_at=NOW + 1_200,
            log="/srv/march/runs/schedule/books/logs/b.log",
        ),
        problems=("--registry http://127.0.0.1:5000: connection refused; fix the address",),
    )


def status(*jobs: JobStatus, is_serving: bool = True) -> Status:
    """All of it."""
    sign = Sign(at=NOW - 2, pid=1, port=5002, jobs=())
    return Status(at=NOW, folder="runs/schedule", is_serving=is_serving, sign=sign, jobs=jobs)
