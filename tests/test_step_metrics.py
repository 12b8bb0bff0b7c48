"""What MLflow shows of a step: by role, by phase, and under names of one tree."""

from __future__ import annotations

import re

import pytest
import torch

from pipeline.settings.ppo import PpoSettings
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome, Role, Verdict
from tests.experience_rows import PLAIN, Maker, answer

from pipeline.record.metrics import STATUS_NAMES, Stopwatch, audit_metrics, step_metrics, turn_metrics  # isort: skip
from pipeline.record.rollout_record import RolloutRecord  # isort: skip

TREES = ("audit", "checker", "guards", "oracle", "ppo", "proposer", "solver", "sync", "time", "canary")


def record(solver: int, *checkers: int, generation_s: float = 0.0, audit_s: float = 0.0) -> RolloutRecord:
    return RolloutRecord(
        query_id="q",
        response="r",
        verdict=Verdict(id="q", outcome=Outcome.NO_CLAIMS, reward=-1.0),
        turn_tokens={Role.SOLVER: (solver,), Role.CHECKER: checkers},
        generation_s=generation_s,
        audit_s=audit_s,
    )


def test_lengths_are_of_all_turns_of_a_role_trained_or_not() -> None:
    metrics = turn_metrics([record(10, 4, 4, 7), record(30)])
    assert metrics == {
        "solver/seconds_per_answer": 0,
        "solver/num_tokens": 40,
        "solver/tokens_per_turn": 20,
        "checker/num_tokens": 15,
        "checker/tokens_per_turn": 5,
    }


def test_a_rollout_is_shared_out_between_answers_and_audits() -> None:
    records = [record(10, 5, generation_s=1, audit_s=3), record(30, 5, generation_s=1, audit_s=3)]
    status = {"timing/generation": 8.0, "timing/ppo_train": 2.0, "timing/step_total": 12.0}
    metrics = step_metrics(status, turn_metrics(records) | audit_metrics(records), own_s=0.6)
    assert metrics == pytest.approx(
        {
            "time/rollout_s": 8,
            "time/audit_s": 6,
            "time/update_s": 2,
            "time/step_s": 12,
            "time/own_s": 0.6,
            "time/own_share": 0.05,
            "solver/tokens_per_s": 5,
            "checker/tokens_per_s": 10 / 8,
        }
    )


def test_the_wait_for_answering_engines_is_no_weight_sync() -> None:
    """In asynchronous mode OpenRLHF counts both."""
    rollout = turn_metrics([record(1)]) | audit_metrics([record(1)])
    metrics = step_metrics({"timing/broadcast": 5.0}, rollout, own_s=0, sync_s=0.5)
    assert metrics == {"time/sync_s": 0.5, "time/sync_wait_s": 4.5}


def test_what_a_step_has_none_of_has_no_figure() -> None:
    """0 would be the best figure: no error, full agreement, nothing left out."""
    metrics = audit_metrics([record(1)])
    best = ("errors_per_claim", "uncovered_rate", "vote_entropy", "vote_agreement")
    assert not {f"audit/{name}" for name in best} & set(metrics)


@pytest.mark.parametrize("is_looked_for", [True, False])
def test_saying_less_has_a_figure_where_it_is_looked_for(is_looked_for: bool) -> None:
    maker = Maker(PpoSettings(gamma=1.0, kl_coef=0.0, refuse_saying_less=is_looked_for))
    maker.make_experience_batch([answer(0.0), answer(-1.0)])
    assert ("audit/says_less_rate" in maker.metrics) is is_looked_for


def test_openrlhfs_figures_are_named_and_what_is_no_number_is_left_out() -> None:
    records = [record(1)]
    status = {"ppo_clip_ratio": 0.1, "ppo_kl": float("nan"), "rollout/reward_mean": 1.0, "policy_loss": 2}
    metrics = step_metrics(status, turn_metrics(records) | audit_metrics(records), own_s=0)
    assert metrics == {"ppo/clip_fraction": 0.1, "ppo/policy_loss": 2.0}


def test_entropy_and_value_error_are_of_the_trained_tokens() -> None:
    critic = lambda tokens: torch.full(tokens[:, 1:].shape, -0.5)  # noqa: E731
    policy = lambda tokens: torch.full(tokens[:, 1:].shape, -0.7)  # noqa: E731
    maker = Maker(PLAIN, policy=policy, reference=policy, critic=critic)
    maker.make_experience_batch([answer(0.0), answer(-1.0), answer(None)])
    for role in ("solver", "checker"):
        assert maker.metrics[f"{role}/entropy"] == pytest.approx(0.7)
        assert maker.metrics[f"{role}/value_error"] == pytest.approx(0.25)  # each return is 0 or -1


def test_names_are_of_one_tree() -> None:
    maker = Maker(PLAIN)
    maker.make_experience_batch([answer(0.0), answer(-1.0), answer(None)])
    names = [*maker.metrics, *STATUS_NAMES.values()]
    assert all(re.fullmatch(rf"({'|'.join(TREES)})(/[a-z_0-9]+)+", name) for name in names), names


def test_agreement_of_the_voters_is_the_share_of_the_first_place() -> None:
    claim = Claim(index=1, question="?", answer="5")
    tallies = [{"5": 3}, {"5": 2, "7": 1}, {}]
    claims = tuple(
        ClaimVerdict(
            claim=claim,
            state=ClaimState.SUPPORTED if t else ClaimState.FAILED,
            tally=t,
            entropy=0.6 if len(t) > 1 else 0.0,
        )
        for t in tallies
    )
    verdict = Verdict(id="q", outcome=Outcome.UNSCORED, reward=None, claims=claims)
    metrics = audit_metrics([RolloutRecord(query_id="q", response="r", verdict=verdict)])
    assert metrics["audit/vote_agreement"] == pytest.approx((1 + 2 / 3) / 2)
    assert metrics["audit/vote_entropy"] == pytest.approx(0.6 / 2)  # a claim without votes has none


def test_a_stopwatch_starts_anew_when_it_is_read() -> None:
    clock = Stopwatch()
    with clock:
        pass
    assert clock.take() > 0
    assert clock.take() == 0
