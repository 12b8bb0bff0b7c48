"""OpenRLHF's policy actor, made safe for micro-batches in which no row is trained.

Fillers and UNSCORED rows have an all-zero action mask, and OpenRLHF shuffles rows into micro-batches, so one
may hold nothing but such rows. Its loss is right then (normalised over the whole optimizer step), but its
logging divides by the micro-batch's number of action tokens. Put in the place of
`openrlhf.trainer.ray.ppo_actor.PolicyModelActor`, as `pipeline.trainer` is in that of `PPOTrainer`.
"""

from __future__ import annotations

from typing import Any

import torch
from openrlhf.trainer.ray.ppo_actor import ActorPPOTrainer
from openrlhf.trainer.ray.ppo_actor import PolicyModelActor as _RayPolicyModelActor

_NO_TOKENS = 1e-9  # stands for zero tokens as a divisor; every sum that it divides is zero too

PlainPolicyModelActor: Any = (
    _RayPolicyModelActor.__ray_metadata__.modified_class
)  # the class before @ray.remote


class MarchActorTrainer(ActorPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`ActorPPOTrainer` whose figures of a micro-batch without action tokens weigh nothing."""

    def training_step(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As OpenRLHF's; means over no tokens are 0 and not NaN."""
        return weigh_nothing(super().training_step(*args, **kwargs))


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
