"""OpenRLHF's PPO trainer with our samples generator and experience maker, and what makes its steps
trustworthy.

Around each step it keeps the engines' registry and weights version for the reward server, stops a run whose
audits fail, logs the step, marks checkpoints complete, and lets the guards end the run
(`pipeline.training.watch`). `pipeline.launch.worker` puts it in the place of OpenRLHF's.
"""

from pathlib import Path
from typing import Any

import ray
import torch
from openrlhf.trainer.ppo_trainer import BasePPOTrainer
from openrlhf.trainer.ppo_trainer import PPOTrainer as _RayPPOTrainer
from openrlhf.trainer.ppo_utils.kl_controller import FixedKLController
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

from pipeline.record.checkpoints import keep_model_of, mark_complete, model_of
from pipeline.record.metrics import Stopwatch, step_metrics
from pipeline.record.tracking import StepLog, read_steps
from pipeline.training.engine_actor import wait_for_engines
from pipeline.training.engines import NAMESPACE, EngineRegistry
from pipeline.training.experience import MarchExperienceMaker, MarchSamplesGenerator
from pipeline.training.held_out import HeldOut
from pipeline.training.lora import UnadaptedPolicy
from pipeline.training.step_answers import mask_stale, refuse_less, share_turns, staleness
from pipeline.training.trainer_settings import TrainerSettings
from pipeline.training.watch import Watch
from reward.judging.vote import Reason
from reward.types import Outcome, RagQuery

STALE = "stale"  # beside the reasons of verdicts without a reward
# Why an answer has no reward where the policy itself plays Proposer and Checker badly.
_UNTAUGHT = (
    *(Reason.PROPOSER_MALFORMED, Reason.TOO_FEW_CLAIMS, Reason.TOO_MANY_CLAIMS),
    *(Reason.TOO_FEW_VALID_VOTES, Reason.RESPONSE_TOO_LONG),
)

# The class that was written, and not Ray's `modified_class` over it: for tracing, Ray puts copies of all
# methods into that, those of `BasePPOTrainer` too, and they would come before ours.
PlainPPOTrainer: Any = _RayPPOTrainer.__ray_metadata__.modified_class.__ray_actor_class__


class TooManyUnscoredError(RuntimeError):
    """So many audits of a step failed that its gradient would not be worth having."""


class MarchSteps(BasePPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """OpenRLHF's PPO steps for the trajectories of several roles.

    Between a trainer of OpenRLHF and its `BasePPOTrainer` in the order of classes: the trainer's own
    `broadcast_to_vllm`, which in asynchronous mode holds the engines' lock, is around this one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.settings = TrainerSettings.from_environment()
        self.recipe = recipe = self.settings.recipe
        self.kl_ctl = FixedKLController(recipe.ppo.kl_coef)
        if self.args.ds.lora.rank and recipe.ppo.kl_coef:
            self.reference_model_group = UnadaptedPolicy(self.actor_model_group)
        self.experience_maker = MarchExperienceMaker(
            self.actor_model_group,
            self.critic_model_group,
            self.reward_model_group,
            self.reference_model_group,
            self.kl_ctl,
            self.strategy,
            self.tokenizer,
            ppo=recipe.ppo,
            train_roles=recipe.train_roles,
            batching=self.settings.batching,
            # The actor's log-probabilities know no top_p, so with one the two differ whatever the weights.
            max_gap=recipe.guards.probe_tolerance if recipe.rollout.top_p == 1 else None,
        )
        options = {"num_cpus": 0, "name": self.settings.registry, "namespace": NAMESPACE}
        engines, done = [ray.put(self.vllm_engines)], len(read_steps(self.settings.run_dir))
        self.registry = ray.remote(EngineRegistry).options(**options).remote(engines, weights_version=done)
        _, self.weights_version = ray.get(self.registry.snapshot.remote())
        self.log = StepLog(self.settings.run_dir)
        self.ages: dict[str, float] = {}
        self.sync_s = 0.0  # of the last weight sync, without the wait for the engines
        self.watch = Watch(self.settings)
        self.held_out = HeldOut(recipe.held_out, self.settings) if recipe.held_out else None

    def broadcast_to_vllm(self) -> None:
        """Syncs the weights and counts the version; whether they arrived, the next step's answers tell."""
        clock = Stopwatch()
        with clock:
            super().broadcast_to_vllm()
            self.weights_version = version = ray.get(self.registry.advance.remote())
            ray.get([engine.set_weights_version.remote(version) for engine in self.vllm_engines])
        self.sync_s = clock.take()

    def train_step(self, rollout_samples: list[Any], global_step: int) -> tuple[dict[str, Any], int]:
        """One PPO step; `TooManyUnscoredError` above `guards.max_unscored_rate`."""
        share_turns(rollout_samples)
        ages = [staleness(sample, version=self.weights_version) for sample in rollout_samples]
        num_stale = mask_stale(
            rollout_samples, version=self.weights_version, limit=self.recipe.rollout.max_staleness
        )
        if self.recipe.ppo.refuse_saying_less:
            refuse_less(rollout_samples, reward=self.recipe.audit.reward_refuted)
        verdicts = [sample.rollout.verdict for sample in rollout_samples]
        refuse_unscored(
            [one.reason for one in verdicts if one.outcome is Outcome.UNSCORED] + [STALE] * num_stale,
            total=len(rollout_samples),
            limit=self.recipe.guards.max_unscored_rate,
        )
        self.ages = {
            "rollout/staleness": sum(ages) / len(ages),
            "rollout/stale_rate": num_stale / len(rollout_samples),
        }
        self.experience_maker.age = max(ages)
        self.watch.begin(rollout_samples, global_step + 1)
        trained: tuple[dict[str, Any], int] = super().train_step(rollout_samples, global_step)
        return trained

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
        status = dict(logs_dict or {})
        if self.recipe.ppo.correction.level != "token":
            status.pop("is_filter_ratio", None)  # of whole rows, OpenRLHF counts fillers as left out
        figures = self.experience_maker.metrics | self.ages
        figures["sync/weights_version"] = float(self.weights_version)
        metrics = self.watch.judged(figures)
        sync_s = self.sync_s if self.recipe.rollout.max_staleness else None
        metrics |= step_metrics(status, figures, own_s=self._own_s(status), sync_s=sync_s)
        metrics |= self._look(global_step)
        with self.watch.clock:
            self.log.write(global_step, metrics, self.experience_maker.answers)
        super().save_logs_and_checkpoints(global_step, logs_dict, client_states)
        checkpoints = Path(self.args.ckpt.path)
        if global_step % self.args.ckpt.save_steps == 0:
            mark_complete(checkpoints, global_step)
            if self.held_out and not self.args.ckpt.save_hf:  # a resume does not go behind this step
                keep_model_of(checkpoints, self.held_out.best.step if self.held_out.best else None)
        self.watch.act(checkpoints, global_step)

    def _look(self, global_step: int) -> dict[str, float]:
        """The figures of the held-out set, if it is due; saves the model if it is the best one up to now.

        OpenRLHF would look after the step is written down, and count what is UNSCORED as a reward of 0.
        """
        held_out, watch = self.held_out, Stopwatch()
        if held_out is None or not held_out.is_due(global_step):
            return {}
        with watch:
            samples = self.samples_generator.generate_eval_samples(
                **self.generate_kwargs | {"n_samples_per_prompt": 1}
            )
            answers = [(RagQuery.model_validate_json(one.labels[0]), one.rollout) for one in samples]
            metrics = held_out.judged(answers, global_step)
            if held_out.best and held_out.best.step == global_step:
                folder = str(model_of(Path(self.args.ckpt.path), global_step))
                ray.get(self.actor_model_group.async_run_method(method_name="save_model_to", folder=folder))
        return metrics | {"time/held_out_s": watch.take()}

    def _own_s(self, status: dict[str, Any]) -> float:
        """Seconds in our own code since the last step; writing the record of a step counts in the next."""
        experience_s = status.get("timing/make_experience", 0.0) - self.experience_maker.models_clock.take()
        return float(experience_s + self.watch.clock.take())


class MarchTrainer(PlainPPOTrainer, MarchSteps):  # type: ignore[misc]  # OpenRLHF is untyped
    """`PPOTrainer` with our steps: rollout, then update."""

    samples_generator: SamplesGenerator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        seed_order(TrainerSettings.from_environment())
        super().__init__(*args, **kwargs)
        self.samples_generator = generator = march_generator(self.samples_generator, self.settings)
        if self.held_out:
            generator.is_over = self.held_out.is_over
        self.max_steps = self.settings.num_optimizer_steps

    def get_max_steps(self) -> int:
        """OpenRLHF asks before it loads the models, so engines are waited for; raises `EngineStartError`."""
        wait_for_engines(self.vllm_engines)
        return int(self.max_steps)


def seed_order(settings: TrainerSettings) -> None:
    """Makes the order of the queries follow the run's seed: OpenRLHF's data loader is made from here on.

    It draws the seed of its order from torch's own generator, which OpenRLHF seeds only where models are.
    """
    torch.manual_seed(settings.recipe.seed)


def march_generator(plain: SamplesGenerator, settings: TrainerSettings) -> MarchSamplesGenerator:
    """Returns our samples generator in the place of OpenRLHF's, over the same engines and rows."""
    return MarchSamplesGenerator(
        train_roles=settings.recipe.train_roles,
        strategy=plain.strategy,
        prompts_dataloader=plain.prompts_dataloader,
        eval_dataloader=plain.eval_dataloader,
        tokenizer=plain.tokenizer,
        vllm_engines=plain.vllm_engines,
    )


def refuse_unscored(reasons: list[str], *, total: int, limit: float) -> None:
    """Raises `TooManyUnscoredError` when more than `limit` of a step's answers have no reward."""
    if len(reasons) > limit * total:
        counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons)))
        is_untaught = sum(reason in _UNTAUGHT for reason in reasons) > len(reasons) / 2
        advice = (
            "the policy does not write the roles' formats: start a new run from a model that `march warmup` "
            "taught them, with more demonstrations and this recipe's prompts"
            if is_untaught
            else "fix the reward server, then run the same command to resume"
        )
        raise TooManyUnscoredError(
            f"{len(reasons)} of {total} answers of the step have no reward ({counts}), over "
            f"guards.max_unscored_rate {limit}; {advice}"
        )
