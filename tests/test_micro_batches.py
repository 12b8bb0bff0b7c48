"""What models need not compute is left out exactly: masked rows, equal rows, padding.

OpenRLHF's own experience maker and losses, over all rows as they are laid out, are what ours is held against.
"""

from itertools import chain
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.settings.ppo import AdvantageEstimator, PpoSettings
from tests.experience_rows import Experience, Maker, answer, buffered, micro_batches_of

from openrlhf.models.loss import PolicyLoss  # isort: skip  # after cpu.install()
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # isort: skip
from pipeline.training.micro_batches import (  # isort: skip
    batch_of,
    by_tokens,
    copies_of,
    num_actions,
    rows_of,
    scoring_batches,
    shared,
)
from pipeline.training.updates import LossOfCopies  # isort: skip

RLOO = PpoSettings(estimator=AdvantageEstimator.RLOO, gamma=1.0, kl_coef=0.1)
LENGTHS = st.lists(st.integers(1, 50), max_size=20)


@given(lengths=LENGTHS, max_tokens=st.integers(1, 120))
def test_micro_batches_hold_every_row_once_and_no_more_tokens_than_allowed(
    lengths: list[int], max_tokens: int
) -> None:
    packed = by_tokens(lengths, range(len(lengths)), max_tokens=max_tokens)
    assert sorted(chain(*packed)) == list(range(len(lengths)))
    for places in packed:
        assert len(places) * max(lengths[place] for place in places) <= max_tokens or len(places) == 1


@given(lengths=LENGTHS, num_shares=st.integers(1, 5), max_tokens=st.integers(1, 120))
def test_every_rank_computes_as_many_micro_batches(
    lengths: list[int], num_shares: int, max_tokens: int
) -> None:
    batches = scoring_batches(lengths, num_shares=num_shares, max_tokens=max_tokens)
    assert sorted(chain(*batches)) == list(range(len(lengths)))
    assert len(batches) % num_shares == 0 and batches
    dealt = [sum(lengths[place] for place in share) for share in shared(lengths, num_shares)]
    assert max(dealt) - min(dealt) <= max(lengths, default=0)


def test_rows_come_apart_and_together_again() -> None:
    (batch, *_) = Maker().lay_out([answer(-1.0, solver=3), answer(0.0, solver=7)])
    rows = rows_of(batch)
    assert [row.sequences.shape[-1] for row in rows] == [8, 12]
    again = batch_of(rows, pad_token_id=0)
    assert again.labels == batch.labels
    for name in ("sequences", "action_mask", "attention_mask", "advantages", "rewards", "values"):
        assert torch.equal(getattr(again, name), getattr(batch, name)), name


class Counting:
    """A policy that remembers the rows that it is asked for; a token is the likelier the smaller it is."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        self.rows += [tuple(row[row > 0].tolist()) for row in tokens]
        return -0.01 * tokens[:, 1:].float() - 0.5


ANSWERS: list[dict[str, Any]] = [  # two groups of three
    {"reward": -1.0, "solver": 4, "checker": 2},
    {"reward": -1.0, "solver": 4, "checker": 2},  # equal to the first
    {"reward": 0.0, "solver": 9, "checker": 3},
    {"reward": None, "solver": 6, "checker": None},  # UNSCORED
    {"reward": 0.0, "solver": 2, "checker": None},  # no claims for the Checker
    {"reward": -1.0, "solver": 5, "checker": 7},
]


def answers() -> list[Experience]:
    return [answer(**shape) for shape in ANSWERS]


class AllRows(Maker):
    """Asks the models for every row as it is laid out, as OpenRLHF does."""

    def make_experience(self, samples_list: list[Experience]) -> list[Experience]:
        made: list[Experience] = RemoteExperienceMaker.make_experience(self, samples_list)
        for batch in made:
            batch.info = {name: torch.nan_to_num(value.float()) for name, value in batch.info.items()}
        return made


@pytest.mark.parametrize("estimator", [AdvantageEstimator.GAE, AdvantageEstimator.RLOO])
def test_models_see_no_masked_and_no_equal_row_and_all_figures_are_as_if_they_did(
    estimator: AdvantageEstimator,
) -> None:
    ppo = PpoSettings(estimator=estimator, gamma=1.0, kl_coef=0.1)
    policy, plain = Counting(), Counting()
    settings: dict[str, Any] = {"samples": 3, "critic": lambda tokens: tokens[:, 1:].float() * 0.02}
    laid_out = Maker(ppo, policy=policy, **settings).lay_out(answers())
    expected = AllRows(ppo, policy=plain, **settings).lay_out(answers())
    assert len(plain.rows) == 2 * len(ANSWERS)
    trained = [row for batch in expected for row in rows_of(batch) if row.action_mask.any()]
    assert len(policy.rows) == len(set(policy.rows)) < len(trained) == 5 + 4
    for ours, theirs in zip(laid_out, expected, strict=True):
        for name in ("action_log_probs", "values", "advantages", "returns"):
            actions = ours.action_mask.bool()
            assert torch.equal(getattr(ours, name)[actions], getattr(theirs, name)[actions]), name
        for name in ("kl", "logprobs_diff", "reward", "return"):
            assert torch.equal(ours.info[name].float(), theirs.info[name].float()), name


class Update:
    """What OpenRLHF's loss says of a step, for a policy with a parameter of each token and position."""

    def __init__(self) -> None:
        self.weights = torch.linspace(-0.4, 0.4, 64).requires_grad_()
        self.loss = torch.zeros(())
        self.sums, self.num_tokens = torch.zeros(3), 0.0

    def add(self, loss_fn: PolicyLoss, batch: Experience, num_tokens: float, **info: Any) -> None:
        tokens, old = batch.sequences[:, 1:], batch.action_log_probs
        new = old + self.weights[tokens] * torch.cos(torch.arange(tokens.shape[1]) * 0.7)
        sampled = old + 0.3 * (tokens % 5 - 2)  # the engines'
        loss, clipped, kl, _, out_of_bounds = loss_fn(
            new, old, batch.advantages, action_mask=batch.action_mask, rollout_log_probs=sampled, **info
        )
        self.loss = self.loss + loss
        if num_tokens:
            self.sums += num_tokens * torch.stack([clipped, kl, out_of_bounds]).detach()
            self.num_tokens += num_tokens

    def figures(self) -> list[torch.Tensor]:
        """Loss and gradient, then clip fraction, KL and share out of bounds, over all tokens."""
        self.loss.backward()
        assert self.weights.grad is not None
        return [self.loss.detach(), self.weights.grad, self.sums / self.num_tokens]


CORRECTION: dict[str, Any] = {"is_correction_level": "token", "is_correction_threshold": (0.6, 1.5)}


def of_all_rows(batches: list[Experience]) -> list[torch.Tensor]:
    update, total = Update(), float(sum(batch.action_mask.sum() for batch in batches))
    for batch in batches:
        num_tokens = float(batch.action_mask.sum())
        update.add(PolicyLoss(**CORRECTION), batch, num_tokens, batch_num_tokens=total)
    return update.figures()


def of_kept_rows(parts: list[Experience], *, max_tokens: int) -> list[torch.Tensor]:
    update, loss_fn = Update(), LossOfCopies(**CORRECTION)
    for batch, info in micro_batches_of(buffered(parts, max_tokens=max_tokens)):
        loss_fn.copies = copies_of(batch)
        update.add(loss_fn, batch, float(num_actions([batch])), **info)
    return update.figures()


def test_loss_gradient_and_figures_are_those_of_all_rows() -> None:
    maker = Maker(RLOO, samples=3, policy=Counting(), critic=None)
    laid_out = maker.lay_out(answers())
    parts = maker.to_train(laid_out)
    kept = [row for part in parts for row in rows_of(part)]
    assert len(kept) == 7 and all(row.action_mask.any() for row in kept)  # of 12; two pairs are equal
    expected = of_all_rows(laid_out)
    assert expected[0] != 0 and expected[1].count_nonzero() > 5
    assert all(0 < share < 1 for share in expected[2][[0, 2]])
    for max_tokens in (1, 30, 1000):
        for got, want in zip(of_kept_rows(parts, max_tokens=max_tokens), expected, strict=True):
            assert torch.allclose(got, want, rtol=1e-5, atol=1e-8)


def test_with_a_critic_equal_rows_are_all_trained() -> None:
    maker = Maker(PpoSettings(gamma=1.0, kl_coef=0.0))
    parts = maker.to_train(maker.lay_out(answers()))
    assert sum(len(part.rewards) for part in parts) == 9


def test_equal_rows_of_other_signs_stay_apart() -> None:
    shapes: list[dict[str, Any]] = [{"reward": 0.0}, {"reward": -1.0}]  # equal texts, two audits
    maker = Maker(RLOO, samples=2, critic=None)
    parts = maker.to_train(maker.lay_out([answer(**shape, checker=None) for shape in shapes]))
    assert [len(part.rewards) for part in parts] == [2]


@pytest.mark.parametrize("num_shares", [1, 2, 4])
def test_each_rank_gets_rows_or_a_filler(num_shares: int) -> None:
    maker = Maker(RLOO, samples=2, critic=None, num_shares=num_shares)
    parts = maker.to_train(maker.lay_out([answer(-1.0, checker=None), answer(0.0, solver=3, checker=None)]))
    assert len(parts) == num_shares
    assert sum(bool(row.action_mask.any()) for part in parts for row in rows_of(part)) == 2


def test_a_step_of_which_nothing_is_trained_is_one_filler() -> None:
    maker = Maker(RLOO, samples=2, critic=None)
    parts = maker.to_train(maker.lay_out([answer(None), answer(None)]))
    assert [(len(part.rewards), bool(part.action_mask.any())) for part in parts] == [(1, False)]
    buffer = buffered(parts, max_tokens=64)
    assert buffer.dynamic_batch_num_tokens == [1.0], "its loss is 0 / 1 and no 0 / 0"
    assert buffer.dynamic_optimizer_step == [0], "momentum alone would move the weights"
