"""The figures of one PPO step, from its verdicts and its tensors: pure, so that tests need no trainer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from reward.types import ClaimState, Outcome, Role

if TYPE_CHECKING:
    from openrlhf.trainer.ppo_utils.experience import Experience

    from pipeline.rollout import RolloutRecord


def rollout_metrics(
    records: Sequence[RolloutRecord], batches: Mapping[Role, Sequence[Experience]], *, group_size: int = 1
) -> dict[str, float]:
    """Returns slash-named figures: `audit/*`, `oracle/*` if there is one, and those of each trained role."""
    metrics = audit_metrics(records) | oracle_metrics(records)
    for role, role_batches in batches.items():
        metrics |= role_metrics(role, role_batches) | group_metrics(role, role_batches, group_size)
    return metrics


def audit_metrics(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Rates are over all answers of the step; means of claims and numbers too."""
    verdicts = [record.verdict for record in records]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    total = len(verdicts)
    numbers = sum(verdict.num_numbers for verdict in verdicts)
    claims = [claim for verdict in verdicts for claim in verdict.claims]
    decided = [claim for claim in claims if claim.state is not ClaimState.FAILED]
    rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
    metrics = {f"audit/{outcome.value.lower()}_rate": outcomes[outcome] / total for outcome in Outcome}
    metrics |= {
        "audit/numbers_per_answer": numbers / total,
        "audit/claims_per_answer": len(claims) / total,
        "audit/uncovered_rate": sum(len(verdict.uncovered) for verdict in verdicts) / max(numbers, 1),
        "audit/dropped_claims_per_answer": sum(verdict.num_dropped_claims for verdict in verdicts) / total,
        "audit/errors_per_claim": sum(claim.state is not ClaimState.SUPPORTED for claim in decided)
        / max(len(decided), 1),
        "audit/checker_turns_per_answer": sum(record.num_checker_turns for record in records) / total,
        "audit/vote_entropy": sum(claim.entropy for claim in claims) / max(len(claims), 1),
        "audit/seconds_per_answer": sum(record.audit_s for record in records) / total,
    }
    if rewards:  # on the audit's scale -1/0, whatever the trainer pays
        metrics["audit/reward"] = sum(rewards) / len(rewards)
    reasons = Counter(verdict.reason for verdict in verdicts if verdict.outcome is Outcome.UNSCORED)
    return metrics | {f"audit/unscored/{reason}": count / total for reason, count in reasons.items()}


def oracle_metrics(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Ground truth figures; empty when the run has no oracle."""
    judged = [record.oracle for record in records if record.oracle is not None]
    if not judged:
        return {}
    consensus = sum(j.num_consensus for j in judged)
    metrics = {
        "oracle/faithful_rate": sum(j.faithful for j in judged) / len(judged),
        "oracle/false_accept_rate": sum(j.false_accept for j in judged) / len(judged),
        "oracle/false_reject_rate": sum(j.false_reject for j in judged) / len(judged),
    }
    if consensus:
        metrics["oracle/consensus_accuracy"] = sum(j.num_consensus_right for j in judged) / consensus
    return metrics


def role_metrics(role: Role, batches: Sequence[Experience]) -> dict[str, float]:
    """Means over the rows of a role that are trained; `num_trained` and `num_masked` count all of them."""
    trained = torch.cat([batch.action_mask.any(dim=-1) for batch in batches])  # (N,)
    prefix = role.value
    counts = {
        f"{prefix}/num_trained": float(trained.sum()),
        f"{prefix}/num_masked": float((~trained).sum()),
    }
    if not trained.any():
        return counts
    per_row = {
        "reward": torch.cat([batch.rewards.float() for batch in batches]),
        "kl": torch.cat([batch.info["kl"].float() for batch in batches]),
        "response_length": torch.cat([batch.response_length.float() for batch in batches]),
        "truncated_rate": torch.cat([batch.truncated.float() for batch in batches]),
    }
    metrics = {f"{prefix}/{name}": float(values[trained].mean()) for name, values in per_row.items()}
    if batches[0].rollout_log_probs is not None:
        metrics[f"{prefix}/sampler_gap"] = sampler_gap(batches)
    per_token = {
        "advantage": [batch.advantages for batch in batches],
        "value": [batch.values for batch in batches],
    }
    masks = torch.cat([batch.action_mask.flatten() for batch in batches]).bool()
    for name, tensors in per_token.items():
        if tensors[0] is None:
            continue
        values = torch.cat([tensor.float().flatten() for tensor in tensors])[masks]
        metrics[f"{prefix}/{name}_mean"] = float(values.mean())
        metrics[f"{prefix}/{name}_std"] = float(values.std(unbiased=False))
    return counts | metrics


def sampler_gap(batches: Sequence[Experience]) -> float:
    """Mean |log p_sampler - log p_actor| over trained tokens, in nats: rounding, older weights, top_p."""
    gaps = [
        (batch.rollout_log_probs - batch.action_log_probs).abs()[batch.action_mask.bool()]
        for batch in batches
    ]
    return float(torch.cat(gaps).float().mean())


def group_metrics(role: Role, batches: Sequence[Experience], group_size: int) -> dict[str, float]:
    """How far apart the scored answers to one prompt are; a group without contrast teaches nothing."""
    if group_size < 2:
        return {}
    scored = torch.cat([batch.action_mask.any(dim=-1) for batch in batches]).reshape(-1, group_size)
    rewards = torch.cat([batch.rewards.float() for batch in batches]).reshape(-1, group_size)
    groups = [row[members] for row, members in zip(rewards, scored, strict=True) if members.sum() > 1]
    flat = sum(bool((group == group[0]).all()) for group in groups)
    metrics = {f"{role.value}/num_groups": float(len(groups))}
    return metrics | ({f"{role.value}/flat_group_rate": flat / len(groups)} if groups else {})
