"""OpenRLHF's policy actor, made safe for micro-batches in which no row is trained, and whole with LoRA.

Fillers and UNSCORED rows have an all-zero action mask, and OpenRLHF shuffles rows into micro-batches, so one
may hold nothing but such rows. Its loss is right then (normalised over the whole optimizer step), but its
logging divides by the micro-batch's number of action tokens.

The paper's joint gradient (section 2.3) divides the sum of all token terms by 2|B|, OpenRLHF by the tokens of
the step. Its flag `actor.loss_agg_mode seq-mean-token-mean` is another mean again, so `loss_scale: paper`
exchanges the divisor that OpenRLHF hands to its own loss.

While the critic is warmed up, OpenRLHF hands the policy each step's rows and does not train it; the rows
stay, and the first real step would train those of the whole warm-up at once. So our trainer has them dropped,
and the horizon of the policy's learning rate is without those steps.

With LoRA the engines and the saved model get weights with the adapter in them (`pipeline.training.lora`). Put
in the place of `openrlhf.trainer.ray.ppo_actor.PolicyModelActor`, as `pipeline.training.trainer` is in that
of `PPOTrainer`.
"""

from __future__ import annotations

from typing import Any

import torch
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
from openrlhf.trainer.ray.ppo_actor import PolicyModelActor as _RayPolicyModelActor

from pipeline.cpu.speed import PhaseThreads
from pipeline.training.lora import merged_actor, merged_for_saving
from pipeline.training.rendezvous import HoldsItsPort
from pipeline.training.threads import scoring_threads, update_threads
from pipeline.training.trainer_settings import TrainerSettings

_NO_TOKENS = 1e-9  # stands for zero tokens as a divisor; every sum that it divides is zero too

PlainPolicyModelActor: Any = (
    _RayPolicyModelActor.__ray_metadata__.modified_class
)  # the class before @ray.remote


class MarchActorTrainer(ActorPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`ActorPPOTrainer` whose figures of a micro-batch without action tokens weigh nothing."""

    actor: Any
    loss_divisor: int | None = None

    def training_step(
        self, experience: Any, kl_ctl: float, step: int, loss_batch_info: dict[str, Any]
    ) -> dict[str, Any]:
        """As OpenRLHF's, with our divisor; means over no tokens are 0 and not NaN."""
        if self.loss_divisor is not None:
            loss_batch_info = divided_by(
                self.loss_divisor, loss_batch_info, num_micro_batches=self.strategy.accumulated_gradient
            )
        return weigh_nothing(super().training_step(experience, kl_ctl, step, loss_batch_info))

    def broadcast_to_vllm(self) -> None:
        """As OpenRLHF's; an adapted policy is sent as one model."""
        actor = self.actor
        if self.args.ds.lora.rank:
            self.actor = merged_actor(actor)
        try:
            super().broadcast_to_vllm()
        finally:
            self.actor = actor


def divided_by(divisor: int, loss_batch_info: dict[str, Any], *, num_micro_batches: int) -> dict[str, Any]:
    """Returns OpenRLHF's normalisers with another divisor of an optimizer step's sum of token terms.

    Args:
        divisor: of the whole step, over all ranks.
        loss_batch_info: `batch_num_tokens` is the step's tokens over the micro-batches of a rank, since
            DeepSpeed divides each micro-batch's loss by their number; the same is done here.
        num_micro_batches: of a rank and an optimizer step.
    """
    tokens = torch.as_tensor(loss_batch_info["batch_num_tokens"], dtype=torch.float32)
    return {
        **loss_batch_info,
        "batch_num_tokens": torch.full_like(tokens, divisor / max(num_micro_batches, 1)),
    }


def weigh_nothing(status: dict[str, Any]) -> dict[str, Any]:
    """Returns a training step's status with which OpenRLHF can take weighted means over micro-batches."""
    if status["num_action_tokens"] > 0:
        return status
    metrics = {
        name: torch.nan_to_num(value.float()) if isinstance(value, torch.Tensor) else value
        for name, value in status["metrics"].items()
    }
    return {**status, "metrics": metrics, "num_action_tokens": _NO_TOKENS}


class MarchPolicyActor(HoldsItsPort, PlainPolicyModelActor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`PolicyModelActor` with `MarchActorTrainer`, which holds its port and has threads by phase."""

    threads: PhaseThreads | None = None

    def init_model_from_pretrained(
        self, strategy: Any, pretrain: str, max_steps: int, vllm_engines: list[Any] | None = None
    ) -> None:
        """As OpenRLHF's, which builds the trainer itself; its class is exchanged afterwards.

        Args:
            strategy: OpenRLHF's, with its arguments.
            pretrain: folder or name of the model.
            max_steps: optimizer steps of the run, those of the critic's warm-up too.
            vllm_engines: that get the weights.
        """
        settings = TrainerSettings.from_environment()
        max_steps -= settings.ppo.num_frozen_updates
        super().init_model_from_pretrained(strategy, pretrain, max_steps, vllm_engines)
        assert type(self.trainer) is ActorPPOTrainer
        self.trainer.__class__ = MarchActorTrainer
        self.trainer.loss_divisor = settings.loss_divisor
        self.threads = settings.threads

    def fit(self, kl_ctl: float = 0.0) -> dict[str, Any]:
        """As OpenRLHF's, with the threads of an update."""
        with update_threads(self.threads):
            status: dict[str, Any] = super().fit(kl_ctl)
        return status

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As OpenRLHF's, with the threads of scoring."""
        with scoring_threads(self.threads):
            log_probs: torch.Tensor = super().forward(*args, **kwargs)
        return log_probs

    def drop_rows(self) -> None:
        """Forgets the rows that were handed over, which only `fit` does upstream."""
        self.trainer.replay_buffer.clear()

    def save_model(self) -> None:
        """Saves the policy, an adapted one as one model that needs no PEFT to load."""
        args = self.strategy.args
        if not args.ds.lora.rank:
            super().save_model()
            return
        self.strategy.save_model(merged_for_saving(self.actor), self.tokenizer, args.ckpt.output_dir)
