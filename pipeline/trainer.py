"""OpenRLHF's PPO trainer with our samples generator and experience maker, and what makes its steps
trustworthy.

`pipeline.train` puts `MarchTrainer`, as a Ray actor, in the place of
`openrlhf.trainer.ppo_trainer.PPOTrainer` before OpenRLHF's command line runs. Around each step it keeps the
engines' registry and weights version for the reward server, compares the engines' log-probabilities with the
actor's after each weight sync, stops a run whose audits fail, logs the step, marks checkpoints complete, and
lets the guards end the run (`pipeline.watch`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray
import torch
from openrlhf.trainer.ppo_trainer import PPOTrainer as _RayPPOTrainer
from torch.nn.utils.rnn import pad_sequence

from pipeline.checkpoints import mark_complete
from pipeline.engines import EngineRegistry
from pipeline.experience import MarchExperienceMaker, MarchSamplesGenerator
from pipeline.metrics import step_metrics
from pipeline.tracking import StepLog
from pipeline.trainer_settings import TrainerSettings
from pipeline.watch import Watch

_PROBE_SAMPLES, _PROBE_TOKENS = 4, 64

PlainPPOTrainer: Any = _RayPPOTrainer.__ray_metadata__.modified_class  # the class before @ray.remote


class WeightSyncError(RuntimeError):
    """Engine and actor disagree after a sync: what is sampled is not what is trained."""


class TooManyUnscoredError(RuntimeError):
    """So many audits of a step failed that its gradient would not be worth having."""


class MarchTrainer(PlainPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`PPOTrainer` for the trajectories of several roles."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.settings = TrainerSettings.from_environment()
        rows_by_role = self.settings.rows_by_role
        self.samples_generator = MarchSamplesGenerator(
            rows_by_role=rows_by_role,
            strategy=self.strategy,
            prompts_dataloader=self.prompts_dataloader,
            eval_dataloader=self.eval_dataloader,
            tokenizer=self.tokenizer,
            vllm_engines=self.vllm_engines,
        )
        self.experience_maker = MarchExperienceMaker(
            self.actor_model_group,
            self.critic_model_group,
            self.reward_model_group,
            self.reference_model_group,
            self.kl_ctl,
            self.strategy,
            self.tokenizer,
            ppo=self.settings.ppo,
            rows_by_role=rows_by_role,
        )
        self.max_steps = optimizer_steps(
            num_rows=len(self.prompts_dataloader)
            * self.args.rollout.n_samples_per_prompt
            * sum(rows_by_role.values()),
            batch_size=self.args.train.batch_size,
            passes=self.args.train.num_episodes * self.args.train.max_epochs,
        )
        options = {"num_cpus": 0, "name": self.settings.registry, "namespace": self.settings.namespace}
        self.registry = ray.remote(EngineRegistry).options(**options).remote(self.vllm_engines)
        ray.get(self.registry.snapshot.remote())
        self.log = StepLog(
            self.settings.run_dir,
            tracking_uri=self.settings.tracking_uri,
            mlflow_run_id=self.settings.mlflow_run_id,
            rollouts=self.settings.rollouts,
        )
        self.probe: dict[str, float] = {}
        self.watch = Watch(self.settings)

    def broadcast_to_vllm(self) -> None:
        """Syncs the weights, counts the version and checks that engine and actor agree on the same tokens.

        Raises:
            WeightSyncError: their log-probabilities differ by more than the tolerance.
        """
        super().broadcast_to_vllm()
        version = ray.get(self.registry.advance.remote())
        self.probe = {"sync/weights_version": float(version)}
        if self.settings.probe_tolerance is None:
            return
        with self.watch.clock:
            gap = self._log_probability_gap()
        self.probe["sync/logprob_gap"] = gap
        if not gap <= self.settings.probe_tolerance:
            raise WeightSyncError(
                f"after weight sync {version} engine and actor differ by {gap:.4f} nats a token, "
                f"over guards.probe_tolerance {self.settings.probe_tolerance}; the sync did not arrive"
            )

    def _log_probability_gap(self) -> float:
        """Returns mean |log p_engine - log p_actor| over freshly sampled responses, in nats.

        Sampled tokens, because there both sides round alike: on the same weights in bfloat16 the mean over
        responses is below 0.001, while single unlikely prompt tokens differ by 0.3 (docs/log.md).
        """
        from vllm import SamplingParams

        prompt = self.tokenizer(text=self.prompts_dataloader.dataset.prompts[0], add_special_tokens=False)
        ids = prompt["input_ids"]
        params = SamplingParams(n=_PROBE_SAMPLES, max_tokens=_PROBE_TOKENS, temperature=1.0, logprobs=0)
        outputs = ray.get(self.vllm_engines[0].generate.remote(ids, params)).outputs
        responses = [torch.tensor(output.token_ids) for output in outputs]
        engine = [
            torch.tensor(
                [by_token[token].logprob for by_token, token in zip(o.logprobs, o.token_ids, strict=True)]
            )
            for o in outputs
        ]
        sequences = pad_sequence(
            [torch.cat([torch.tensor(ids), r]) for r in responses], batch_first=True
        )  # (N, T)
        attention = pad_sequence(
            [torch.ones(len(ids) + len(r), dtype=torch.long) for r in responses], batch_first=True
        )
        actions = attention[:, 1:].clone()  # (N, T - 1)
        actions[:, : len(ids) - 1] = 0
        forward = self.actor_model_group.async_run_method("forward", sequences, actions, attention)
        actor = ray.get(forward)[0].float()[actions.bool()]
        return float((torch.cat(engine) - actor).abs().mean())

    def train_step(self, rollout_samples: list[Any], global_step: int) -> tuple[dict[str, Any], int]:
        """One PPO step, refused when too many of its audits failed.

        Raises:
            TooManyUnscoredError: above `guards.max_unscored_rate`.
        """
        refuse_unscored(
            [
                sample.rollout.verdict.reason
                for sample in rollout_samples
                if sample.rollout.verdict.reward is None
            ],
            total=len(rollout_samples),
            limit=self.settings.guards.max_unscored_rate,
        )
        self.watch.begin(rollout_samples, global_step + 1)
        status, step = super().train_step(rollout_samples, global_step)
        return status, step

    def save_logs_and_checkpoints(
        self,
        global_step: int,
        logs_dict: dict[str, Any] | None = None,
        client_states: dict[str, Any] | None = None,
    ) -> None:
        """Logs the step, saves as OpenRLHF does, and marks the checkpoint once both models are on disk.

        Raises:
            EndedByGuardError: a guard is due; the step is logged and saved.
        """
        figures = self.experience_maker.metrics | self.probe
        metrics = self.watch.judged(figures)
        metrics |= step_metrics(logs_dict or {}, figures, own_s=self._own_s(logs_dict or {}))
        with self.watch.clock:
            self.log.write(global_step, metrics, self.experience_maker.answers)
        super().save_logs_and_checkpoints(global_step, logs_dict, client_states)
        checkpoints = Path(self.args.ckpt.path)
        if global_step % self.args.ckpt.save_steps == 0:
            mark_complete(checkpoints, global_step, quiet=self.watch.is_quiet)
        self.watch.act(checkpoints, global_step)

    def _own_s(self, status: dict[str, Any]) -> float:
        """Seconds in our own code since the last step; writing the record of a step counts in the next."""
        experience_s = status.get("timing/make_experience", 0.0) - self.experience_maker.models_clock.take()
        return float(experience_s + self.watch.clock.take())


def optimizer_steps(*, num_rows: int, batch_size: int, passes: int) -> int:
    """The horizon of the learning-rate schedule: optimizer steps really taken, injected rows counted."""
    return num_rows // batch_size * passes


def refuse_unscored(reasons: list[str], *, total: int, limit: float) -> None:
    """Raises `TooManyUnscoredError` when more than `limit` of a step's answers have no reward."""
    if len(reasons) > limit * total:
        counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons)))
        raise TooManyUnscoredError(
            f"{len(reasons)} of {total} answers of the step have no reward ({counts}), over "
            f"guards.max_unscored_rate {limit}; mend the reward server, then run the same command to resume"
        )
