"""OpenRLHF's critic, whose micro-batches are by tokens, too (`pipeline.training.buffer`)."""

import math
from typing import Any

from openrlhf.trainer.ray.ppo_critic import CriticModelActor as _RayCriticModelActor
from openrlhf.trainer.ray.ppo_critic import CriticPPOTrainer

from pipeline.training.buffer import batch_by_tokens, take_any_batches
from pipeline.training.rendezvous import HoldsItsPort, threads_for
from pipeline.training.trainer_settings import TrainerSettings
from pipeline.training.updates import Updates

PlainCriticModelActor: Any = _RayCriticModelActor.__ray_metadata__.modified_class  # before @ray.remote


class MarchCriticTrainer(CriticPPOTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    """`CriticPPOTrainer` whose figures do not depend on the number of micro-batches."""

    def ppo_train(self) -> dict[str, float]:
        """As OpenRLHF's, with the learning rate and the gradient's norm of each update."""
        self.updates = Updates(self.critic, self.critic_scheduler)
        return self.updates.figures(super().ppo_train(), "critic")

    def training_step(
        self, experience: Any, step: int, loss_batch_info: dict[str, Any] | None = None
    ) -> dict[str, float]:
        """As OpenRLHF's, which logs the mean of micro-batches: of losses that add up to the step's, and of
        values, which a filler has none of."""
        with self.updates.micro_batch(self.replay_buffer, step):
            status: dict[str, float] = super().training_step(experience, step, loss_batch_info)
        status["critic_loss"] *= len(self.replay_buffer)
        if math.isnan(status["values"]) and not experience.action_mask.any():
            status["values"] = 0.0
        return status


class MarchCriticActor(HoldsItsPort, PlainCriticModelActor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`CriticModelActor` with `MarchCriticTrainer`, which holds its port and has threads by phase."""

    def init_model_from_pretrained(self, strategy: Any, pretrain: str, max_steps: int) -> None:
        """As OpenRLHF's, which builds the trainer itself; its class is exchanged afterwards."""
        take_any_batches(strategy)
        super().init_model_from_pretrained(strategy, pretrain, max_steps)
        assert type(self.trainer) is CriticPPOTrainer
        self.trainer.__class__ = MarchCriticTrainer
        batch_by_tokens(self.trainer, TrainerSettings.from_environment().batching)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with threads_for("scoring"):
            return super().forward(*args, **kwargs)

    def fit(self) -> dict[str, Any]:
        with threads_for("update"):
            status: dict[str, Any] = super().fit()
        return status
