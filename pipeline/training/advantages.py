"""Group baselines, whitening and row weights over the rows of one role that are trained: pure tensors.

OpenRLHF 0.11.2 counts every row of a group (`RemoteExperienceMaker.compute_advantages_and_returns`). A masked
row's reward is a 0 that stands for nothing, and 0 is the best reward of the scale -1/0: counted, each failed
audit would raise the baseline of its group. Here such rows are in no mean, no deviation and no count. Without
them the figures are OpenRLHF's own (`tests/test_advantages.py` holds one against the other).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.settings.ppo import AdvantageEstimator

_WHITENED = (AdvantageEstimator.GAE, AdvantageEstimator.REINFORCE, AdvantageEstimator.REINFORCE_BASELINE)


def against_group(
    rewards: Tensor, scored: Tensor, *, estimator: AdvantageEstimator, group_size: int
) -> Tensor:
    """Holds each scored reward against those of its group; a scored row alone in its group gets 0.

    Args:
        rewards: (N,) of one role, rows of a prompt side by side.
        scored: (N,) which rows are trained; the others get 0.
        estimator: `rloo` subtracts the mean of the other rows (Ahmadian et al. 2024, arXiv:2402.14740),
            `reinforce_baseline` and `dr_grpo` (arXiv:2503.20783) the mean of all, `group_norm` divides by
            the sample deviation, too (Shao et al. 2024, arXiv:2402.03300); others change nothing.
        group_size: answers to one prompt.

    Returns:
        (N,) rewards to be spread over the tokens.
    """
    if not estimator.is_grouped:
        return rewards
    members = scored.reshape(-1, group_size)  # (G, n)
    # In 64 bits equal rewards are exactly their mean; what rounding left of them would be divided by itself.
    values = rewards.double().reshape(-1, group_size)
    count = members.sum(-1, keepdim=True).to(values.dtype)  # (G, 1)
    mean = (values * members).sum(-1, keepdim=True) / count.clamp(min=1)
    centered = (values - mean) * members
    if estimator is AdvantageEstimator.RLOO:  # r - (S - r) / (m - 1) = m / (m - 1) (r - S / m)
        centered = centered * count / (count - 1).clamp(min=1)
    elif estimator is AdvantageEstimator.GROUP_NORM:
        deviation = (centered.square().sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centered = centered / (deviation + 1e-9)
    return centered.reshape(-1).to(rewards.dtype)


def spared(advantages: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """What tokens of a refuted turn are paid beside its advantage, where they are worth more than the turn.

    With the whole of their value they have the advantage of a supported turn against the same baseline. They
    get at most what the refuted tokens lose: the advantages of the turn's tokens add up to 0 or less, and a
    wrong answer is not paid for what is right in it.

    Args:
        advantages: (B,) of each turn, as `against_group` makes them.
        values: (B, A) by how much a token is worth more than its turn; 0 for those that bear its penalty.
        mask: (B, A) 1 for a token that is trained.

    Returns:
        (B, A) from 0 to `values`.
    """
    num = (values > 0).sum(-1).clamp(min=1)
    balance = (-advantages * mask.sum(-1) / num).clamp(min=0)  # with it the turn's tokens add up to 0
    return values.minimum(balance.unsqueeze(-1))


def whitening(
    advantages: list[Tensor],
    masks: list[Tensor],
    weights: list[Tensor],
    *,
    estimator: AdvantageEstimator,
    floor: float,
) -> tuple[Tensor, Tensor]:
    """Returns the mean of a role's advantages and one over their deviation; 0 and 1 where none is wanted.

    Where all rewards of a step are equal, the critic's error is left, and divided by its own deviation it
    would be an update of full size. The floor, on the scale of the rewards, keeps it small.

    Args:
        advantages: (B, A) of each micro-batch.
        masks: (B, A) 1 for a token that is trained.
        weights: (B,) of each row: the mean of rows that weigh a third counts them a third.
        estimator: OpenRLHF whitens `gae`, `reinforce` and `reinforce_baseline`.
        floor: the least deviation.
    """
    one = torch.ones((), dtype=advantages[0].dtype)
    if estimator not in _WHITENED:
        return torch.zeros_like(one), one
    values = torch.cat([tensor.flatten() for tensor in advantages])
    shares = torch.cat([(m * w.unsqueeze(-1)).flatten() for m, w in zip(masks, weights, strict=True)])
    total = shares.sum().clamp(min=1e-8)  # a role without any trained row stays finite
    mean = (values * shares).sum() / total
    variance = ((values - mean).square() * shares).sum() / total
    return mean, variance.clamp(min=floor**2).rsqrt()


def loss_weights(masks: list[Tensor], weights: list[Tensor], *, is_token_mean: bool) -> list[Tensor]:
    """Factors for each row's advantages that make OpenRLHF's loss the weighted one.

    For a weight w > 0, `min(r wA, clip(r) wA) = w min(r A, clip(r) A)`: PPO's clipped term is linear in a
    positive factor of its advantage, so a scaled advantage is a scaled loss of that token, and scaled in its
    gradient too. OpenRLHF divides the sum by the T trained tokens of the step. The weighted mean divides by
    the sum of w over them, so all rows get T over that sum as well. With a fixed divisor nothing is fixed.

    Args:
        masks: (B, A) of each micro-batch of the step, all roles.
        weights: (B,) of each row.
        is_token_mean: whether the loss is divided by the tokens of the step.
    """
    lengths = [mask.sum(-1).float() for mask in masks]  # (B,)
    total = sum(float(length.sum()) for length in lengths)
    weighed = sum(float((length * w).sum()) for length, w in zip(lengths, weights, strict=True))
    scale = total / weighed if is_token_mean and weighed else 1.0
    return [w * scale for w in weights]
