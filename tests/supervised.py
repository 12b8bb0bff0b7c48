"""Shared by the tests: what systemd does for `infra/systemd/march-reward.{socket,service}`, in a few lines.

It holds the listening socket, passes it to the process (sd_listen_fds(3)) and starts the process again,
however it ended.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

# The process id of a child is known only inside it: this sets LISTEN_PID and becomes the command.
PASS_SOCKET = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
RESTART_S = 0.2
COMPILED = Path(tempfile.gettempdir()) / f"march-tests-compiled-{os.getuid()}"


class Supervised:
    """A server behind a socket of its own, restarted until `close`."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command, self._env = list(command), dict(env)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.exit_codes: list[int] = []
        self._closing = threading.Event()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def send(self, number: signal.Signals) -> None:
        """Signals the process of now."""
        self._process.send_signal(number)

    def close(self) -> None:
        self._closing.set()
        self._process.terminate()
        self._keeper.join(60)
        self._socket.close()

    def _keep(self) -> None:
        while True:
            code = self._process.wait()
            self.exit_codes.append(code)
            if self._closing.wait(RESTART_S):
                return
            self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._socket.fileno()
        line = [sys.executable, "-IS", "-c", PASS_SOCKET, str(number), *self._command]
        return subprocess.Popen(line, env=self._env, pass_fds=[number])


def environment(**variables: str) -> dict[str, str]:
    """This process's environment with more in it.

    A training starts ten processes. Where no compiled modules may be written beside the packages, each of
    them compiles torch, vLLM and DeepSpeed for itself, half a minute of CPU; so they are kept for all.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {"PYTHONPYCACHEPREFIX": str(COMPILED), **kept, **variables}
