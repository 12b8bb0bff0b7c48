"""Answers that older weights gave: how old they are, and which are too old to be trained.

In asynchronous mode the engines answer while the actor trains. OpenRLHF's queue bounds how far they run
ahead, and its lock keeps a batch, audits included, on one weights version; both are its own, so the trainer
counts again. An answer too old is masked as an UNSCORED one is: it keeps its rows, and no figure of it
becomes a reward.
"""

from __future__ import annotations

from typing import Any

import torch


def staleness(sample: Any, *, version: int) -> int:
    """Weight syncs since the oldest turn of an answer was sampled; 0 where nobody knows."""
    versions = [v for of_role in sample.rollout.weights_versions.values() for v in of_role]
    return version - min(versions, default=version)


def mask_stale(samples: list[Any], *, version: int, limit: int) -> int:
    """Masks the rows of answers older than `limit` weight syncs; returns how many of them had a reward.

    Args:
        samples: a step's answers, as `pipeline.training.experience.MarchSamplesGenerator` makes them.
        version: of the weights that are about to be trained.
        limit: `rollout.max_staleness`.
    """
    stale = [sample for sample in samples if staleness(sample, version=version) > limit]
    for sample in stale:
        for row in [sample, *sample.turns.values()]:
            row.action_mask = torch.zeros_like(row.action_mask)
    return sum(sample.rollout.verdict.reward is not None for sample in stale)
