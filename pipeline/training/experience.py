"""From rollouts to the PPO buffer: the audit's trajectories beside each Solver trajectory.

`MarchSamplesGenerator` turns an agent's dict into a Solver experience with the other roles' rows attached;
`MarchExperienceMaker` lays all rows out by role, lets OpenRLHF compute log-probabilities, values and the KL
penalty, and estimates advantages for each role by itself (paper section 2.3: "advantages and KL-divergence
penalties are estimated independently").

Four rules keep this sound:
* The number of rows a step is fixed. An answer without a turn of a role brings a filler, a row whose action
  mask is all zero; an UNSCORED answer keeps its row with its mask zeroed. A zero mask gives no reward, no
  advantage and no gradient, is in no group's baseline, and no model computes it. Equal rows are scored once,
  and without a critic, whose targets are no sum, trained once with the weight of all
  (`pipeline.training.micro_batches`).
* Rows are ordered by role and within a role by prompt, so a group of `n_samples_per_prompt` rows is of one
  prompt and one role.
* The terminal reward is on the last valid token of each row (OpenRLHF's `compute_reward` finds it by the
  mask). It is the verdict's (or, with `checker_credit: vote`, what a Checker's own votes say), or
  `truncated_reward`, and then shifted by `reward_scalars`; only a row with an action has one, so 0/1 pays no
  failure.
* Where tokens of one turn are paid apart (`pipeline.training.credit`), those that bear no penalty get more
  than the turn's advantage (`pipeline.training.advantages.spared`), and nothing else changes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from openrlhf.models.utils import compute_reward
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.length_penalty import apply_length_penalties
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

from pipeline.record.metrics import Stopwatch, rollout_metrics
from pipeline.record.rollout_record import RolloutRecord
from pipeline.record.rollout_rows import TrainedAnswer, answer_turns
from pipeline.settings.ppo import AdvantageEstimator, PpoSettings
from pipeline.training.advantages import against_group, spared, stacked, unstacked, whitening
from pipeline.training.answer_rows import role_row, solver_row, turn_row
from pipeline.training.credit import token_credit
from pipeline.training.micro_batches import (
    alone,
    batch_of,
    content,
    fill_in,
    filler,
    is_trained,
    merged,
    num_tokens,
    rows_of,
    scoring_batches,
    shared,
)
from pipeline.training.trainer_settings import Batching
from reward.types import Role

# Of the probe's limit, for answers of older weights: far beyond what steps of healthy runs move a policy by.
_TIMES_WIDER = 10


class WeightSyncError(RuntimeError):
    """Engines and actor disagree on the tokens of a step: what is sampled is not what is trained."""


class MarchSamplesGenerator(SamplesGenerator):  # type: ignore[misc]  # OpenRLHF is untyped
    """Carries the rollout record and the other roles' trajectories of each answer to the trainer."""

    def __init__(self, *, train_roles: Sequence[Role], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.train_roles = train_roles
        self.is_over: Callable[[], bool] = lambda: False

    def generate_samples(self, **generate_kwargs: Any) -> tuple[list[Experience], float | None, int, bool]:
        """As OpenRLHF's; nothing more once the run is over, which ends its loop as the last row would."""
        if self.is_over():
            return [], None, 0, True
        drawn: tuple[list[Experience], float | None, int, bool] = super().generate_samples(**generate_kwargs)
        return drawn

    def _process_response_into_experience(
        self, response: dict[str, Any], **generate_kwargs: Any
    ) -> Experience:
        record: RolloutRecord = response["rollout"]
        process = super()._process_response_into_experience
        solver = process(solver_row(response), **generate_kwargs)
        # Plain attributes, not dataclass fields: they live until `concat_experiences`, which is after
        # flattening.
        solver.rollout = record
        solver.turns = {
            role: process(role_row(response, record, role), **generate_kwargs)
            for role in self.train_roles
            if role is not Role.SOLVER
        }
        solver.spare = {
            role: [process(turn_row(response, record, turn), **generate_kwargs) for turn in turns]
            for role, turns in record.spare_turns.items()
        }
        return solver


class MarchExperienceMaker(RemoteExperienceMaker):  # type: ignore[misc]  # OpenRLHF is untyped
    """Adds the other roles' rows and keeps the roles' advantages apart."""

    age = 0  # of the step's oldest answer, in weight syncs

    def __init__(
        self,
        *args: Any,
        ppo: PpoSettings,
        train_roles: Sequence[Role],
        batching: Batching,
        max_gap: float | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.ppo = ppo
        self.train_roles = train_roles
        self.batching = batching
        self.max_gap = max_gap
        self.models_clock = Stopwatch()
        self.metrics: dict[str, float] = {}
        self.records: list[RolloutRecord] = []
        self.answers: list[TrainedAnswer] = []

    @torch.no_grad()
    def make_experience_batch(self, rollout_samples: list[Experience]) -> list[Experience]:
        """Returns what one PPO step trains, a part for each rank; raises as `sync_metrics`."""
        laid_out = self.lay_out(rollout_samples)
        if self.max_gap is not None:
            self.metrics |= sync_metrics(self.metrics, max_gap=self.max_gap, age=self.age)
        if self.args.algo.advantage.is_correction_level == "off":  # nobody reads them any more
            for batch in laid_out:
                batch.rollout_log_probs = None  # they would keep equal rows apart
        return self.to_train(laid_out)

    @torch.no_grad()
    def lay_out(self, rollout_samples: list[Experience]) -> list[Experience]:
        """Returns all rows of one PPO step, role by role; fills `metrics`, `records` and `answers`."""
        self.records = [sample.rollout for sample in rollout_samples]
        batches = {role: self._batches(role, rollout_samples) for role in self.train_roles}
        experiences = [batch for role_batches in batches.values() for batch in role_batches]
        self.make_experience(experiences)
        for role, role_batches in batches.items():
            self.compute_advantages_and_returns(role_batches, role)
        self.metrics = rollout_metrics(
            self.records,
            batches,
            group_size=self.args.rollout.n_samples_per_prompt,
            has_reference=self.initial_model_group is not None,
            refuses_saying_less=self.ppo.refuse_saying_less,
        )
        self.answers = [
            TrainedAnswer(sample.labels[0], record, turns)
            for sample, record, turns in zip(
                rollout_samples, self.records, answer_turns(self.records, batches), strict=True
            )
        ]
        return experiences

    def make_experience(self, samples_list: list[Experience]) -> list[Experience]:
        """As OpenRLHF's, of the rows that are trained, equal ones once; figures of the others are 0.

        What is no number in a trained row stays so: guards see it.
        """
        rows = [row for batch in samples_list for row in rows_of(batch)]
        distinct = list({content(row): row for row in rows if is_trained(row)}.values())
        packed = scoring_batches(
            [num_tokens(row) for row in distinct],
            num_shares=self.batching.num_shares,
            max_tokens=self.batching.scoring_tokens,
        )
        batches = [self._batch_of([distinct[place] for place in places], rows) for places in packed]
        with self.models_clock:
            super().make_experience(batches)
        fill_in(samples_list, from_batches=batches)
        return samples_list

    def to_train(self, experiences: list[Experience]) -> list[Experience]:
        """Returns the rows that are trained, in a part for each rank; without a critic equal ones once."""
        rows = [alone(row) for batch in experiences for row in rows_of(batch)]
        trained = [row for row in rows if is_trained(row)]
        kept = trained if self.critic_model_group is not None else merged(trained)
        places = shared([num_tokens(row) for row in kept], self.batching.num_shares)
        return [self._batch_of([kept[place] for place in of_rank], rows) for of_rank in places]

    def _batch_of(self, rows: Sequence[Experience], all_rows: Sequence[Experience]) -> Experience:
        """One micro-batch; of a filler where a rank has no row, since ranks compute in step."""
        some = rows or [filler(min(all_rows, key=num_tokens))]
        return batch_of(some, pad_token_id=self.tokenizer.pad_token_id)

    @torch.no_grad()
    def compute_advantages_and_returns(
        self, experiences: list[Experience], role: Role | None = None
    ) -> list[Experience]:
        """As OpenRLHF's, for the rows of one role, with masked rows left out of every statistic."""
        rewards, credit = self._shaped_rewards(experiences), self._credit(experiences, role)
        self._spread(experiences, rewards, credit)
        advantages = [experience.advantages for experience in experiences]
        masks = [experience.action_mask for experience in experiences]
        mean, scale = whitening(
            advantages, masks, estimator=self.ppo.estimator, floor=self.ppo.whitening_floor
        )
        for experience in experiences:
            experience.advantages = (experience.advantages - mean) * scale * experience.action_mask
        return experiences

    def _batches(self, role: Role, samples: list[Experience]) -> list[Experience]:
        """Micro-batches of a role's rows, one of each answer."""
        rows = samples if role is Role.SOLVER else [sample.turns[role] for sample in samples]
        return list(self.split_rollout_samples(rows))

    def _shaped_rewards(self, experiences: list[Experience]) -> list[torch.Tensor]:
        """(B,) for each micro-batch: penalties for length, then the shift, then the group's baseline."""
        for experience in experiences:
            experience.rewards = experience.rewards.to(
                torch.promote_types(experience.rewards.dtype, torch.float32)
            )
        apply_length_penalties(experiences, self.args)
        for experience in experiences:
            scored = experience.action_mask.any(dim=-1)
            experience.rewards = (experience.rewards + self.ppo.reward_scalars.shift) * scored
            experience.info["reward"] = experience.rewards.clone()
        shaped = against_group(
            torch.cat([experience.rewards for experience in experiences]),
            torch.cat([experience.action_mask.any(dim=-1) for experience in experiences]),
            estimator=self.ppo.estimator,
            group_size=self.args.rollout.n_samples_per_prompt,
        )
        return list(torch.split(shaped, [len(experience.rewards) for experience in experiences]))

    def _credit(self, experiences: list[Experience], role: Role | None) -> list[torch.Tensor | None]:
        """(B, A) for each micro-batch: by how much tokens are worth more than their turn; None is nowhere."""
        if role is None or role not in self.ppo.credit_by_token:
            return [None] * len(experiences)
        decode = partial(self.tokenizer.decode, skip_special_tokens=True)
        turns = iter([(record, record.turns.get(role)) for record in self.records])
        values = [torch.zeros(experience.action_mask.shape) for experience in experiences]
        for experience, of_batch in zip(experiences, values, strict=True):
            # `truncated_reward` replaces the verdict's, and is of the whole turn.
            is_whole = experience.truncated.bool() & (self.ppo.truncated_reward is not None)
            masks = experience.action_mask * ~is_whole.unsqueeze(-1)
            for mask, row, token_ids in zip(masks, of_batch, experience.sequences[:, 1:], strict=True):
                places = mask.nonzero().flatten()
                pairs = token_credit(*next(turns), token_ids[places].tolist(), decode=decode)
                for token, value in pairs:
                    row[places[token]] = value
        return list(values)

    def _spread(
        self, experiences: list[Experience], rewards: list[torch.Tensor], credit: list[torch.Tensor | None]
    ) -> None:
        """Puts a reward on the last token and the KL penalty on each; fills returns and advantages."""
        by_token = [
            compute_reward(
                reward,
                self.kl_ctl.value,
                experience.kl,
                action_mask=experience.action_mask,
                reward_clip_range=self.args.reward.clip_range,
            )
            for experience, reward in zip(experiences, rewards, strict=True)
        ]  # (B, A) each
        # OpenRLHF goes through the tokens one by one, so all rows of a step go through it together.
        sizes = [rows.shape for rows in by_token]
        masks = stacked([experience.action_mask for experience in experiences])
        if self.ppo.estimator is AdvantageEstimator.GAE:
            values = stacked([experience.values for experience in experiences])
            both = self.get_advantages_and_returns(
                values, stacked(by_token), masks, self.ppo.gamma, self.ppo.lambd
            )
            advantages, returns = (unstacked(found, sizes) for found in both)
        else:
            advantages = returns = unstacked(
                self.get_cumulative_returns(stacked(by_token), masks, self.ppo.gamma), sizes
            )
        for place, experience in enumerate(experiences):
            experience.advantages, experience.returns = advantages[place], returns[place]
            if self.ppo.estimator is not AdvantageEstimator.GAE:
                if (spread := credit[place]) is not None:
                    experience.returns += spared(rewards[place], spread, experience.action_mask)
                experience.advantages = experience.returns.clone()
            experience.info["return"] = (by_token[place] * experience.action_mask).sum(dim=-1)
            experience.kl = None


def sync_metrics(metrics: Mapping[str, float], *, max_gap: float, age: int = 0) -> dict[str, float]:
    """The gap of engines and actor on a step's trained tokens: the largest of the roles' `sampler_gap`.

    A mean over sampled tokens, because there both sides round alike: on the same weights in bfloat16 it is
    below 0.005 where the policy is sure and 0.04 where it is not, while single unlikely tokens of a prompt
    differ by 0.3 (docs/log.md). Without a trained token there is no figure. Answers that are `age`
    weight syncs old are not of the actor's weights: the gap holds `age` steps of training, too, so the limit
    is wider, and finds what no step of a healthy run does.

    Raises:
        WeightSyncError: it is above `max_gap`, nats a token, or no number.
    """
    gaps = [metrics[name] for role in Role if (name := f"{role}/sampler_gap") in metrics]
    if wrong := [gap for gap in gaps if not gap <= max_gap * (_TIMES_WIDER if age else 1)]:
        why = "the last weight sync did not arrive"
        if age:
            moved = "steps move the policy too far (lower ppo.actor.lr)"
            why = f"up to {age} weight sync(s) old, they have {_TIMES_WIDER} times that: {moved}, or {why}"
        raise WeightSyncError(
            f"engines and actor differ by {wrong[0]:.4f} nats a token, over guards.probe_tolerance "
            f"{max_gap:g}; {why}"
        )
    return {"sync/logprob_gap": max(gaps)} if gaps else {}
