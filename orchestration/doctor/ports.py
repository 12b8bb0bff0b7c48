"""Ports on loopback: that a run finds free ones, and that the reward server's own is free."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.records import Finding, failed, ok, warning
from reward.serving.config import ServerConfig

LOOPBACK = "127.0.0.1"
_WANTED = 64  # at once: Ray takes some thirty for its processes, each reward server and engine one more
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True)
class PortFacts:
    """What could be opened."""

    num_opened: int
    problem: str  # of the one that could not
    bounds: str  # from which the system gives ports
    reward_port: int
    reward_is_free: bool


def gather_ports(reward_port: int = ServerConfig.model_fields["port"].default) -> PortFacts:
    """Opens ports and closes them again; no connection is made."""
    bounds = " to ".join(_RANGE.read_text().split()) if _RANGE.is_file() else ""
    opened, problem = 0, ""
    with ExitStack() as held:
        try:
            for _ in range(_WANTED):
                one = held.enter_context(socket.socket())
                one.bind((LOOPBACK, 0))
                opened += 1
        except OSError as error:
            problem = error.strerror or str(error)
    return PortFacts(opened, problem, bounds, reward_port, _is_free(reward_port))


def check_ports(facts: PortFacts) -> Iterator[Finding]:
    """Judges them."""
    if facts.problem:
        found = f"{facts.num_opened} of {_WANTED} could be opened on {LOOPBACK}: {facts.problem}"
        fix = "bring the loopback interface up, or widen net.ipv4.ip_local_port_range"
        yield failed("ports", found, fix)
        return
    found = f"free ones on {LOOPBACK} ({facts.bounds})"
    if not facts.reward_is_free:
        fix = "it may be a reward server (--reward asks it); else `march serve --port`"
        yield warning("ports", f"{found}; {facts.reward_port}, the reward server's, is taken", fix)
    else:
        yield ok("ports", f"{found}; {facts.reward_port}, the reward server's, is free")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server does, after one that ended
        try:
            one.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
