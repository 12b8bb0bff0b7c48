"""Injected rows: where the reward stands, what is masked, and that roles are estimated apart.

OpenRLHF's own code computes everything here; only its remote models are replaced, by formulas.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.record.metrics import audit_metrics
from pipeline.settings.ppo import CheckerCredit, PpoSettings, RewardScalars
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome, Role, Trajectory, Verdict
from tests.experience_rows import PLAIN, THREE_ROLES, Experience, Maker, answer, rows_of, trained, turn

from openrlhf.models.loss import PolicyLoss, ValueLoss  # isort: skip  # after cpu.install()
from pipeline.settings.guards import GuardSettings  # isort: skip
from pipeline.training.guards import findings  # isort: skip
from pipeline.training.experience import MarchExperienceMaker, WeightSyncError  # isort: skip
from pipeline.training.credit import choose_turn  # isort: skip
from pipeline.record.rollout_record import RolloutRecord  # isort: skip


def test_row_01_the_terminal_reward_stands_on_the_last_valid_token_of_each_row() -> None:
    maker = Maker(PLAIN.model_copy(update={"gamma": 0.0}))  # a return is then the reward of its own token
    answers = [answer(-1.0, solver=3, checker=9), answer(0.0, solver=7, checker=2)]
    batches = maker.make_experience_batch(answers)
    for row, reward in zip(rows_of(batches), [-1.0, 0.0, -1.0, 0.0], strict=True):
        last = int(row.action_mask.nonzero().max())
        expected = torch.zeros_like(row.returns)
        expected[last] = reward
        assert torch.equal(row.returns, expected)


def test_rows_of_votes_carry_their_own_reward_to_the_last_token() -> None:
    turns = [
        turn(Role.CHECKER, prompt=8, length=n).model_copy(update={"own_reward": own})
        for n, own in ((9, -1.0), (2, 0.0))
    ]
    maker = Maker(PLAIN.model_copy(update={"gamma": 0.0}))
    answers = [answer(0.0, checker=None, more=[t], credit=CheckerCredit.VOTE) for t in turns]
    rows = rows_of(maker.make_experience_batch(answers))
    assert [row.rewards.item() for row in rows] == [0.0, 0.0, -1.0, 0.0]
    assert [float(row.returns.sum()) for row in rows] == [0.0, 0.0, -1.0, 0.0]


def test_each_scored_answer_brings_one_checker_row_with_its_exact_tokens() -> None:
    batches = Maker().make_experience_batch([answer(0.0, checker=6), answer(-1.0, checker=3)])
    checker = rows_of(batches)[2:]
    assert [int(row.action_mask.sum()) for row in checker] == [6, 3]
    assert checker[0].sequences.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6]
    assert [row.rewards.item() for row in checker] == [0.0, -1.0]


@pytest.mark.parametrize("unscored", [1, 3, 4])
def test_row_08_unscored_answers_are_masked_and_the_number_of_rows_is_fixed(unscored: int) -> None:
    answers = [answer(None) for _ in range(unscored)] + [answer(-1.0) for _ in range(4 - unscored)]
    maker = Maker()
    rows = rows_of(maker.make_experience_batch(answers))
    assert len(rows) == 8
    masked = [row for row in rows if not row.action_mask.any()]
    assert len(masked) == 2 * unscored
    for row in masked:
        assert torch.isfinite(row.advantages).all()
        assert torch.isfinite(row.returns).all()
    assert maker.metrics["solver/num_masked"] == unscored
    assert maker.metrics["audit/unscored/timeout"] == unscored / 4


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.0, -1.0, None]), min_size=2, max_size=6))
def test_a_masked_row_has_no_gradient_in_openrlhfs_own_losses(rewards: list[float | None]) -> None:
    batches = Maker().make_experience_batch([answer(reward) for reward in rewards])
    for batch in batches:
        log_probs = torch.zeros(batch.action_mask.shape, requires_grad=True)
        values = torch.zeros(batch.action_mask.shape, requires_grad=True)
        tokens = batch.action_mask.sum().clamp(min=1).float()
        policy = PolicyLoss()(
            log_probs, batch.action_log_probs, batch.advantages, batch.action_mask, None, 1, tokens, tokens
        )[0]
        value = ValueLoss(0.5)(values, batch.values, batch.returns, batch.action_mask, 1, tokens, tokens)
        (policy + value).backward()
        for gradient in (log_probs.grad, values.grad):
            assert gradient is not None
            assert torch.isfinite(gradient).all()
            assert (gradient[~batch.action_mask.bool()] == 0).all()


def test_a_policy_of_no_numbers_is_seen_by_its_guard_and_a_masked_row_is_not() -> None:
    broken = lambda tokens: torch.full(tokens[:, 1:].shape, float("nan"))  # noqa: E731
    maker = Maker(policy=broken)
    maker.make_experience_batch([answer(-1.0), answer(None)])
    (finding,) = findings(GuardSettings.model_validate({"kl": {"patience": 1}}), [maker.metrics])[-1:]
    assert math.isnan(maker.metrics["solver/kl"]) and finding.name == "kl" and finding.is_due
    whole = Maker()
    whole.make_experience_batch([answer(-1.0), answer(None)])
    assert whole.metrics["solver/kl"] == 0


def test_without_a_reference_no_distance_from_the_start_is_recorded() -> None:
    """OpenRLHF fills it with zeros, which would say that the policy did not move."""
    maker = Maker(reference=None)
    maker.make_experience_batch([answer(-1.0), answer(0.0)])
    assert "solver/reward" in maker.metrics and "solver/kl" not in maker.metrics
    assert "kl" not in {one.name for one in findings(GuardSettings(), [maker.metrics])}


@pytest.mark.parametrize("logprob", [-0.03, float("nan")])
def test_a_step_of_other_weights_than_the_actors_is_not_trained(logprob: float) -> None:
    def train(logprob: float, *, reward: float | None = 0.0) -> list[Experience]:
        maker = Maker()
        maker.max_gap = 0.02
        answers = [answer(reward, logprob=logprob), answer(None, logprob=-9.0)]  # the second one is masked
        parts = MarchExperienceMaker.make_experience_batch(maker, answers)
        assert ("sync/logprob_gap" in maker.metrics) is (reward is not None)
        return parts

    assert all(part.rollout_log_probs is None for part in train(-0.01))
    with pytest.raises(WeightSyncError, match=r"over guards.probe_tolerance 0.02; the last weight sync"):
        train(logprob)
    train(logprob, reward=None)  # nothing is trained


def test_answers_of_older_weights_may_differ_because_the_policy_has_moved() -> None:
    maker = Maker()
    maker.max_gap, maker.age = 0.02, 1
    MarchExperienceMaker.make_experience_batch(maker, [answer(0.0, logprob=-0.1)])
    assert maker.metrics["sync/logprob_gap"] == pytest.approx(0.1)
    with pytest.raises(WeightSyncError, match=r"1 weight sync\(s\) old, .* steps move the policy too far"):
        MarchExperienceMaker.make_experience_batch(maker, [answer(0.0, logprob=-0.3)])


def test_roles_are_whitened_apart() -> None:
    shapes = ((0.0, 4, 30), (-1.0, 4, 30), (-1.0, 4, 30), (0.0, 4, 2))
    answers = [answer(reward, solver=solver, checker=checker) for reward, solver, checker in shapes]
    rows = rows_of(Maker().make_experience_batch(answers))
    for role_rows in (rows[:4], rows[4:]):
        advantages = torch.cat([row.advantages[row.action_mask.bool()] for row in role_rows])
        assert advantages.mean().abs() < 1e-5
        assert abs(advantages.std(unbiased=False) - 1) < 1e-4


def test_row_02_an_answer_without_claims_has_no_checker_row_to_train() -> None:
    maker = Maker()
    rows = rows_of(maker.make_experience_batch([answer(-1.0, checker=None), answer(-1.0), answer(0.0)]))
    assert [bool(row.action_mask.any()) for row in rows] == [True, True, True, False, True, True]
    assert maker.metrics["checker/num_trained"] == 2


def test_a_step_without_any_checker_row_stays_finite() -> None:
    rows = rows_of(Maker().make_experience_batch([answer(-1.0, checker=None), answer(0.0, checker=None)]))
    assert all(torch.isfinite(row.advantages).all() for row in rows)


def test_row_13_the_trained_vote_is_a_seeded_choice_among_finished_ones() -> None:
    turns = [
        Trajectory(role=Role.CHECKER, prompt_token_ids=(1,), response_token_ids=(i,), finish_reason=reason)
        for i, reason in ((1, "stop"), (2, "length"), (3, "stop"))
    ]
    picked = [choose_turn(turns, seed=str(seed)) for seed in range(50)]
    assert {one.response_token_ids[0] for one in picked if one} == {1, 3}
    assert choose_turn(turns, seed="7") is choose_turn(turns, seed="7")
    assert choose_turn([], seed="7") is None


def test_scalars_0_1_pay_scored_rows_alone() -> None:
    ppo = PpoSettings(gamma=1.0, reward_scalars=RewardScalars.INCENTIVE)
    answers = [answer(0.0), answer(-1.0, checker=None), answer(None), answer(-1 / 3)]
    rows = rows_of(Maker(ppo).make_experience_batch(answers))
    rewards = [row.rewards.item() for row in rows]
    assert rewards == pytest.approx([1, 0, 0, 2 / 3, 1, 0, 0, 2 / 3])
    assert [row.info["reward"].item() for row in rows] == rewards
    unpaid = [rows[2], rows[5], rows[6]]  # UNSCORED, a filler, UNSCORED
    assert not any(row.action_mask.any() or row.advantages.any() or row.returns.any() for row in unpaid)


def test_the_scalars_differ_by_a_constant_return_and_not_in_what_an_audit_says() -> None:
    answers = [0.0, -1.0, None, -1.0]
    penalty, incentive = (
        Maker(PLAIN.model_copy(update={"reward_scalars": scalars})) for scalars in RewardScalars
    )
    low = rows_of(penalty.make_experience_batch([answer(reward) for reward in answers]))
    high = rows_of(incentive.make_experience_batch([answer(reward) for reward in answers]))
    for one, other in zip(low, high, strict=True):
        mask = one.action_mask.bool()
        assert torch.allclose((other.returns - one.returns)[mask], torch.ones(int(mask.sum())))
    assert penalty.metrics["audit/reward"] == incentive.metrics["audit/reward"] == pytest.approx(-2 / 3)
    assert incentive.metrics["solver/reward"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("scalars", "reward"), [("-1/0", -1.0), ("0/1", 0.0)])
def test_a_truncated_turn_has_the_truncated_reward_on_the_scale_that_is_paid(
    scalars: str, reward: float
) -> None:
    ppo = PpoSettings(gamma=1.0, truncated_reward=-1.0, reward_scalars=RewardScalars(scalars))
    cut = turn(Role.CHECKER, prompt=3, length=4, truncated=True)
    answers = [
        answer(0.0, truncated=True),
        answer(0.0, checker=None, more=[cut]),
        answer(None, truncated=True),
    ]
    rows = rows_of(Maker(ppo).make_experience_batch(answers))
    best = reward + 1
    assert [row.rewards.item() for row in rows] == [reward, best, 0.0, best, reward, 0.0]


def test_a_trained_proposer_has_the_answers_reward_on_a_row_of_its_own() -> None:
    asked = turn(Role.PROPOSER, prompt=4, length=7)
    answers = [
        answer(reward, more=more, train_roles=THREE_ROLES)
        for reward, more in ((0.0, [asked]), (-1.0, [asked]), (-1.0, []), (None, [asked]))
    ]
    maker = Maker(PLAIN, THREE_ROLES)
    rows = rows_of(maker.make_experience_batch(answers))
    assert [int(row.action_mask.sum()) for row in rows[8:]] == [7, 7, 0, 0]
    assert [row.rewards.item() for row in rows[8:]] == [0.0, -1.0, 0.0, 0.0]
    assert trained(rows[8]).mean() > 0 > trained(rows[9]).mean()
    assert (maker.metrics["proposer/num_trained"], maker.metrics["proposer/reward"]) == (2, -0.5)


def test_errors_a_claim_and_turns_an_answer_are_counted_over_the_step() -> None:
    claim = Claim(index=1, question="How much?", answer="466")
    states = [ClaimState.SUPPORTED, ClaimState.CONTRADICTED, ClaimState.NO_CONSENSUS, ClaimState.FAILED]
    claims = tuple(ClaimVerdict(claim=claim, state=state) for state in states)
    verdict = Verdict(id="q", outcome=Outcome.REFUTED, reward=-2 / 3, claims=claims)
    failed = Verdict(id="q", outcome=Outcome.UNSCORED, reward=None, reason="timeout")
    metrics = audit_metrics(
        [
            RolloutRecord(query_id="q", response="r", verdict=verdict, num_checker_turns=3),
            RolloutRecord(query_id="q", response="r", verdict=failed),
        ]
    )
    assert metrics["audit/errors_per_claim"] == pytest.approx(2 / 3)  # a FAILED claim is no error
    assert metrics["audit/checker_turns_per_answer"] == 1.5
    assert metrics["audit/reward"] == pytest.approx(-2 / 3)


def test_claims_and_errors_are_counted_by_kind_and_masked_answers_by_reason() -> None:
    states = {"number": ClaimState.SUPPORTED, "name": ClaimState.CONTRADICTED, "date": ClaimState.FAILED}
    claims = tuple(
        ClaimVerdict(claim=Claim(index=i, question="?", answer="x", kind=kind), state=state)
        for i, (kind, state) in enumerate(states.items(), 1)
    )
    masked = Verdict(id="q", outcome=Outcome.NO_CLAIMS, reward=None, reason="abstention")
    refuted = Verdict(id="q", outcome=Outcome.REFUTED, reward=-1.0, claims=claims, reason="contradicted")
    verdicts = [refuted, masked, masked, masked]
    metrics = audit_metrics([RolloutRecord(query_id="q", response="r", verdict=one) for one in verdicts])
    assert [metrics[f"audit/{kind}/claims_per_answer"] for kind in states] == [0.25] * 3
    assert [metrics.get(f"audit/{kind}/errors_per_claim") for kind in states] == [0.0, 1.0, None]
    assert metrics["audit/no_claims/abstention"] == 0.75 and metrics["audit/reward"] == -1.0
