"""The live view on a real terminal, before a real server; and when it is shown at all."""

from __future__ import annotations

import contextlib
import fcntl
import io
import logging
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from orchestration.commands.serve import is_shown
from orchestration.live.screen import terminal_lines_into
from tests.march_cli import MARCH, march
from tests.openai_model import Model

READY = b"engines ready"  # on the view of a server that listens


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    yield ours, theirs
    os.close(ours)


def test_lines_of_the_log_leave_the_terminal_and_come_back(terminal: tuple[int, int], tmp_path: Path) -> None:
    ours, theirs = terminal
    root, file = logging.getLogger(), logging.StreamHandler(io.StringIO())
    unopened = logging.FileHandler(tmp_path / "log", delay=True)
    with os.fdopen(theirs, "w") as stream:
        handler = logging.StreamHandler(stream)
        root.addHandler(handler)
        root.addHandler(file)
        root.addHandler(unopened)
        try:
            with terminal_lines_into() as log:
                logging.getLogger("reward.x").warning("careful: %s", "this")
                assert handler not in root.handlers and file in root.handlers
                assert [one.text for one in log.warnings()] == ["x: careful: this"]
                assert not select.select([ours], [], [], 0)[0]
            assert handler in root.handlers
            assert os.read(ours, 1000).strip() == b"careful: this"
        finally:
            root.removeHandler(handler)
            root.removeHandler(file)
            root.removeHandler(unopened)


class OnTerminal:
    """`march serve` on a terminal; `until` reads what it draws."""

    def __init__(self, terminal: tuple[int, int], model_url: str, *options: str) -> None:
        self._ours, theirs = terminal
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        where = ("--openai-url", model_url, "--model", "m", "--prompts", "compact", "--port", str(self.port))
        self.process = subprocess.Popen(
            [*MARCH, "serve", *where, *options],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=Path(__file__).parents[1],
            env=os.environ | {"MARCH_REWARD_TOKEN": "x" * 32, "TERM": "xterm-256color"},
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)),
        )
        os.close(theirs)
        self.drawn = b""

    def until(self, word: bytes) -> None:
        end = time.monotonic() + 60
        while word not in self.drawn:
            assert self.process.poll() is None and time.monotonic() < end, self.drawn[-2000:]
            self._read(0.2)

    def press_ctrl_c(self) -> None:
        os.write(self._ours, b"\x03")

    def end(self) -> int:
        while self._read(0.2) or self.process.poll() is None:
            pass
        return self.process.wait()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], seconds)[0]:
            return False
        try:
            self.drawn += os.read(self._ours, 65_536)
        except OSError:  # nobody is at the other end any more
            return False
        return True


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


def audit(port: int) -> httpx.Response:
    document = {"id": "d", "text": "It raised 466 euros."}
    body = {
        "query": {"id": "q", "query": "How much?", "documents": [document]},
        "response": "It raised 466 euros.",
    }
    auth = ("march", "x" * 32)
    return httpx.post(f"http://127.0.0.1:{port}/v1/audit", json=body, auth=auth, trust_env=False, timeout=60)


def test_a_server_shows_itself_and_leaves_the_terminal_in_order(
    terminal: tuple[int, int], model: Model
) -> None:
    served = OnTerminal(terminal, model.url)
    served.until(b"\x1b[?1049h")  # the alternate screen
    served.until(READY)
    assert audit(served.port).json()["verdict"]["outcome"] == "SUPPORTED"
    served.until(b"100.0%")
    served.press_ctrl_c()
    assert served.end() == 0
    _, left, after = served.drawn.rpartition(b"\x1b[?1049l")
    assert left and b"\x1b[?25h" in served.drawn.rpartition(b"\x1b[?1049h")[2]  # the cursor is back
    assert b"stopped" in after and b"Traceback" not in served.drawn  # the last figures stay


def test_a_second_signal_ends_it_at_once_and_in_order_too(terminal: tuple[int, int], model: Model) -> None:
    model.fault = lambda *_: bool(time.sleep(20)) or True
    served = OnTerminal(terminal, model.url)
    served.until(READY)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(audit, served.port)
        while not model.num_requests:
            time.sleep(0.02)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            served.process.send_signal(number)
            time.sleep(0.2)
        assert served.end() == -signal.SIGTERM
        with contextlib.suppress(httpx.TransportError):
            assert waiting.result().status_code != 200
    assert b"\x1b[?1049l" in served.drawn and b"Traceback" not in served.drawn


@pytest.mark.parametrize(
    ("is_terminal", "kind", "live", "expected"),
    [
        (True, "xterm", None, True),
        (True, "xterm", False, False),
        (True, "dumb", True, False),
        (False, "xterm", None, False),
        (False, "xterm", True, False),
    ],
)
def test_it_is_shown_where_it_can_be_and_unless_it_is_unwanted(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, kind: str, live: bool | None, expected: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("TERM", kind)
    assert is_shown(live) is expected


def test_live_without_a_terminal_is_said_to_have_no_effect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MARCH_REWARD_TOKEN", raising=False)
    assert march("serve", "--live", "--openai-url", "http://127.0.0.1:9", "--model", "m") == 2
    assert "--live has no effect where standard output is no terminal" in capsys.readouterr().err
