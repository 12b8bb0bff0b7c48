"""Defaults of `march schedule` and `march status`; imports nothing that help would have to wait for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

FOLDER = Path("runs/schedule")
HOST = "127.0.0.1"
PORT = 5002  # the reward server's is 5001


class OnStop(StrEnum):
    """What SIGTERM does to retrainings that are running."""

    LEAVE = "leave"  # they go on without the service, and the next one finds them
    WAIT = "wait"  # the service ends after them; a second signal leaves them
