"""Group baselines by prompt and role, held against hand-made numbers and against OpenRLHF's own."""

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from pipeline.settings.ppo import AdvantageEstimator, PpoSettings
from pipeline.training.advantages import against_group, stacked, unstacked
from reward.types import Role
from tests.experience_rows import Maker, answer, rows_of, trained

from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # isort: skip  # after cpu.install()

RLOO = AdvantageEstimator.RLOO
NOTHING = 0.0  # the reward of a masked row, which must count for nothing


def test_masked_rows_are_in_no_groups_baseline() -> None:
    # Groups: all three scored; two of them; one alone, which has nothing to be compared with.
    expected = [1.0, -0.5, -0.5, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0]
    rewards = torch.tensor([0.0, -1.0, -1.0, 0.0, NOTHING, -1.0, NOTHING, NOTHING, -1.0])
    scored = torch.tensor([1, 1, 1, 1, 0, 1, 0, 0, 1]).bool()
    shaped = against_group(rewards, scored, estimator=RLOO, group_size=3)
    assert shaped.tolist() == pytest.approx(expected, abs=1e-6)


def test_rows_of_all_micro_batches_together_have_the_advantages_of_each() -> None:
    shapes = [(2, 7), (1, 3), (3, 11), (1, 1)]
    draw = torch.Generator().manual_seed(0)
    values, rewards = ([torch.randn(shape, generator=draw) for shape in shapes] for _ in range(2))
    masks = [(torch.rand(shape, generator=draw) > 0.3).float() for shape in shapes]
    gae = partial(RemoteExperienceMaker.get_advantages_and_returns, None, gamma=0.9, lambd=0.8)
    apart = list(map(gae, values, rewards, masks))
    together = gae(stacked(values), stacked(rewards), stacked(masks))
    parts = zip(*(unstacked(found, [one.shape for one in values]) for found in together), strict=True)
    for (advantages, returns), (mine, my_returns) in zip(apart, parts, strict=True):
        assert torch.equal(advantages, mine) and torch.equal(returns, my_returns)
        assert mine.untyped_storage().nbytes() == mine.nbytes  # no slice that carries all rows


def ppo_of(estimator: AdvantageEstimator) -> PpoSettings:
    return PpoSettings(estimator=estimator, gamma=1.0, kl_coef=0.1)


def noise(tokens: torch.Tensor) -> torch.Tensor:
    """Some figure for each action, the same for the same tokens."""
    return torch.sin(tokens[:, 1:].float() * 12.9 + tokens[:, :-1].float()) / 3


@pytest.mark.parametrize("estimator", list(AdvantageEstimator))
def test_without_masked_rows_the_figures_are_openrlhfs_own(estimator: AdvantageEstimator) -> None:
    ppo = ppo_of(estimator)
    maker = Maker(ppo, samples=2, policy=noise, critic=noise)
    answers = [
        answer(reward, solver=n, checker=n + 3) for n, reward in enumerate((0, -1, -1, -1, -1 / 3, 0), 2)
    ]
    batches = maker._batches(Role.CHECKER, answers)
    maker.make_experience(batches)
    theirs: Any = RemoteExperienceMaker.compute_advantages_and_returns(maker, deepcopy(batches))
    ours = maker.compute_advantages_and_returns(batches)
    for one, other in zip(rows_of(ours), rows_of(theirs), strict=True):
        mask = one.action_mask.bool()
        assert torch.allclose(one.advantages[mask], other.advantages[mask], atol=1e-6)
        assert torch.allclose(one.returns[mask], other.returns[mask], atol=1e-6)


def test_trap_openrlhf_counts_a_masked_row_as_a_success() -> None:
    batches = Maker(ppo_of(RLOO), samples=2)._batches(Role.SOLVER, [answer(-1.0), answer(None)])
    maker = Maker(ppo_of(RLOO), samples=2)
    maker.make_experience(batches)
    theirs: Any = RemoteExperienceMaker.compute_advantages_and_returns(maker, deepcopy(batches))
    assert trained(rows_of(theirs)[0]).eq(-1.0).all()  # -1 against a "success" that never was
    assert trained(rows_of(maker.compute_advantages_and_returns(batches))[0]).eq(0.0).all()


def test_groups_are_of_one_prompt_and_one_role() -> None:
    """Two prompts of three answers; the second answer to the first has no Checker turn, one is UNSCORED."""
    maker = Maker(ppo_of(RLOO).model_copy(update={"kl_coef": 0.0}), samples=3)
    rewards = [0.0, -1.0, -1.0, None, -1.0, 0.0]
    answers = [answer(r, checker=None if i == 1 else 6) for i, r in enumerate(rewards)]
    rows = rows_of(maker.make_experience_batch(answers))
    firsts = [trained(row)[0].item() if row.action_mask.any() else None for row in rows]
    assert firsts[:6] == pytest.approx([1.0, -0.5, -0.5, None, -1.0, 1.0])  # Solver
    assert firsts[6:] == pytest.approx([1.0, None, -1.0, None, -1.0, 1.0])  # Checker
    assert maker.metrics["solver/num_groups"] == maker.metrics["checker/num_groups"] == 2
    assert maker.metrics["solver/flat_group_rate"] == 0


@pytest.mark.parametrize(
    ("rewards", "samples"),
    [
        ((-1.0, -1.0, None, 0.0), 2),
        # In 32 bits their mean is not quite what they are.
        *[((reward,) * num, num) for reward in (-1 / 3, -1 / 5, -0.7) for num in (7, 8)],
    ],
)
def test_a_group_with_one_outcome_or_one_scored_answer_teaches_nothing(
    rewards: tuple[float | None, ...], samples: int
) -> None:
    ppo = ppo_of(RLOO).model_copy(update={"kl_coef": 0.0})
    maker = Maker(ppo, samples=samples)
    rows = rows_of(maker.make_experience_batch([answer(reward) for reward in rewards]))
    assert all(torch.isfinite(row.advantages).all() and not row.advantages.any() for row in rows)
    assert maker.metrics["solver/flat_group_rate"] == 1


@pytest.mark.parametrize("estimator", list(AdvantageEstimator))
def test_a_role_without_any_trained_row_stays_finite_under_every_estimator(
    estimator: AdvantageEstimator,
) -> None:
    maker = Maker(ppo_of(estimator), samples=2, policy=noise)
    rows = rows_of(maker.make_experience_batch([answer(-1.0, checker=None), answer(0.0, checker=None)]))
    assert all(torch.isfinite(row.advantages).all() for row in rows)
    assert len({frozenset(row.info) for row in rows}) == 1  # else OpenRLHF cannot batch them
