"""What reaches the Ray workers of a training: variables of the driver, secrets, and the CPU layer.

Ray shows the variables of a job's runtime environment on its dashboard, to everybody who shares the cluster.
So secrets go through Ray's own key-value store, which it does not show, and each worker takes them when it
starts.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pipeline.redaction import SECRET_NAME, names_user
from pipeline.training.engines import NAMESPACE

_KEY_VARIABLE = "MARCH_WORKER_SECRETS"  # under which name they are in the store
_COMES_WITHIN_S = 30.0
_PASSED_ON = re.compile(r"(OTEL|NCCL|TORCH_NCCL|GLOO|HF|MLFLOW)_|(?i:(https?|all|no)_proxy)$")


def passed_on() -> dict[str, str]:
    """Variables of this process that a worker on another node has no other way to know."""
    return {name: value for name, value in os.environ.items() if _PASSED_ON.match(name)}


def parted(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns what anybody may see, and the secrets: by name, or by a user or password in an address."""
    secrets = {
        name: value for name, value in environment.items() if SECRET_NAME.search(name) or names_user(value)
    }
    return {name: value for name, value in environment.items() if name not in secrets}, secrets


def key_of(run: str) -> dict[str, str]:
    """The variable that tells a run's workers where its secrets are."""
    return {_KEY_VARIABLE: f"secrets-{run}"}


@contextmanager
def handed_over(run: str, secrets: Mapping[str, str]) -> Iterator[None]:
    """Keeps a run's secrets where its workers find them, until the block ends."""
    from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_put

    (key,) = key_of(run).values()
    _internal_kv_put(key, json.dumps(dict(secrets)), namespace=NAMESPACE)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # Ray itself may be what failed
            _internal_kv_del(key, namespace=NAMESPACE)


def begin() -> None:
    """Runs first in each worker (Ray's `worker_process_setup_hook`)."""
    from ray.experimental.internal_kv import _internal_kv_get

    from pipeline import cpu

    until = time.monotonic() + _COMES_WITHIN_S  # Ray may start workers before the driver goes on
    while (found := _internal_kv_get(os.environ[_KEY_VARIABLE], namespace=NAMESPACE)) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"the run's secrets did not come within {_COMES_WITHIN_S:g} s")
        time.sleep(0.05)
    os.environ.update(json.loads(found))
    cpu.install()
