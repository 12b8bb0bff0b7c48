"""A recipe's threads and dtype on the CPUs of this machine."""

import os

from pipeline.cpu import DTYPE_VARIABLE, speed
from pipeline.cpu.speed import ENGINE_THREADS_VARIABLE, CpuDtype, PhaseThreads
from pipeline.settings.cluster import Colocation
from pipeline.settings.recipe import Recipe

_USERS_OWN = "OMP_NUM_THREADS"


def dtype_of(recipe: Recipe) -> CpuDtype:
    wanted = recipe.cluster.cpu_dtype
    if wanted != "auto":
        return wanted
    return "bfloat16" if speed.bfloat16_is_faster() else "float32"


def threads_of(recipe: Recipe) -> PhaseThreads:
    """Threads of each process in each phase of a step; as the user says, where the user says it."""
    cluster, wanted = recipe.cluster, recipe.cluster.cpu_threads
    if wanted == "auto" and os.environ.get(_USERS_OWN, "").isdigit():
        wanted = int(os.environ[_USERS_OWN])
    if wanted != "auto":
        return PhaseThreads(wanted, wanted, wanted)
    critic = cluster.critic_ranks if recipe.has_critic else 0
    together = cluster.actor_ranks * (2 if recipe.has_reference else 1) + critic
    in_turn = max(cluster.actor_ranks, critic)
    return speed.phase_threads(
        speed.num_cores(),
        engines=cluster.num_engines,
        # OpenRLHF waits for each model in turn where models share a device.
        scoring=in_turn if cluster.colocate is Colocation.ALL else together,
        updating=in_turn if cluster.trainer_sleep else cluster.actor_ranks + critic,
        at_once=recipe.rollout.max_staleness > 0,
    )


def for_cpus(recipe: Recipe) -> dict[str, str]:
    """Variables of every process of a training without a GPU, over those of `pipeline.cpu`."""
    variables = {DTYPE_VARIABLE: dtype_of(recipe), ENGINE_THREADS_VARIABLE: str(threads_of(recipe).rollout)}
    return variables | ({_USERS_OWN: os.environ[_USERS_OWN]} if _USERS_OWN in os.environ else {})
