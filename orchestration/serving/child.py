"""One server of one version's weights, as a child process on a free port of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from orchestration.serving.forward import LOOPBACK
from pipeline.launch.reward_servers import die_with_parent
from pipeline.ports import hold_port

_GRACE_S = 30.0  # for the answers that are being written
_ASK_S = 5.0


@dataclass(frozen=True)
class Fetched:
    """Weights on this machine, verified."""

    version: str  # its number; "" for weights that are no version
    weights: str  # their folder


Command = Callable[[Fetched, int], Sequence[str]]  # of a server of these weights on this port


class Child:
    """Starts a server."""

    def __init__(self, served: Fetched, command: Command) -> None:
        self._held = hold_port(LOOPBACK)  # until it has ended, so that no connection gets its port
        self.served, self.port = served, int(self._held.getsockname()[1])
        # Engines are processes of its own: the group ends them with it.
        self._process = subprocess.Popen(
            command(served, self.port),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    @property
    def code(self) -> int | None:
        """How it ended; None: it runs."""
        return self._process.poll()

    async def is_up(self) -> bool:
        """Whether it says that it can answer."""
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=_ASK_S) as client:
                return (await client.get(f"http://{LOOPBACK}:{self.port}/health")).is_success
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Asks it to end, and then ends it and all that it has started."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._held.close()
