"""OpenRLHF's asynchronous PPO with our samples generator and our steps.

Its `PPOTrainerAsync` runs two actors: one answers and is audited, one trains, a bounded queue between them.
Both are looked up in OpenRLHF's module when they are started, so ours, put there first, take their places;
as in `pipeline.training.trainer`, nothing is copied. Without partial rollouts, which are left out on purpose,
the answering actor holds a lock while a batch is answered and audited and the training one while it syncs: an
answer and its audit are of one weights version. A checkpoint has the state of the data of the batch that it
trained last; batches that were answered ahead are answered again after a kill.
"""

from typing import Any

import ray
from openrlhf.trainer import ppo_trainer_async as upstream
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

from pipeline.training.engine_actor import wait_for_engines
from pipeline.training.trainer import MarchSteps, march_generator, seed_order
from pipeline.training.trainer_settings import TrainerSettings

# The classes that were written (`pipeline.training.trainer` says why).
PlainGenerator: Any = upstream.GenerateSamplesActor.__ray_metadata__.modified_class.__ray_actor_class__
PlainTrainingActor: Any = upstream.TrainingActor.__ray_metadata__.modified_class.__ray_actor_class__
PlainAsyncTrainer: Any = upstream.PPOTrainerAsync.__ray_metadata__.modified_class.__ray_actor_class__


class MarchGenerator(PlainGenerator):  # type: ignore[misc]  # OpenRLHF is untyped
    """`GenerateSamplesActor` that carries the other roles' trajectories."""

    samples_generator: SamplesGenerator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settings = TrainerSettings.from_environment()
        seed_order(settings)
        super().__init__(*args, **kwargs)
        self.samples_generator = march_generator(self.samples_generator, settings)
        self.max_steps = settings.num_optimizer_steps

    def get_max_steps(self) -> int:
        wait_for_engines(self.samples_generator.vllm_engines)
        return int(self.max_steps)


class MarchTrainingActor(PlainTrainingActor, MarchSteps):  # type: ignore[misc]  # OpenRLHF is untyped
    """`TrainingActor` with our steps; its lock is around our weight sync.

    Ray copies inherited methods into a class of its own and sends them by value; those that call `super()`
    would then mean another class than the worker's, so they are written out here.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def broadcast_to_vllm(self) -> None:
        """As OpenRLHF's, under its lock."""
        super().broadcast_to_vllm()


class MarchAsyncTrainer(PlainAsyncTrainer):  # type: ignore[misc]  # OpenRLHF is untyped
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        upstream.GenerateSamplesActor = ray.remote(MarchGenerator)
        upstream.TrainingActor = ray.remote(MarchTrainingActor)
        super().__init__(*args, **kwargs)
