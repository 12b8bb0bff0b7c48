"""The live view of `march serve`: its look at every size, and a real server on a real terminal."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from orchestration.serve_figures import Estimate, Figures
from orchestration.serve_live import terminal_lines_into
from orchestration.serve_view import Snapshot, Warned, render, sparkline
from reward.samplers import EngineState, EngineStatus
from tests.march_cli import MARCH, march
from tests.openai_model import Model

SECOND = Estimate(1.2)
READY = b"engines ready"  # on the view of a server that listens
FIGURES = Figures(
    audits_per_s=(41.23, 38.9),
    each_second=tuple(float(i) for i in range(60)),
    outcomes={"SUPPORTED": 12_204, "REFUTED": 4013, "NO_CLAIMS": 300, "UNSCORED": 612},
    unscored={"timeout": 500, "engine": 100, "too_few_valid_votes": 11, "internal": 1},
    agreement=0.932,
    unreadable=0.004,
    uncovered=0.012,
    num_in_flight=512,
    num_waiting=1203,
    latency={
        "audit": (SECOND, Estimate(13.4), Estimate(180, ">")),
        "wait": (Estimate(0.1, "<"),) * 3,
        "propose": (SECOND, SECOND, Estimate(104)),
        "check": (),
    },
    tokens_per_s=(212_345.0, 3123.0),
    prefix_hits=0.834,
    num_cached=1203,
    num_joined=34,
    refused={"overloaded": 12, "slow": 1},
    weights_version=1234,
)
SNAPSHOT = Snapshot(
    url="http://127.0.0.1:5001",
    sampler="openai",
    model="Qwen/Qwen3-8B",
    uptime_s=90_061,
    readiness="ready",
    figures=FIGURES,
    engines=[
        EngineStatus("http://10.0.0.1:8000/v1", EngineState.READY, 120),
        EngineStatus("http://10.0.0.2:8000/v1", EngineState.FAILING, 0),
    ],
    max_in_flight=512,
    max_waiting=4096,
    warnings=[
        Warned("12:03:41", "WARNING", "runner: audit of q17 is UNSCORED:\ntimeout " + "and so on " * 20),
        Warned("12:03:42", "ERROR", "tls: \x1b[2Jcannot use it"),
    ],
)


def shown(snapshot: Snapshot = SNAPSHOT, *, width: int, height: int = 40) -> list[str]:
    console = Console(width=width, height=height, color_system=None)
    with console.capture() as captured:
        console.print(render(snapshot, width=width, height=height))
    return captured.get().removesuffix("\n").split("\n")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("height", [3, 12, 24, 50])
def test_it_fits_its_terminal_and_its_frames_close(width: int, height: int) -> None:
    lines = shown(width=width, height=height)
    assert len(lines) <= height and max(map(len, lines)) <= width
    framed = [line for line in lines if line[:1] in "╭│╰"]
    assert {(line[0], line[-1], len(line)) for line in framed} <= {
        ("╭", "╮", width),
        ("│", "│", width),
        ("╰", "╯", width),
    }


@pytest.mark.parametrize(("width", "num_beside"), [(40, 1), (80, 2), (120, 4)])
def test_blocks_stand_side_by_side_as_the_width_allows(width: int, num_beside: int) -> None:
    tops = [line for line in shown(width=width, height=60) if line.startswith("╭─ outcomes")]
    assert tops[0].count("╭") == num_beside


def test_everything_that_is_asked_of_it_is_there() -> None:
    text = re.sub(" +", " ", "\n".join(shown(width=80)))
    for words in (
        "march serve http://127.0.0.1:5001",
        "● ready",
        "openai · Qwen/Qwen3-8B · weights 1,234 · 1 of 2 engines ready up 1 d 1:01:01",
        "41.2 audits/s last 10 s · 38.9 last minute",
        "SUPPORTED 12,204 71.2%",
        "UNSCORED 612 3.6%",
        "timeout 500 2.9%",
        "audit 1.20 13.4 >180",
        "wait <0.1 <0.1 <0.1",
        "check - - -",
        "in flight 512 of 512",
        "waiting 1,203 of 4,096",
        "tokens in 212,345/s",
        "refused 13",
        "overloaded 12",
        "votes agree 93.2%",
        "numbers uncovered 1.2%",
        "prefix cache 83.4%",
        "verdicts kept 1,203",
        "requests joined 34",
        "● http://10.0.0.2:8000/v1 failing 0 requests",
        "12:03:41 runner: audit of q17 is UNSCORED: timeout",
    ):
        assert words in text, words
    assert "\x1b" not in text and "internal" not in text  # no more than three reasons


def test_unknown_is_a_dash() -> None:
    unknown = replace(
        FIGURES, prefix_hits=None, tokens_per_s=None, agreement=None, uncovered=None, weights_version=None
    )
    text = re.sub(" +", " ", "\n".join(shown(replace(SNAPSHOT, figures=unknown), width=80)))
    assert "prefix cache - │" in text and "tokens in - │" in text and "votes agree - │" in text
    assert "weights" not in text


def test_the_sparkline_is_the_latest_values_by_the_highest() -> None:
    assert sparkline([9, 0, 1, 2, 4], 4) == "▁▃▅█"
    assert sparkline([0, 0], 4) == "▁▁" and sparkline([1], 0) == sparkline([], 3) == ""


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    yield ours, theirs
    os.close(ours)


def test_lines_of_the_log_leave_the_terminal_and_come_back(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    root, file = logging.getLogger(), logging.StreamHandler(io.StringIO())
    with os.fdopen(theirs, "w") as stream:
        handler = logging.StreamHandler(stream)
        root.addHandler(handler)
        root.addHandler(file)
        try:
            with terminal_lines_into() as log:
                logging.getLogger("reward.x").warning("careful: %s", "this")
                assert handler not in root.handlers and file in root.handlers
                assert [one.text for one in log.warnings()] == ["x: careful: this"]
                assert not select.select([ours], [], [], 0)[0]
            assert handler in root.handlers
        finally:
            root.removeHandler(handler)
            root.removeHandler(file)
    assert os.read(ours, 1000).strip() == b"careful: this"


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
        while self.process.poll() is None:
            self._read(0.2)
        self._read(0)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        if select.select([self._ours], [], [], seconds)[0]:
            try:
                self.drawn += os.read(self._ours, 65_536)
            except OSError:  # nobody is at the other end any more
                time.sleep(0.05)


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


@pytest.mark.parametrize("ends", [OnTerminal.press_ctrl_c, lambda served: served.process.terminate()])
def test_a_server_shows_itself_and_leaves_the_terminal_in_order(
    terminal: tuple[int, int], model: Model, ends: Callable[[OnTerminal], None]
) -> None:
    served = OnTerminal(terminal, model.url)
    served.until(b"\x1b[?1049h")  # the alternate screen
    served.until(READY)
    assert audit(served.port).json()["verdict"]["outcome"] == "SUPPORTED"
    served.until(b"100.0%")
    ends(served)
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
        assert served.end() != 0
        with pytest.raises(httpx.TransportError):
            waiting.result()
    assert b"\x1b[?1049l" in served.drawn and b"Traceback" not in served.drawn


def test_no_live_is_the_log_as_before(terminal: tuple[int, int], model: Model) -> None:
    served = OnTerminal(terminal, model.url, "--no-live")
    served.until(b"reward server on http://127.0.0.1")
    served.until(b"startup complete")
    served.press_ctrl_c()
    assert served.end() == 0 and b"\x1b[?1049h" not in served.drawn


def test_live_without_a_terminal_is_said_to_have_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    assert march("serve", "--live", "--openai-url", "http://127.0.0.1:9", "--model", "m", "--port", "1") == 2
    assert "--live has no effect where standard output is no terminal" in capsys.readouterr().err
