"""Our advantages, returns and losses against PPO written down again, in float64, from its formulas.

What is compared runs as in a training: `MarchExperienceMaker` (its rows, OpenRLHF's KL, reward, GAE) and then
OpenRLHF's `PolicyLoss` and `ValueLoss` over micro-batches as its actor and critic call them. The right side
knows no masks and no padding: each trajectory is a list of its own actions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pipeline.settings.ppo import PpoSettings
from reward.types import Role
from tests.experience_rows import Experience, Maker, answer, buffered, micro_batches_of, rows_of

from openrlhf.models.loss import PolicyLoss, ValueLoss  # isort: skip  # after cpu.install()

Array = NDArray[np.float64]
SHAPES = (
    (0.0, 3, 7, 4),
    (-1.0, 9, 2, 6),
    (None, 5, 5, 5),
    (-1 / 3, 1, None, 3),
    (-1.0, 6, 12, 2),
    (0.0, 4, 1, 8),
)


def figure(seed: float, spread: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """A made-up model: a figure for each action from its token and the one before."""

    def forward(tokens: torch.Tensor) -> torch.Tensor:
        exact = torch.sin(tokens[:, 1:].double() * 1.7 + tokens[:, :-1].double() * 0.3 + seed) * spread
        return exact.float()  # as a model gives them

    return forward


POLICY, REFERENCE, CRITIC = figure(0.0, 1.0), figure(0.4, 1.0), figure(1.1, 0.7)
NEW_POLICY, NEW_CRITIC = figure(0.3, 1.1), figure(1.6, 0.8)


@dataclass(frozen=True)
class Turn:
    """One trajectory: its tokens, where its response begins, and its terminal reward."""

    tokens: list[int]
    start: int
    reward: float

    def of(self, seed: float, spread: float) -> Array:
        """(A,) the made-up model's figures of the response's tokens."""
        tokens = np.array(self.tokens, dtype=np.float64)
        figures = np.sin(tokens[1:] * 1.7 + tokens[:-1] * 0.3 + seed) * spread
        return figures[self.start - 1 :]


def turns_of_roles() -> dict[Role, list[Turn]]:
    """The scored trajectories of `SHAPES`, as `tests.experience_rows.answer` makes them."""
    solver, checker = [], []
    for reward, num_solver, num_checker, prompt in SHAPES:
        if reward is None:
            continue
        solver.append(Turn(list(range(1, prompt + num_solver + 1)), prompt, reward))
        if num_checker is not None:
            checker.append(Turn([*range(1, 9), *range(1, num_checker + 1)], 8, reward))
    return {Role.SOLVER: solver, Role.CHECKER: checker}


def advantages_and_returns(turn: Turn, *, gamma: float, lambd: float, kl_coef: float) -> tuple[Array, Array]:
    """GAE (Schulman et al. 2016, arXiv:1506.02438, eq. 16) of a KL-shaped reward (Ouyang et al. 2022, eq. 2).

    delta_t = r_t + gamma V_{t+1} - V_t with V = 0 after the end; A_t = sum_l (gamma lambda)^l delta_{t+l};
    r_t = -beta (log pi_old - log pi_ref), and R on the last token; the critic's target is A_t + V_t.
    """
    rewards = -kl_coef * (turn.of(0.0, 1.0) - turn.of(0.4, 1.0))
    rewards[-1] += turn.reward
    values = turn.of(1.1, 0.7)
    deltas = rewards + gamma * np.append(values[1:], 0.0) - values
    powers = (gamma * lambd) ** np.arange(len(deltas))
    advantages = np.array([(powers[: len(deltas) - t] * deltas[t:]).sum() for t in range(len(deltas))])
    return advantages, advantages + values


def expected(lambd: float) -> dict[str, Array]:
    """Everything that is compared, over the scored trajectories in their order.

    Advantages are whitened by role (paper, section 2.3). The policy's loss is PPO's clipped one (Schulman et
    al. 2017, arXiv:1707.06347, eq. 7), the critic's half of the larger of the plain and the clipped squared
    error, both over all tokens.
    """
    terms: dict[str, list[Array]] = {name: [] for name in ("advantages", "returns", "policy", "value")}
    for turns in turns_of_roles().values():
        pairs = [advantages_and_returns(turn, gamma=0.998, lambd=lambd, kl_coef=0.05) for turn in turns]
        everything = np.concatenate([advantages for advantages, _ in pairs])
        for turn, (raw, returns) in zip(turns, pairs, strict=True):
            advantages = (raw - everything.mean()) / everything.std()
            ratio = np.exp(turn.of(0.3, 1.1) - turn.of(0.0, 1.0))
            clipped = np.clip(ratio, 0.8, 1.2)
            old, new = turn.of(1.1, 0.7), turn.of(1.6, 0.8)
            near = old + np.clip(new - old, -0.2, 0.2)
            terms["advantages"].append(advantages)
            terms["returns"].append(returns)
            terms["policy"].append(-np.minimum(ratio * advantages, clipped * advantages))
            terms["value"].append(0.5 * np.maximum((new - returns) ** 2, (near - returns) ** 2))
    flat = {name: np.concatenate(parts) for name, parts in terms.items()}
    losses = {name: flat[name].mean() for name in ("policy", "value")}
    return flat | {name: np.array(loss) for name, loss in losses.items()}


def maker_of(lambd: float) -> Maker:
    ppo = PpoSettings(lambd=lambd, kl_coef=0.05, gamma=0.998)
    return Maker(ppo, policy=POLICY, reference=REFERENCE, critic=CRITIC)


def made(lambd: float) -> list[Experience]:
    maker = maker_of(lambd)
    answers = [
        answer(reward, solver=solver, checker=checker, prompt=prompt)
        for reward, solver, checker, prompt in SHAPES
    ]
    return maker.make_experience_batch(answers)


def over_tokens(batches: list[Experience], name: str) -> Array:
    rows = rows_of(batches)
    values = torch.cat([getattr(row, name)[row.action_mask.bool()] for row in rows])
    return values.double().numpy()


@pytest.mark.parametrize("lambd", [0.95, 1.0])
def test_advantages_and_returns_are_those_of_the_formulas(lambd: float) -> None:
    batches, want = made(lambd), expected(lambd)
    assert over_tokens(batches, "advantages") == pytest.approx(want["advantages"], abs=1e-6)
    assert over_tokens(batches, "returns") == pytest.approx(want["returns"], abs=1e-6)


@pytest.mark.parametrize("lambd", [0.95, 1.0])
def test_losses_are_those_of_the_formulas(lambd: float) -> None:
    want, parts = expected(lambd), maker_of(lambd).to_train(made(lambd))
    policy = value = torch.zeros(())
    for batch, info in micro_batches_of(buffered(parts, max_tokens=40)):
        new = NEW_POLICY(batch.sequences)
        old, mask = batch.action_log_probs, batch.action_mask
        policy = policy + PolicyLoss()(new, old, batch.advantages, mask, None, **info)[0]
    for batch, info in micro_batches_of(buffered(parts, max_tokens=40)):
        values, mask = NEW_CRITIC(batch.sequences), batch.action_mask
        value = value + ValueLoss(0.2)(values, batch.values, batch.returns, mask, **info)
    assert policy.item() == pytest.approx(float(want["policy"]), abs=1e-6)
    assert value.item() == pytest.approx(float(want["value"]), abs=1e-6)


@pytest.mark.parametrize(("floor", "largest"), [(1e-4, 2.0), (0.1, 0.3)])
@pytest.mark.parametrize("reward", [0.0, -1.0])
def test_equal_rewards_train_on_the_critics_noise_as_far_as_the_floor_lets_them(
    reward: float, floor: float, largest: float
) -> None:
    """With gamma = lambda = 1 and no KL, A_t = R - V_t, whitened by max(deviation, floor)."""
    shapes = [(3 + n % 5, 4 + n % 7) for n in range(32)]
    ppo = PpoSettings(gamma=1.0, kl_coef=0.0, whitening_floor=floor)
    maker = Maker(ppo, policy=POLICY, reference=REFERENCE, critic=figure(1.1, 0.02))
    answers = [answer(reward, solver=length, checker=None, prompt=prompt) for length, prompt in shapes]
    got = over_tokens(maker.make_experience_batch(answers), "advantages")
    turns = [Turn(list(range(1, prompt + length + 1)), prompt, reward) for length, prompt in shapes]
    raw = np.concatenate([turn.reward - turn.of(1.1, 0.02) for turn in turns])
    assert got == pytest.approx((raw - raw.mean()) / max(raw.std(), floor), abs=1e-5)
    assert largest / 2 < np.abs(got).max() < largest


def test_rewards_that_differ_are_whitened_as_if_there_were_no_floor() -> None:
    made_with = [
        over_tokens(
            Maker(
                PpoSettings(whitening_floor=floor), policy=POLICY, reference=REFERENCE, critic=CRITIC
            ).make_experience_batch([answer(reward, solver=4, prompt=6) for reward in (0.0, -1.0, -1.0)]),
            "advantages",
        )
        for floor in (1e-4, 0.1)
    ]
    assert made_with[0] == pytest.approx(made_with[1], abs=0)
