"""Injected Checker rows: where the reward stands, what is masked, and that roles are estimated apart.

OpenRLHF's own code computes everything here; only its remote models are replaced, by tensors.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import cpu
from reward.types import Outcome, Role, Trajectory, Verdict

cpu.install()

from openrlhf.models.loss import PolicyLoss, ValueLoss  # noqa: E402
from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch  # noqa: E402

from pipeline.experience import MarchExperienceMaker, MarchSamplesGenerator  # noqa: E402
from pipeline.rollout import RolloutRecord, choose_turn  # noqa: E402

ARGS = SimpleNamespace(
    algo=SimpleNamespace(advantage=SimpleNamespace(estimator="gae", gamma=1.0, lambd=1.0, no_std_norm=False)),
    rollout=SimpleNamespace(n_samples_per_prompt=1, micro_batch_size=2),
    train=SimpleNamespace(dynamic_batch_enable=False),
    reward=SimpleNamespace(
        clip_range=(-10, 10),
        overlong_buffer_len=None,
        stop_properly_penalty_coef=None,
        overlong_penalty_factor=1,
    ),
)


class Generator(MarchSamplesGenerator):
    def __init__(self) -> None:
        """Needs no engines: only responses are processed."""


class Maker(MarchExperienceMaker):
    """The remote models replaced: values are zero, the policy equals the reference."""

    def __init__(self, args: Any = ARGS) -> None:
        self.args, self.strategy = args, SimpleNamespace(args=args)
        self.tokenizer = SimpleNamespace(pad_token_id=0)
        self.kl_ctl = SimpleNamespace(value=0.0)
        self.advantage_estimator = args.algo.advantage.estimator

    def make_experience(self, samples_list: list[Experience]) -> list[Experience]:
        for batch in samples_list:
            batch.values = torch.zeros(batch.action_mask.shape)
            batch.action_log_probs = torch.zeros(batch.action_mask.shape)
            batch.kl = torch.zeros(batch.action_mask.shape)
            batch.info["kl"] = torch.zeros(len(batch.rewards))
        return samples_list


def answer(
    reward: float | None,
    *,
    solver: int = 4,
    checker: int | None = 6,
    prompt: int = 5,
    truncated: bool = False,
) -> Experience:
    outcome = {0.0: Outcome.SUPPORTED, -1.0: Outcome.REFUTED, None: Outcome.UNSCORED}[reward]
    turn = checker and Trajectory(
        role=Role.CHECKER,
        prompt_token_ids=tuple(range(1, 9)),
        response_token_ids=tuple(range(1, checker + 1)),
        finish_reason="stop",
    )
    record = RolloutRecord(
        query_id="q",
        response="r",
        verdict=Verdict(id="q", outcome=outcome, reward=reward, reason="timeout" if reward is None else ""),
        checker=turn or None,
    )
    response = {
        "prompt": "p",
        "label": "l",
        "reward": reward,
        "scores": reward,
        "observation_tokens": list(range(1, prompt + solver + 1)),
        "action_ranges": [(prompt, prompt + solver)],
        "rollout_log_probs": None,
        "truncated": truncated,
        "extra_logs": {},
        "rollout": record,
    }
    experience: Experience = Generator()._process_response_into_experience(response, max_len=64)
    return experience


def rows_of(batches: list[Experience]) -> list[Experience]:
    return [row for batch in batches for row in split_experience_batch(batch)]


def test_row_01_the_terminal_reward_stands_on_the_last_valid_token_of_each_row() -> None:
    # Without whitening by deviation and with gamma 0 a return is the reward of its own token.
    advantage = SimpleNamespace(estimator="gae", gamma=0.0, lambd=1.0, no_std_norm=True)
    args = SimpleNamespace(**{**vars(ARGS), "algo": SimpleNamespace(advantage=advantage)})
    maker = Maker(args)
    answers = [answer(-1.0, solver=3, checker=9), answer(0.0, solver=7, checker=2)]
    batches = maker.make_experience_batch(answers)
    for row, reward in zip(rows_of(batches), [-1.0, 0.0, -1.0, 0.0], strict=True):
        last = int(row.action_mask.nonzero().max())
        expected = torch.zeros_like(row.returns)
        expected[last] = reward
        assert torch.equal(row.returns, expected)


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


@settings(max_examples=20, deadline=None)
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
    picks = {choose_turn(turns, seed=str(seed)).response_token_ids[0] for seed in range(50)}  # type: ignore[union-attr]
    assert picks == {1, 3}
    assert choose_turn(turns, seed="7") == choose_turn(turns, seed="7")
    assert choose_turn([], seed="7") is None
