"""The socket that a supervisor holds: no connection is refused while one server ends and the next starts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from reward.serving import connections
from tests.role_server import LABEL as QUERY
from tests.role_server import PROMPT, RESPONSE, TOKEN, server_config
from tests.supervised import Supervised, environment

ROOT = Path(__file__).parents[1]
UNITS = ROOT / "infra" / "systemd"


def ask(server: Supervised) -> int:
    """One request as OpenRLHF's stock client sends it, in a connection of its own; its status."""
    body = {"query": [PROMPT + RESPONSE], "prompts": [PROMPT], "labels": [QUERY]}
    url = f"{server.url}/get_reward"
    return httpx.post(url, json=body, auth=("march", TOKEN), timeout=60, trust_env=False).status_code


def in_flight(server: Supervised) -> float:
    metrics = httpx.get(f"{server.url}/metrics", auth=("march", TOKEN), timeout=60, trust_env=False).text
    return float(metrics.split("\nmarch_audits_in_flight ")[1].split("\n")[0])


def asked(server: Supervised, pool: ThreadPoolExecutor) -> Future[int]:
    """A request that is under way."""
    future = pool.submit(ask, server)
    while not in_flight(server):
        assert not future.done()
        time.sleep(0.02)
    return future


def test_no_connection_is_refused_while_the_server_is_killed_or_stopped() -> None:
    config = server_config(max_kept=0).model_dump_json()  # each request is an audit
    command = [sys.executable, str(ROOT / "tests" / "role_process.py"), config, "1"]
    server = Supervised(command, environment(MARCH_REWARD_TOKEN=TOKEN, PYTHONPATH=str(ROOT)))
    try:
        with ThreadPoolExecutor(4) as pool:
            broken = asked(server, pool)
            server.send(signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                broken.result()
            assert ask(server) == 200  # waits in the backlog for the second process

            accepted = asked(server, pool)
            server.send(signal.SIGTERM)
            time.sleep(0.3)  # until it has left the socket
            waiting = pool.submit(ask, server)
            assert accepted.result() == 200
            assert waiting.result() == 200
        assert server.exit_codes == [-signal.SIGKILL, 0]
    finally:
        server.close()


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "1")
    return monkeypatch


def test_a_passed_socket_is_taken_once_and_is_for_no_child(passed: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        passed.setattr(connections, "_FIRST_FD", os.dup(held.fileno()))
        listener, is_passed = connections.open_listener("127.0.0.1", 1)
        with listener:
            assert is_passed and listener.getsockname() == held.getsockname()
            assert not listener.get_inheritable()
            assert "LISTEN_FDS" not in os.environ and "LISTEN_PID" not in os.environ


def test_what_is_passed_to_another_process_is_not_taken(passed: pytest.MonkeyPatch) -> None:
    passed.setenv("LISTEN_PID", "1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listener, is_passed = connections.open_listener("127.0.0.1", port)
    with listener:
        assert not is_passed and listener.getsockname()[1] == port


@pytest.mark.parametrize(
    ("kind", "num_passed", "words"),
    [
        ("pipe", "1", "is no socket"),
        ("udp", "1", "does not listen on TCP"),
        ("unix", "1", "does not listen on TCP"),
        ("tcp", "2", "pass one"),
    ],
)
def test_what_cannot_be_listened_on_is_refused(
    passed: pytest.MonkeyPatch, tmp_path: Path, kind: str, num_passed: str, words: str
) -> None:
    passed.setenv("LISTEN_FDS", num_passed)
    number = descriptor(kind, tmp_path)
    passed.setattr(connections, "_FIRST_FD", number)
    with pytest.raises(ValueError, match=words):
        connections.open_listener("127.0.0.1", 5001)


def descriptor(kind: str, folder: Path) -> int:
    if kind == "pipe":
        return os.pipe()[0]
    if kind == "udp":
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()
    if kind == "unix":
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(folder / "s"))
        server.listen()
        return server.detach()
    return socket.create_server(("127.0.0.1", 0)).detach()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_units_are_valid(tmp_path: Path) -> None:
    for unit in UNITS.glob("march-reward.*"):
        installed = unit.read_text().replace("/opt/march/bin/march", sys.executable)  # it must exist
        (tmp_path / unit.name).write_text(installed)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["march-reward.service", "march-reward.socket"]
    command = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in names)]
    checked = subprocess.run(command, capture_output=True, text=True)
    told = [line for line in (checked.stdout + checked.stderr).splitlines() if "march-reward" in line]
    assert checked.returncode == 0 and not told, checked.stderr
