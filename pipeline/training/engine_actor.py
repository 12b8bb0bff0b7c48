"""OpenRLHF's rollout engine, which says of what distribution and of which weights a sample is.

OpenRLHF has vLLM give log-probabilities of the distribution that was sampled, temperature included
(`logprobs_mode: processed_logprobs`), only for its off-policy correction. The gap between sampler and actor
needs them always: at any temperature but 1, vLLM's own default says something else.
"""

import os
from collections.abc import Sequence
from typing import Any

import ray
from openrlhf.trainer.ray.vllm_engine import RolloutRayActor as _RayRolloutActor
from ray.exceptions import RayError

from pipeline.cpu.speed import ENGINE_THREADS_VARIABLE

LOGPROBS_MODE = "processed_logprobs"
# Calls at once. Ray's own limit is 1,000: a prompt's call lasts until its audits have ended, whose turns are
# calls of the same engine, so a thousand prompts of a step would wait for audits that never get a slot.
ENGINE_SLOTS = 100_000

PlainRolloutActor: Any = _RayRolloutActor.__ray_metadata__.modified_class  # the class before @ray.remote


class MarchRolloutActor(PlainRolloutActor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`RolloutRayActor` whose log-probabilities are the sampler's own, and who knows its weights version."""

    async def __init__(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[misc]  # Ray awaits it
        self.weights_version = 0
        if ENGINE_THREADS_VARIABLE in os.environ:  # vLLM's process, a child of this one, reads it
            os.environ["OMP_NUM_THREADS"] = os.environ[ENGINE_THREADS_VARIABLE]
        await super().__init__(*args, **{"logprobs_mode": LOGPROBS_MODE, **kwargs})

    def set_weights_version(self, version: int) -> None:
        """The trainer says after each sync which weights arrived; `pipeline.training.rollout` reads it."""
        self.weights_version = version


class EngineStartError(RuntimeError):
    """A rollout engine ended before it was ready."""


def wait_for_engines(engines: Sequence[Any]) -> None:
    """Returns when all engines have loaded their model.

    Without it the actor would load its own, and then wait half an hour for a dead engine to join the process
    group of the weight sync.

    Raises:
        EngineStartError: one of them ended.
    """
    try:
        ray.get([engine.__ray_ready__.remote() for engine in engines])
    except RayError as error:
        last = str(error).strip().splitlines()[-1]
        raise EngineStartError(f"vLLM did not start: {last}; the log says why, above it") from error
