"""What all of OpenRLHF's model actors get: a port of rendezvous that is still theirs when they meet, and
threads by phase of a step (`pipeline.cpu.speed` shares them out).

The actor of rank 0 finds a free port when it is made, and torch listens on it when the models load: after
all engines have started, half a minute later on a CPU and minutes later with a large model. OpenRLHF holds
nothing meanwhile, so another process's connection may get the port, and the run ends with EADDRINUSE.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from openrlhf.trainer.ray.launcher import ReferenceModelActor as _RayReferenceModelActor

from pipeline.ports import hold_port
from pipeline.training.response_logits import with_response_logits
from pipeline.training.trainer_settings import TrainerSettings

# The class before @ray.remote.
PlainReferenceModelActor: Any = _RayReferenceModelActor.__ray_metadata__.modified_class


@contextmanager
def threads_for(phase: Literal["scoring", "update"]) -> Iterator[None]:
    """Has torch compute with the threads of a phase; where none are named, as on GPUs, changes nothing."""
    threads, before = TrainerSettings.from_environment().threads, torch.get_num_threads()
    torch.set_num_threads(getattr(threads, phase) if threads else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class HoldsItsPort:
    """To be put before a class of OpenRLHF's `BaseDistributedActor`."""

    _held: socket.socket

    def _get_free_port(self) -> int:
        self._held = hold_port()
        return int(self._held.getsockname()[1])


class MarchReferenceActor(HoldsItsPort, PlainReferenceModelActor):  # type: ignore[misc]  # OpenRLHF is untyped
    """`ReferenceModelActor` that holds its port and scores with the threads of that phase."""

    def init_model_from_pretrained(self, strategy: Any, pretrain: str) -> None:
        super().init_model_from_pretrained(strategy, pretrain)
        with_response_logits(self.model)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with threads_for("scoring"):
            return super().forward(*args, **kwargs)
