"""From rollouts to the PPO buffer: one Checker trajectory beside each Solver trajectory.

`MarchSamplesGenerator` turns an agent's dict into a Solver experience with its Checker's attached;
`MarchExperienceMaker` lays all rows out by role, lets OpenRLHF compute log-probabilities, values and the KL
penalty, and estimates advantages for each role by itself (paper section 2.3: "advantages and KL-divergence
penalties are estimated independently").

Three rules keep this sound:
* The number of rows a step is fixed. An answer without a Checker turn brings a filler, a row whose action
  mask is all zero; an UNSCORED answer keeps its row with its mask zeroed. A zero mask gives no reward, no
  advantage and no gradient.
* Rows are ordered Solver first, then Checker, each in the order of the prompts, so OpenRLHF's grouping by
  `n_samples_per_prompt` groups by prompt and role.
* The terminal reward stands on the last valid token of each row (OpenRLHF's `compute_reward` finds it by the
  mask).
"""

from __future__ import annotations

from typing import Any

import torch
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

from pipeline.metrics import rollout_metrics
from pipeline.rollout import RolloutRecord
from reward.types import Role, Trajectory

_FILLER_TOKENS = 2  # the shortest row that has one action


class MarchSamplesGenerator(SamplesGenerator):  # type: ignore[misc]  # OpenRLHF is untyped
    """Carries the rollout record and the Checker's trajectory of each answer to the trainer."""

    def _process_response_into_experience(
        self, response: dict[str, Any], **generate_kwargs: Any
    ) -> Experience:
        record: RolloutRecord = response["rollout"]
        solver = super()._process_response_into_experience(solver_row(response), **generate_kwargs)
        # Plain attributes, not dataclass fields: they live until `concat_experiences`, which is after
        # flattening.
        solver.rollout = record
        solver.checker = super()._process_response_into_experience(
            checker_row(response, record), **generate_kwargs
        )
        return solver


def solver_row(response: dict[str, Any]) -> dict[str, Any]:
    """Returns the Solver's row; without a reward it has no action to train."""
    if response["reward"] is not None:
        return response
    return {**response, **_UNTRAINED}


def checker_row(response: dict[str, Any], record: RolloutRecord) -> dict[str, Any]:
    """Returns the Checker's row with the answer's terminal reward, or a filler."""
    turn = record.checker
    if turn is None or response["reward"] is None:
        tokens = response["observation_tokens"][:_FILLER_TOKENS]
        log_probs = None if response["rollout_log_probs"] is None else [0.0] * len(tokens)
        return {**response, **_UNTRAINED, "observation_tokens": tokens, "rollout_log_probs": log_probs}
    num_prompt = len(turn.prompt_token_ids)
    tokens = [*turn.prompt_token_ids, *turn.response_token_ids]
    return {
        **response,
        "observation_tokens": tokens,
        "action_ranges": [(num_prompt, len(tokens))],
        "rollout_log_probs": _rollout_log_probs(response, turn),
        "truncated": turn.finish_reason == "length",
    }


# The zero stands for "nothing" only together with the empty action range: every use of it is multiplied by
# the mask.
_UNTRAINED: dict[str, Any] = {"reward": 0.0, "scores": 0.0, "action_ranges": [], "truncated": False}


def _rollout_log_probs(response: dict[str, Any], turn: Trajectory) -> list[float] | None:
    if response["rollout_log_probs"] is None:
        return None
    if turn.logprobs is None:
        raise ValueError(
            "the Checker's trajectory lacks log-probabilities, which off-policy correction needs"
        )
    return [0.0] * len(turn.prompt_token_ids) + list(turn.logprobs)


class MarchExperienceMaker(RemoteExperienceMaker):  # type: ignore[misc]  # OpenRLHF is untyped
    """Adds the Checker's rows and keeps the roles' advantages apart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.metrics: dict[str, float] = {}
        self.records: list[RolloutRecord] = []

    def make_experience_batch(self, rollout_samples: list[Experience]) -> list[Experience]:
        """Returns the micro-batches of one PPO step, Solver's first; fills `metrics` and `records`."""
        self.records = [sample.rollout for sample in rollout_samples]
        rows = {Role.SOLVER: rollout_samples, Role.CHECKER: [sample.checker for sample in rollout_samples]}
        batches = {role: self.split_rollout_samples(samples) for role, samples in rows.items()}
        self.make_experience([batch for role in rows for batch in batches[role]])
        advantages = [self._advantages_of_role(batches[role]) for role in rows]
        self.metrics = rollout_metrics(self.records, batches)
        return [batch for role_batches in advantages for batch in role_batches]

    def make_experience(self, samples_list: list[Experience]) -> list[Experience]:
        """As OpenRLHF's, with the mean over no tokens of a masked row set to 0 in the logged figures."""
        experiences: list[Experience] = super().make_experience(samples_list)
        for experience in experiences:
            for key in ("kl", "logprobs_diff"):
                experience.info[key] = torch.nan_to_num(experience.info[key], nan=0.0)
        return experiences

    def _advantages_of_role(self, batches: list[Experience]) -> list[Experience]:
        if any(bool(batch.action_mask.any()) for batch in batches):
            experiences: list[Experience] = self.compute_advantages_and_returns(batches)
            return experiences
        for batch in batches:  # whitening over no action at all would divide by zero
            batch.rewards = batch.rewards.float()
            batch.advantages = torch.zeros_like(batch.action_mask, dtype=torch.float32)  # (B, A)
            batch.returns = torch.zeros_like(batch.advantages)  # (B, A)
            batch.info["return"] = torch.zeros(len(batch.rewards))  # (B,)
            batch.kl = None
        return batches
