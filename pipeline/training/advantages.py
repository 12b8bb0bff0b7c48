"""Group baselines and whitening over the rows of one role that are trained: pure tensors.

OpenRLHF 0.11.2 counts every row of a group (`RemoteExperienceMaker.compute_advantages_and_returns`). A masked
row's reward is a 0 that stands for nothing, and 0 is the best reward of the scale -1/0: counted, each failed
audit would raise the baseline of its group. Here such rows are in no mean, no deviation and no count. Without
them the figures are OpenRLHF's own (`tests/test_advantages.py` holds one against the other).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from pipeline.settings.ppo import AdvantageEstimator


def against_group(
    rewards: Tensor, scored: Tensor, *, estimator: AdvantageEstimator, group_size: int
) -> Tensor:
    """Holds each scored reward against those of its group; a scored row alone in its group gets 0.

    Args:
        rewards: (N,) of one role, rows of a prompt side by side.
        scored: (N,) which rows are trained; the others get 0.
        estimator: `rloo` subtracts the mean of the other rows (Ahmadian et al. 2024, arXiv:2402.14740);
            `gae` changes nothing.
        group_size: answers to one prompt.

    Returns:
        (N,) rewards to be spread over the tokens.
    """
    if estimator is not AdvantageEstimator.RLOO:
        return rewards
    members = scored.reshape(-1, group_size)  # (G, n)
    # In 64 bits equal rewards are exactly their mean; what rounding left of them would be divided by itself.
    values = rewards.double().reshape(-1, group_size)
    count = members.sum(-1, keepdim=True).to(values.dtype)  # (G, 1)
    mean = (values * members).sum(-1, keepdim=True) / count.clamp(min=1)
    # r - (S - r) / (m - 1) = m / (m - 1) (r - S / m)
    centered = (values - mean) * members * count / (count - 1).clamp(min=1)
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


def stacked(batches: Sequence[Tensor]) -> Tensor:
    """Returns (B, A) of several micro-batches as one of all their rows, padded with 0 on the right."""
    longest = max(batch.shape[-1] for batch in batches)
    return torch.cat([pad(batch, (0, longest - batch.shape[-1])) for batch in batches])


def unstacked(rows: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Returns the rows of each micro-batch, without the padding: the reverse of `stacked`."""
    parts = torch.split(rows, [num_rows for num_rows, _ in shapes])
    # A slice would carry all rows with it to another process.
    return [part[:, :length].clone() for part, (_, length) in zip(parts, shapes, strict=True)]


def whitening(
    advantages: list[Tensor], masks: list[Tensor], *, estimator: AdvantageEstimator, floor: float
) -> tuple[Tensor, Tensor]:
    """Returns the mean of a role's advantages and one over their deviation; 0 and 1 where none is wanted.

    Where all rewards of a step are equal, the critic's error is left, and divided by its own deviation it
    would be an update of full size. The floor, on the scale of the rewards, keeps it small.

    Args:
        advantages: (B, A) of each micro-batch.
        masks: (B, A) 1 for a token that is trained.
        estimator: OpenRLHF whitens `gae`, not `rloo`.
        floor: the least deviation.
    """
    one = torch.ones((), dtype=advantages[0].dtype)
    if estimator is not AdvantageEstimator.GAE:
        return torch.zeros_like(one), one
    values = torch.cat([tensor.flatten() for tensor in advantages])
    shares = torch.cat([mask.flatten() for mask in masks])
    total = shares.sum().clamp(min=1e-8)  # a role without any trained row stays finite
    mean = (values * shares).sum() / total
    variance = ((values - mean).square() * shares).sum() / total
    return mean, variance.clamp(min=floor**2).rsqrt()
