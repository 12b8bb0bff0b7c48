"""The reward servers of a run: processes beside the trainer, started again when they end.

They sample the run's own engines over Ray. The agents wait for one that is gone, or ask another
(`reward.serving.client`), so a server that dies costs a step some seconds and no reward. One that dies again
and again ends the run, with its last words.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline.launch.signals import terminable
from pipeline.ports import hold_port
from pipeline.record.run import RunState
from pipeline.redaction import one_line
from pipeline.settings.sources import RewardSettings
from pipeline.training.engines import NAMESPACE
from reward.config import LocalSamplerConfig, RaySamplerConfig
from reward.serving.config import ServerConfig

logger = logging.getLogger(__name__)

_STARTS_WITHIN_S = 180.0
_FOR_ONE_TURN = 0.8  # of an audit's deadline
_ENDS_WITHIN_S = 60.0  # above the server's own grace
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_MOST_ENDS, _ENDS_COUNT_FOR_S = 5, 600.0  # so many in that time, and it is not started again
_MOST_WORDS = 300  # characters
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_prctl = ctypes.CDLL(None).prctl  # found now: between fork and exec nothing may be loaded


def has_gpu() -> bool:
    """Whether this machine shows this process an NVIDIA GPU, asked without loading torch."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return Path("/dev/nvidiactl").exists() and not hidden


def uncounted_gpu(settings: RewardSettings, *, on_gpus: bool) -> str | None:
    """Why the reward servers cannot load a frozen model beside a training, if they cannot.

    A server is no process of Ray's: vLLM in it would take most of the first GPU, which Ray has given to
    another model.
    """
    if not on_gpus or not isinstance(settings.sampler, LocalSamplerConfig):
        return None
    return (
        "reward.sampler: kind vllm would load the frozen model on a GPU that the training uses, in each "
        f"reward server; serve it on a GPU of its own (vllm serve {settings.sampler.model}) and set kind: "
        "openai with its base_url"
    )


def server_configs(state: RunState, *, address: str, ports: Sequence[int]) -> list[ServerConfig]:
    recipe = state.recipe
    sampler = recipe.reward.sampler or RaySamplerConfig(
        address=address,
        namespace=NAMESPACE,
        registry=registry_name(state),
        tokenizer=recipe.model_path,
        max_model_len=recipe.max_model_len,
        timeout_s=_FOR_ONE_TURN * recipe.reward.deadline_s,
    )
    return [
        ServerConfig(
            host=recipe.reward.host,
            port=port,
            audit=recipe.audit,
            sampler=sampler,
            deadline_s=recipe.reward.deadline_s,
        )
        for port in ports
    ]


def registry_name(state: RunState) -> str:
    """Names the run's engine registry; runs that share a cluster must not find each other's engines."""
    return f"march-engines-{state.mlflow_run_id}"


@contextmanager
def held_ports(settings: RewardSettings) -> Iterator[list[int]]:
    """Holds a port for each server until the block ends, also while one that ended is started again."""
    with ExitStack() as held:
        sockets = [held.enter_context(hold_port(settings.host)) for _ in range(settings.num_servers)]
        yield [int(each.getsockname()[1]) for each in sockets]


class RewardServerLostError(RuntimeError):
    """A reward server did not start, or ends whenever it is started."""


@contextmanager
def reward_servers(configs: Sequence[ServerConfig], folder: Path) -> Iterator[None]:
    """Runs the servers until the block ends; a `RewardServerLostError` interrupts it."""
    with ExitStack() as running, terminable():
        servers = [KeptServer(config, folder / f"reward_server-{i}.json") for i, config in enumerate(configs)]
        for server in servers:
            running.callback(server.stop)
        for server in servers:
            server.wait_until_alive()
            server.keep()
        try:
            yield
        except KeyboardInterrupt:
            for server in servers:
                server.refuse_lost()
            raise


class KeptServer:
    """`python -m reward` on a configuration, which it writes to `path`; the log lies beside it."""

    def __init__(self, config: ServerConfig, path: Path) -> None:
        self._path = path
        self._url = f"http://{config.host}:{config.port}"
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._is_lost = False
        path.write_text(config.model_dump_json(indent=2))
        self._process = self._start()

    def wait_until_alive(self) -> None:
        """Returns when the server answers; its engines come later, with the trainer.

        Asking whether it is ready (it is not yet) makes it load vLLM's client now and not in the first step.

        Raises:
            RewardServerLostError: it ended, or did not answer in time.
        """
        import httpx

        deadline = time.monotonic() + _STARTS_WITHIN_S
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                httpx.get(f"{self._url}/healthz", timeout=5, trust_env=False).raise_for_status()
                httpx.get(f"{self._url}/readyz", timeout=30, trust_env=False)
                return
            except httpx.HTTPError:
                time.sleep(0.5)
        raise RewardServerLostError(f"the reward server did not start{self._last_words()}")

    def keep(self) -> None:
        """From now on it is started again when it ends."""
        threading.Thread(target=self._keep, name=f"keeps {self._path.stem}", daemon=True).start()

    def refuse_lost(self) -> None:
        """Raises `RewardServerLostError` if it is not started again."""
        if self._is_lost:
            raise RewardServerLostError(
                f"the reward server ended {_MOST_ENDS} times in {_ENDS_COUNT_FOR_S:g} s{self._last_words()}"
            )

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
        self._process.terminate()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _keep(self) -> None:
        pause_s, ends = _FIRST_PAUSE_S, deque[float](maxlen=_MOST_ENDS)
        while True:
            began = time.monotonic()
            code = self._process.wait()
            lived_s = time.monotonic() - began
            pause_s = _FIRST_PAUSE_S if lived_s > _LONGEST_PAUSE_S else min(2 * pause_s, _LONGEST_PAUSE_S)
            ends.append(time.monotonic())
            if self._stopping.is_set():
                return
            if len(ends) == _MOST_ENDS and ends[-1] - ends[0] < _ENDS_COUNT_FOR_S:
                self._is_lost = True
                return os.kill(os.getpid(), signal.SIGTERM)  # the main thread waits for Ray
            if self._stopping.wait(pause_s):
                return
            logger.warning("reward server %s ended with code %d and is started again", self._url, code)
            with self._lock:
                if self._stopping.is_set():
                    return
                self._process = self._start()

    def _last_words(self) -> str:
        path = self._path.with_suffix(".log")
        lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
        words = f": {one_line(lines[-1]):.{_MOST_WORDS}}" if lines else ""
        return f"{words}; see {path}"

    def _start(self) -> subprocess.Popen[bytes]:
        with self._path.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "reward", str(self._path)],
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )


def die_with_parent() -> None:
    """In a new child: ends it when the thread that started it dies, however that dies (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
