"""The figures of one PPO step, from its verdicts, its tensors and OpenRLHF's own: pure, so that tests need no
trainer.

    solver/ checker/ proposer/    reward, KL, entropy, value error, advantages, lengths, tokens a second
    audit/ oracle/ canary/        outcomes, claims and votes; the truth, where it is known; a frozen Checker
    held_out/                     answers to rows that are never trained on (pipeline.training.held_out)
    ppo/ sync/                    the updates, as OpenRLHF tells them; the weight sync
    rollout/ rollouts/            how old answers are (pipeline.training.step_answers); how many are kept
    time/ guards/                 seconds by phase and our own share of them; how near each guard is to acting

What each is over is in docs/training.md. An answer without a claim, an abstention too, is in
`audit/no_claims_rate`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from pipeline.record.rollout_record import RolloutRecord
from reward.judging.vote import Reason
from reward.types import ClaimState, Outcome, Role

if TYPE_CHECKING:
    from openrlhf.trainer.ppo_utils.experience import Experience

# OpenRLHF's own step figures that say what ours do not; its rewards and lengths average over fillers.
# Those of the update are over trained tokens and means over a step's updates (`pipeline.training.updates`).
STATUS_NAMES = {
    "policy_loss": "ppo/policy_loss",
    "critic_loss": "ppo/critic_loss",
    "actor_lr": "ppo/actor_lr",
    "critic_lr": "ppo/critic_lr",
    "actor_grad_norm": "ppo/actor_grad_norm",
    "critic_grad_norm": "ppo/critic_grad_norm",
    "ppo_clip_ratio": "ppo/clip_fraction",
    "ppo_kl": "ppo/update_kl",
    "is_filter_ratio": "ppo/out_of_bounds_rate",
    "timing/generation": "time/rollout_s",
    "timing/make_experience": "time/experience_s",
    "timing/ppo_train": "time/update_s",
    "timing/broadcast": "time/sync_s",
    "timing/step_total": "time/step_s",
}


class Stopwatch:
    """Adds up the seconds of its `with` blocks."""

    def __init__(self) -> None:
        self._total_s = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self._total_s += time.perf_counter() - self._start

    def take(self) -> float:
        taken, self._total_s = self._total_s, 0.0
        return taken


def rollout_metrics(
    records: Sequence[RolloutRecord],
    batches: Mapping[Role, Sequence[Experience]],
    *,
    group_size: int = 1,
    has_reference: bool = True,
    refuses_saying_less: bool = False,
) -> dict[str, float]:
    """Returns slash-named figures: `audit/*`, `oracle/*` if there is one, and those of each trained role."""
    metrics = audit_metrics(records) | oracle_metrics(records) | turn_metrics(records)
    if refuses_saying_less:  # else nobody looks for them
        metrics |= _mean("audit/says_less_rate", [record.says_less for record in records])
    for role, role_batches in batches.items():
        metrics |= role_metrics(role, role_batches, has_reference=has_reference)
        metrics |= group_metrics(role, role_batches, group_size)
    return metrics


def audit_metrics(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Rates are over all answers of the step, means of claims and mentions too; claims are those that voters
    were asked about. What a step has none of (claims, mentions, votes) has no figure, as 0 would be the best.
    """
    verdicts = [record.verdict for record in records]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    total = len(verdicts)
    mentions = sum(verdict.num_mentions for verdict in verdicts)
    claims = [claim for verdict in verdicts for claim in verdict.voted_claims]
    decided = [claim for claim in claims if claim.state is not ClaimState.FAILED]
    rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
    spare = [turns for record in records for turns in record.spare_turns.values()]
    without_claims = [one for one in verdicts if one.reason == Reason.REFUTED_WITHOUT_CLAIMS]
    metrics = {f"audit/{outcome.value.lower()}_rate": outcomes[outcome] / total for outcome in Outcome}
    metrics |= {
        "audit/refuted_without_claims_rate": len(without_claims) / total,
        "audit/mentions_per_answer": mentions / total,
        "audit/claims_per_answer": len(claims) / total,
        "audit/dropped_claims_per_answer": sum(verdict.num_dropped_claims for verdict in verdicts) / total,
        "audit/checker_turns_per_answer": sum(record.num_checker_turns for record in records) / total,
        "audit/turns_left_out_per_answer": sum(map(len, spare)) / total,
        "audit/seconds_per_answer": sum(record.audit_s for record in records) / total,
    }
    if mentions:
        metrics["audit/uncovered_rate"] = sum(len(verdict.uncovered) for verdict in verdicts) / mentions
    for kind in sorted({claim.claim.kind for claim in claims}):
        errors = [one.state is not ClaimState.SUPPORTED for one in decided if one.claim.kind == kind]
        metrics[f"audit/{kind}/claims_per_answer"] = sum(one.claim.kind == kind for one in claims) / total
        metrics |= _mean(f"audit/{kind}/errors_per_claim", errors)
    voted = [claim for claim in claims if claim.tally]  # of the votes that could be read
    shares = [max(claim.tally.values()) / sum(claim.tally.values()) for claim in voted]
    metrics |= _mean("audit/errors_per_claim", [one.state is not ClaimState.SUPPORTED for one in decided])
    metrics |= _mean("audit/reward", rewards)  # on the audit's scale -1/0, whatever the trainer pays
    metrics |= _mean("audit/vote_agreement", shares)  # what the first place has
    metrics |= _mean("audit/vote_entropy", [claim.entropy for claim in voted])
    for outcome in (Outcome.UNSCORED, Outcome.REFUTED, Outcome.NO_CLAIMS):
        reasons = Counter(verdict.reason for verdict in verdicts if verdict.outcome is outcome)
        prefix = f"audit/{outcome.value.lower()}"
        metrics |= {f"{prefix}/{reason}": count / total for reason, count in reasons.items()}
    return metrics


def _mean(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: sum(values) / len(values)} if values else {}


def oracle_metrics(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Ground truth figures; empty when the run has no oracle.

    Rates are of all judged answers: `false_accept_rate` is the share that is accepted and wrong.
    """
    judged = [record.oracle for record in records if record.oracle is not None]
    if not judged:
        return {}
    consensus = sum(j.num_consensus for j in judged)
    known = [j.right for j in judged if j.right is not None]
    metrics = {"oracle/right_rate": sum(known) / len(known)} if known else {}
    metrics |= {
        "oracle/faithful_rate": sum(j.faithful for j in judged) / len(judged),
        "oracle/false_accept_rate": sum(j.false_accept for j in judged) / len(judged),
        "oracle/false_reject_rate": sum(j.false_reject for j in judged) / len(judged),
    }
    for name, answerable in (("abstention_right", False), ("abstention_wrong", True)):
        asked = [j.abstained for j in judged if j.answerable is answerable]
        if asked and any(not j.answerable for j in judged):
            metrics[f"oracle/{name}_rate"] = sum(asked) / len(asked)
    if consensus:
        metrics["oracle/consensus_accuracy"] = sum(j.num_consensus_right for j in judged) / consensus
    return metrics


def turn_metrics(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """What each role wrote, trained on or not: tokens of the step, and of a turn."""
    metrics = {"solver/seconds_per_answer": sum(record.generation_s for record in records) / len(records)}
    for role in Role:
        lengths = [length for record in records for length in record.turn_tokens.get(role, ())]
        if lengths:
            metrics[f"{role}/num_tokens"] = float(sum(lengths))
            metrics[f"{role}/tokens_per_turn"] = sum(lengths) / len(lengths)
    return metrics


def step_metrics(
    status: Mapping[str, float],
    rollout: Mapping[str, float],
    *,
    own_s: float,
    sync_s: float | None = None,
) -> dict[str, float]:
    """Returns OpenRLHF's figures of a step by our names, and the time by phase and role.

    Answers and audits of a step run side by side. `time/audit_s` is the audits' part of the rollout, which is
    shared out by the seconds that answers spent in the one and in the other; `ROLE/tokens_per_s` is of the
    whole rollout. `time/own_share` is what the trainer spent in our code (experience outside the models,
    records) of the step.

    `time/step_s` is the sum of rollout, experience, update and sync, so that waiting for the canary
    (`time/canary_s`), held-out answers (`time/held_out_s`) and checkpoints are not in it. In asynchronous
    mode the rollout runs beside the steps before; there it is the time from the last step's sync to the end
    of this one's, and what came between is in it.

    Args:
        status: OpenRLHF's figures.
        rollout: Those of `rollout_metrics`.
        own_s: Seconds in our own code.
        sync_s: Of the weight sync in asynchronous mode, where OpenRLHF counts the wait for the engines, too.
    """
    named = {name: float(status[key]) for key, name in STATUS_NAMES.items() if key in status}
    metrics = {name: value for name, value in named.items() if math.isfinite(value)}
    if sync_s is not None and "time/sync_s" in metrics:
        metrics |= {"time/sync_s": sync_s, "time/sync_wait_s": metrics["time/sync_s"] - sync_s}
    solving_s, auditing_s = rollout["solver/seconds_per_answer"], rollout["audit/seconds_per_answer"]
    if rollout_s := metrics.get("time/rollout_s"):
        metrics["time/audit_s"] = rollout_s * auditing_s / ((solving_s + auditing_s) or 1.0)
        tokens = {role: rollout.get(f"{role}/num_tokens") for role in Role}
        metrics |= {f"{role}/tokens_per_s": num / rollout_s for role, num in tokens.items() if num}
    if step_s := metrics.get("time/step_s"):
        metrics |= {"time/own_s": own_s, "time/own_share": own_s / step_s}
    return metrics


def role_metrics(
    role: Role, batches: Sequence[Experience], *, has_reference: bool = True
) -> dict[str, float]:
    """Means over the rows of a role that are trained, before the update; `num_trained` and `num_masked` count
    all of them, fillers too.

    `kl` is the mean of the rows' means by token. `entropy` is the policy's, in nats a token at the rollout's
    temperature; `advantage_mean` and `advantage_std` are of what the loss gets, with GAE of whitened
    advantages; `value_error` is the critic's mean squared distance from the returns.
    """
    trained = torch.cat([batch.action_mask.any(dim=-1) for batch in batches])  # (N,)
    prefix = role.value
    counts = {f"{prefix}/num_trained": float(trained.sum()), f"{prefix}/num_masked": float((~trained).sum())}
    if not trained.any():
        return counts
    per_row = {
        "reward": torch.cat([batch.rewards.float() for batch in batches]),
        "response_length": torch.cat([batch.response_length.float() for batch in batches]),
        "truncated_rate": torch.cat([batch.truncated.float() for batch in batches]),
    }
    if has_reference:  # else OpenRLHF writes zeros, which nobody measured
        per_row["kl"] = torch.cat([batch.info["kl"].float() for batch in batches])
    metrics = {f"{prefix}/{name}": float(values[trained].mean()) for name, values in per_row.items()}
    if batches[0].rollout_log_probs is not None:
        metrics[f"{prefix}/sampler_gap"] = sampler_gap(batches)
    masks = torch.cat([batch.action_mask.flatten() for batch in batches]).bool()
    has_critic = batches[0].values is not None
    per_token = {"advantage": [batch.advantages for batch in batches]}  # each (B, A)
    per_token |= {"value": [batch.values for batch in batches]} if has_critic else {}
    for name, tensors in per_token.items():
        values = torch.cat([tensor.float().flatten() for tensor in tensors])[masks]
        metrics[f"{prefix}/{name}_mean"] = float(values.mean())
        metrics[f"{prefix}/{name}_std"] = float(values.std(unbiased=False))
    # Estimated from the sampled tokens, so it costs no pass over the vocabulary; with a top_p, or older
    # weights (asynchronous mode), they are not drawn from this policy, and it is the cross-entropy.
    sampled = torch.cat([batch.action_log_probs.float().flatten() for batch in batches])[masks]
    metrics[f"{prefix}/entropy"] = -float(sampled.mean())
    if has_critic:
        errors = [(batch.returns - batch.values).float().flatten() for batch in batches]
        metrics[f"{prefix}/value_error"] = float(torch.cat(errors)[masks].square().mean())
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
