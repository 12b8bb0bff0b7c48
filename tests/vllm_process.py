"""Shared by the slow tests: a real vLLM server of the tiny policy in processes of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

TINY_POLICY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
# `python -m`: the `vllm serve` of the CPU build does not start. Prompts are read whole for seeds (engine.py).
COMMAND = [
    *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"),
    *("--model", str(TINY_POLICY), "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"),
    *("--no-enable-chunked-prefill", "--logprobs-mode", "processed_logprobs"),
    "--enable-prompt-tokens-details",
]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
}


class VllmServer:
    """The server and its engine's process; `url` ends with the version."""

    def __init__(self, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._log = log
        with log.open("w") as out:
            self._process = subprocess.Popen(
                [*COMMAND, "--port", str(self._port)], stdout=out, stderr=out, env=os.environ | ENVIRONMENT
            )

    def wait_until_healthy(self) -> None:
        until = time.monotonic() + 240
        while not self._healthy():
            assert self._process.poll() is None and time.monotonic() < until, self._log.read_text()[-3000:]
            time.sleep(0.5)

    def stall(self) -> None:
        """Stops all of it where it stands; connections stay open and new ones wait."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        self.go_on()
        self._process.terminate()
        self._process.wait(60)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(self._process.pid)
            for process in (server, *server.children(recursive=True)):
                process.send_signal(number)

    def _healthy(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{self._port}/health", trust_env=False).is_success
        return False


@contextlib.contextmanager
def vllm_server(log: Path) -> Iterator[VllmServer]:
    """A server that answers; it ends with the context."""
    server = VllmServer(log)
    try:
        server.wait_until_healthy()
        yield server
    finally:
        server.close()
