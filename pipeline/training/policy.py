"""OpenRLHF's policy actor, made safe for micro-batches in which no row is trained, and whole with LoRA.

Micro-batches are by tokens (`pipeline.training.buffer`). A rank that is short of rows has one of a filler,
whose action mask is all zero. Its loss is right (normalised over the whole optimizer step), but OpenRLHF's
logging divides by the micro-batch's number of action tokens.

With LoRA the engines and the saved model get weights with the adapter in them (`pipeline.training.lora`), and
the policy without its adapters is the reference.
"""

from typing import Any

import torch
from openrlhf.models import PolicyLoss
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
from openrlhf.trainer.ray.ppo_actor import PolicyModelActor as _RayPolicyModelActor
from openrlhf.utils.distributed_util import torch_dist_barrier_and_cuda_sync

from pipeline.training.buffer import batch_by_tokens, take_any_batches
from pipeline.training.lora import merged_actor, save_merged
from pipeline.training.micro_batches import copies_of, num_actions
from pipeline.training.rendezvous import HoldsItsPort, threads_for
from pipeline.training.response_logits import with_response_logits
from pipeline.training.trainer_settings import TrainerSettings
from pipeline.training.updates import LossOfCopies, Updates

_NO_TOKENS = 1e-9  # stands for zero tokens as a divisor; every sum that it divides is zero too

PlainPolicyModelActor: Any = _RayPolicyModelActor.__ray_metadata__.modified_class  # before @ray.remote


class MarchActorTrainer(ActorPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`ActorPPOTrainer` whose figures are over all trained rows, equal ones too, and over no filler."""

    actor: Any

    def ppo_train(self, kl_ctl: float) -> dict[str, Any]:
        """As OpenRLHF's, with the learning rate and the gradient's norm of each update."""
        self.updates = Updates(self.actor.model, self.actor_scheduler)
        return self.updates.figures(super().ppo_train(kl_ctl), "actor")

    def training_step(
        self, experience: Any, kl_ctl: float, step: int, loss_batch_info: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """As OpenRLHF's; means over no tokens are 0 and not NaN."""
        self.actor_loss_fn.copies = copies_of(experience)
        with self.updates.micro_batch(self.replay_buffer, step):
            status = super().training_step(experience, kl_ctl, step, loss_batch_info)
        status["num_action_tokens"] = tokens = float(num_actions([experience]))
        # Of losses that add up to the step's, OpenRLHF logs the mean by tokens.
        status["metrics"]["policy_loss"] *= self.replay_buffer.tokens_a_rank / (tokens or 1.0)
        return weigh_nothing(status)

    def broadcast_to_vllm(self) -> None:
        """As OpenRLHF's; an adapted policy is sent as one model."""
        actor = self.actor
        if self.args.ds.lora.rank:
            self.actor = merged_actor(actor)
        try:
            super().broadcast_to_vllm()
        finally:
            self.actor = actor


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

    def init_model_from_pretrained(
        self, strategy: Any, pretrain: str, max_steps: int, vllm_engines: list[Any] | None = None
    ) -> None:
        """As OpenRLHF's, which builds the trainer itself; its class is exchanged afterwards."""
        settings = TrainerSettings.from_environment()
        take_any_batches(strategy)
        super().init_model_from_pretrained(strategy, pretrain, max_steps, vllm_engines)
        assert type(self.trainer) is ActorPPOTrainer and type(self.trainer.actor_loss_fn) is PolicyLoss
        self.trainer.__class__ = MarchActorTrainer
        self.trainer.actor_loss_fn.__class__ = LossOfCopies
        with_response_logits(self.actor)
        batch_by_tokens(self.trainer, settings.batching)

    def fit(self, kl_ctl: float = 0.0) -> dict[str, Any]:
        with threads_for("update"):
            status: dict[str, Any] = super().fit(kl_ctl)
        return status

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        with threads_for("scoring"):
            log_probs: torch.Tensor = super().forward(*args, **kwargs)
        return log_probs

    def forward_unadapted(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As `forward`, by the weights that LoRA left as they were: the reference."""
        with self.actor.model.module.disable_adapter():
            return self.forward(*args, **kwargs)

    def save_model(self) -> None:
        """Saves the policy, an adapted one as one model that needs no PEFT to load."""
        self.save_model_to(self.strategy.args.ckpt.output_dir)

    def save_model_to(self, folder: str) -> None:
        if not self.strategy.args.ds.lora.rank:
            self.strategy.save_model(self.actor, self.tokenizer, folder)
            return
        if self.strategy.is_rank_0():  # each rank has all weights: adapters need a ZeRO stage of 2 or lower
            save_merged(self.actor, self.tokenizer, folder)
        torch_dist_barrier_and_cuda_sync()
