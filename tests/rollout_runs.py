"""Shared by the tests of rollouts and `march inspect`: run folders, written as the trainer writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.record import tracking
from pipeline.record.rollout_record import OracleJudgement
from pipeline.record.rollout_rows import RolloutTurn, TrainedAnswer
from pipeline.settings.recipe import load_recipe
from pipeline.training.trainer_settings import SETTINGS_VARIABLE, Batching, TrainerSettings
from reward.types import Outcome, Role, Verdict
from tests.audit_jobs import picnic_pair

EVIL = "</script><script>alert('5')</script><img src=x onerror=alert(1)>\u2028[red]x[/red]\x1b[31m"


def agent_settings(*urls: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """The environment of an agent: a training on prepared rows, whose reward servers are these."""
    recipe = load_recipe("tiny", ["data={source: prepared, path: rows}", *overrides])
    settings = TrainerSettings(
        recipe=recipe,
        run_dir=Path(),
        registry="",
        num_steps=1,
        reward_urls=urls,
        batching=Batching.of(recipe),
    )
    return {SETTINGS_VARIABLE: settings.model_dump_json()}


def step_log(folder: Path) -> tracking.StepLog:
    """The trainer's log, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return tracking.StepLog(folder)


def write_state(folder: Path, *, tracking_uri: str, run_id: str, artifacts: bool = True) -> None:
    """Writes of `run.json` what says where MLflow's copy of a run is."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = {"tracking": {"rollouts": {"artifacts": artifacts}}}
    state = {"tracking_uri": tracking_uri, "mlflow_run_id": run_id, "recipe": recipe}
    (folder / "run.json").write_text(json.dumps(state))


def trained_answer(
    outcome: Outcome = Outcome.REFUTED,
    *,
    query_id: str = "p1",
    faithful: bool | None = None,
    response: str | None = None,
) -> TrainedAnswer:
    """An answer about the picnic with one claim of each state, and what its turns brought."""
    row, audited = picnic_pair(row_id=query_id)
    reward = {Outcome.UNSCORED: None, Outcome.REFUTED: -1.0}.get(outcome, 0.0)
    changes = {"outcome": outcome, "reward": reward, "reason": outcome.lower()}
    verdict = Verdict(**{name: getattr(audited, name) for name in Verdict.model_fields} | changes)
    trained = reward is not None
    turns = [
        RolloutTurn(
            role=role,
            num_prompt_tokens=100,
            num_response_tokens=20 + len(query_id),
            finish_reason="stop",
            weights_version=None if role is Role.SOLVER else 3,
            trained=trained,
            reward=reward,
            advantage=0.5 if trained else None,
        )
        for role in ((Role.SOLVER, Role.CHECKER) if trained else (Role.SOLVER,))
    ]
    oracle = None
    if faithful is not None:
        wrong, right = outcome is Outcome.SUPPORTED and not faithful, outcome is Outcome.REFUTED and faithful
        oracle = OracleJudgement(faithful=faithful, false_accept=wrong, false_reject=right)
    said = row.response if response is None else response
    record: Any = SimpleNamespace(
        response=said, verdict=verdict, oracle=oracle, num_checker_turns=3, audit_s=0.25
    )
    return TrainedAnswer(row.query.model_dump_json(), record, turns)


def figures(answers: Sequence[TrainedAnswer]) -> dict[str, float]:
    """A few figures of a step, named as the trainer names them."""
    outcomes = [answer.record.verdict.outcome for answer in answers]
    rates = {f"audit/{one.lower()}_rate": outcomes.count(one) / len(outcomes) for one in Outcome}
    judged = [answer.record.oracle for answer in answers if answer.record.oracle]
    true = {"oracle/faithful_rate": sum(one.faithful for one in judged) / len(judged)} if judged else {}
    more = {"audit/reward": -outcomes.count(Outcome.REFUTED) / len(outcomes), "audit/claims_per_answer": 5.0}
    return rates | more | {"audit/vote_agreement": 0.8, "solver/response_length": 22.0} | true


def write_run(folder: Path, steps: Sequence[Sequence[TrainedAnswer]]) -> Path:
    """Writes the steps of a run; returns its folder."""
    log = step_log(folder)
    for number, answers in enumerate(steps, start=1):
        log.write(number, figures(answers), answers)
    return folder


def picnic_run(folder: Path) -> Path:
    """Three steps of four answers; step 2 accepted a wrong one, and q1 was refuted in step 1 alone."""

    def step(*outcomes: Outcome) -> list[TrainedAnswer]:
        return [
            trained_answer(one, query_id=f"q{place}", faithful=one is Outcome.SUPPORTED and place != 3)
            for place, one in enumerate(outcomes, start=1)
        ]

    good, bad, none, lost = Outcome.SUPPORTED, Outcome.REFUTED, Outcome.NO_CLAIMS, Outcome.UNSCORED
    steps = [step(bad, good, bad, lost), step(good, good, good, lost), step(good, good, none, lost)]
    run = write_run(folder / "run", steps)
    about = {"recipe": {"name": "picnics", "note": "Only a test."}, "mlflow_run_id": "0" * 32}
    (run / "run.json").write_text(json.dumps(about))
    return run


def evil_run(folder: Path) -> Path:
    """A run whose every text is hostile."""
    answer = trained_answer(query_id=EVIL, response=f"{EVIL} 500 euros", faithful=False)
    run = write_run(folder / "run", [[answer]])
    (run / "run.json").write_text(json.dumps({"recipe": {"name": EVIL, "note": EVIL}}))
    return run
