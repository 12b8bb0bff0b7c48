"""OpenRLHF's policy actor, made safe for micro-batches in which no row is trained, and whole with LoRA.

Fillers and UNSCORED rows have an all-zero action mask, and OpenRLHF shuffles rows into micro-batches, so one
may hold nothing but such rows. Its loss is right then (normalised over the whole optimizer step), but its
logging divides by the micro-batch's number of action tokens. With LoRA the engines and the saved model get
weights with the adapter in them (`pipeline.lora`). Put in the place of
`openrlhf.trainer.ray.ppo_actor.PolicyModelActor`, as `pipeline.trainer` is in that of `PPOTrainer`.
"""

from __future__ import annotations

from typing import Any

import torch
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
from openrlhf.trainer.ray.ppo_actor import PolicyModelActor as _RayPolicyModelActor

from pipeline.lora import merged_actor, merged_for_saving

_NO_TOKENS = 1e-9  # stands for zero tokens as a divisor; every sum that it divides is zero too

PlainPolicyModelActor: Any = (
    _RayPolicyModelActor.__ray_metadata__.modified_class
)  # the class before @ray.remote


class MarchActorTrainer(ActorPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`ActorPPOTrainer` whose figures of a micro-batch without action tokens weigh nothing."""

    actor: Any

    def training_step(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As OpenRLHF's; means over no tokens are 0 and not NaN."""
        return weigh_nothing(super().training_step(*args, **kwargs))

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


class MarchPolicyActor(PlainPolicyModelActor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`PolicyModelActor` with `MarchActorTrainer`."""

    def init_model_from_pretrained(self, *args: Any, **kwargs: Any) -> None:
        """As OpenRLHF's, which builds the trainer itself; its class is exchanged afterwards."""
        super().init_model_from_pretrained(*args, **kwargs)
        assert type(self.trainer) is ActorPPOTrainer
        self.trainer.__class__ = MarchActorTrainer

    def save_model(self) -> None:
        """Saves the policy, an adapted one as one model that needs no PEFT to load."""
        args = self.strategy.args
        if not args.ds.lora.rank:
            super().save_model()
            return
        self.strategy.save_model(merged_for_saving(self.actor), self.tokenizer, args.ckpt.output_dir)
