"""A port that is held is given to nobody, and its server can listen on it, again and again."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from pipeline import cpu
from pipeline.ports import hold_port

cpu.install()


def test_a_held_port_is_the_servers_alone() -> None:
    with hold_port("127.0.0.1") as held:
        address = held.getsockname()
        with socket.socket() as other, pytest.raises(OSError) as refused:
            other.bind(address)
        assert refused.value.errno == errno.EADDRINUSE
        with socket.socket() as client:
            assert client.connect_ex(address) == errno.ECONNREFUSED  # nobody listens yet
        for _ in range(2):
            with (
                socket.create_server(address),
                socket.create_connection(address, timeout=10) as client,
            ):
                assert client.getpeername() == address
    with socket.socket() as other:
        other.bind(address)


def test_an_actor_meets_its_peers_at_the_port_that_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    from openrlhf.trainer.ray.launcher import BaseDistributedActor
    from torch import distributed

    from pipeline.training.rendezvous import HoldsItsPort

    class Actor(HoldsItsPort, BaseDistributedActor):  # type: ignore[misc]  # OpenRLHF is untyped
        @staticmethod
        def _get_current_node_ip() -> str:
            return "127.0.0.1"  # without a cluster to ask

    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "")  # the actor sets them
    actor = Actor(1, 0, None, None)
    address, port = actor.get_master_addr_port()
    assert os.environ["MASTER_PORT"] == str(port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((address, port))
    if distributed.is_initialized():  # a group of one rank, of a test before this one
        distributed.destroy_process_group()
    distributed.init_process_group("gloo")
    try:
        assert distributed.get_world_size() == 1
    finally:
        distributed.destroy_process_group()
    follower = Actor(2, 1, address, port)  # as rank 1, which finds no port of its own
    assert follower.get_master_addr_port() == (address, port)
