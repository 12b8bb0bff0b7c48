"""Where the server listens: at a socket of its own, or at one that a supervisor holds for it.

A socket that is passed (systemd's socket activation, sd_listen_fds(3)) outlives the process. While one server
ends and the next one starts, connections wait in its backlog and are not refused. OpenRLHF's stock client
needs that: it gives a sample up after five failures a second apart, but waits 180 s for one answer.
`infra/systemd/` holds the units.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass

from reward.serving.connections import probe_peers

_FIRST_FD = 3  # SD_LISTEN_FDS_START


@dataclass(frozen=True)
class Listener:
    """A listening socket."""

    socket: socket.socket
    is_passed: bool  # a supervisor holds it, too

    @property
    def host(self) -> str:
        return str(self.socket.getsockname()[0])

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


def open_listener(host: str, port: int) -> Listener:
    """The socket that was passed to this process, if one was, else a new one.

    Raises:
        ValueError: the address cannot be listened on, or what was passed is not one listening TCP socket.
    """
    passed = _passed()
    listener = Listener(passed or _bound(host, port), is_passed=passed is not None)
    probe_peers(listener.socket)
    return listener


def _passed() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    num_passed = os.environ.get("LISTEN_FDS", "")
    for name in (
        "LISTEN_PID",
        "LISTEN_FDS",
        "LISTEN_FDNAMES",
    ):  # they are not for processes that this one starts
        os.environ.pop(name, None)
    if num_passed != "1":
        raise ValueError(f"LISTEN_FDS: {num_passed!r} sockets were passed; pass one")
    try:
        os.set_inheritable(_FIRST_FD, False)
        passed = socket.socket(fileno=_FIRST_FD)
        listens = passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise ValueError(
            f"LISTEN_FDS: file descriptor {_FIRST_FD} is no socket ({error.strerror})"
        ) from error
    if not listens or passed.family not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError("LISTEN_FDS: the socket does not listen on TCP; say ListenStream=HOST:PORT")
    return passed


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        mend = "stop what uses it or set another port" if in_use else "mend host or port"
        raise ValueError(f"port: cannot listen on {host}:{port} ({error.strerror}); {mend}") from error
