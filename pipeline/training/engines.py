"""The named actor through which the reward server finds a run's rollout engines, and their weights version.

It imports nothing heavy, so that its process stays small.
"""

from __future__ import annotations

from typing import Any


class EngineRegistry:
    """Hands out the engines' handles and counts weight syncs; runs as a Ray actor."""

    def __init__(self, engines: list[Any]) -> None:
        self.engines = engines
        self.weights_version = 0

    def snapshot(self) -> tuple[list[Any], int]:
        """Returns the engines' handles and the weights version."""
        return self.engines, self.weights_version

    def advance(self) -> int:
        """Counts a weight sync and returns the new version."""
        self.weights_version += 1
        return self.weights_version
