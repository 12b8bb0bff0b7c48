"""One server of one version's weights, as a child process on a free port of this machine.

The port is one of those that follow the clients' port. One of the system's choice is of the range that
connections going out take theirs from: asked before its server listens, it may be taken by the question.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from orchestration.serving.forward import LOOPBACK
from pipeline.launch.reward_servers import die_with_parent

_GRACE_S = 30.0  # for the answers that are being written
_ASK_S = 5.0
_MOST_PORTS = 100


@dataclass(frozen=True)
class Fetched:
    """Weights on this machine, verified."""

    version: str  # its number; "" for weights that are no version
    weights: str  # their folder


Command = Callable[[Fetched, int], Sequence[str]]  # of a server of these weights on this port


class Child:
    """Starts a server.

    Args:
        served: The weights.
        command: What serves them.
        above: Its port is the first free one after this.
    """

    def __init__(self, served: Fetched, command: Command, *, above: int) -> None:
        self.served, self.port = served, _free_port(above)
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


def _free_port(above: int) -> int:
    for port in range(above + 1, min(above + _MOST_PORTS, 65_535) + 1):
        with contextlib.suppress(OSError), socket.create_server((LOOPBACK, port)):
            return port
    raise ValueError(f"--port: the {_MOST_PORTS} ports after {above} are taken; give another")
