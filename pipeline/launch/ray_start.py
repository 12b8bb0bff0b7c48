"""Starting Ray on this machine, or joining a cluster.

Ray's node gives its own helper processes 15 s to come up, whatever the machine is busy with, and then ends
(`WaitForDashboardAgentPorts` in Ray 2.55, no setting); a local start is therefore tried again.

Ray listens on all addresses of the machine, and whoever can join it can run anything. A local Ray therefore
demands a token, which only this run's processes inherit.
"""

import os
import secrets
import sys
from typing import Any

from pipeline.container import usable_memory
from pipeline.settings.recipe import Recipe
from pipeline.training.engines import NAMESPACE

OBJECT_STORE_BYTES = 512 * 1024**2  # of a local Ray, at least
# What a step's rows take there: as rollouts, for each model that scores them, and to train. A dozen values of
# 4 or 8 bytes a token, which OpenRLHF puts there up to four times.
_BYTES_OF_A_TOKEN = 256
_MOST_OF_MEMORY = 0.3  # Ray's own default
_MOST_STARTS = 3
_TOO_SLOW = "The current node timed out during startup"


def demand_token(recipe: Recipe) -> None:
    """Lets a local Ray demand a token, unless the environment says how Ray authenticates.

    Ray reads this when it is imported, so it comes before that.
    """
    if recipe.cluster.ray_address == "local" and "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def object_store_bytes(recipe: Recipe, have: int | None = None) -> int:
    """Returns the size of a local Ray's object store: for all rows of a step at their longest."""
    needed = recipe.rows_per_step * recipe.max_model_len * _BYTES_OF_A_TOKEN
    needed *= 1 + recipe.rollout.max_staleness  # batches that wait
    most = int(_MOST_OF_MEMORY * (usable_memory() if have is None else have))
    return max(OBJECT_STORE_BYTES, min(needed, most))


def start_ray(recipe: Recipe, environment: dict[str, str], *, cuda: bool) -> str:
    """Starts or joins Ray and returns its address; without CUDA the GPUs are logical."""
    import ray
    from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

    def clear(state: RetryCallState) -> None:
        print(f"march: Ray did not start in time ({state.attempt_number} of {_MOST_STARTS}); once more",
              file=sys.stderr, flush=True)  # fmt: skip
        ray.shutdown()

    cluster = recipe.cluster
    options: dict[str, Any] = {"address": cluster.ray_address, "namespace": NAMESPACE}
    if cluster.ray_address == "local":
        devices = recipe.num_gpus
        options |= {"include_dashboard": False, "object_store_memory": object_store_bytes(recipe)}
        options |= {"_node_ip_address": "127.0.0.1", "num_cpus": devices + 2}
        options |= {} if cuda else {"num_gpus": devices}
    runtime = {"env_vars": environment, "worker_process_setup_hook": "pipeline.launch.ray_worker.begin"}
    retrying = Retrying(
        stop=stop_after_attempt(_MOST_STARTS),
        retry=retry_if_exception(lambda error: _TOO_SLOW in str(error)),
        before_sleep=clear,
        reraise=True,
    )
    retrying(ray.init, runtime_env=runtime, **options)
    return str(ray.get_runtime_context().gcs_address)
