"""The named actor through which the reward server finds a run's rollout engines, and their weights version.

It holds a reference to the engines' handles and not the handles: Ray imports an actor's class wherever a
handle is read, here vLLM and OpenRLHF, which are seconds of a core and more than half a GiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ray import ObjectRef

NAMESPACE = "march"  # of our actors in Ray


class EngineRegistry:
    """Hands out a reference to the engines' handles and counts weight syncs; runs as a Ray actor.

    Args:
        engines: One reference to the list of handles; in a list, since Ray replaces a bare one by its value.
        weights_version: To count on from; of a resumed run the steps done, so that its record has no version
            twice.
    """

    def __init__(self, engines: list[ObjectRef], weights_version: int = 0) -> None:
        self.engines = engines
        self.weights_version = weights_version

    def snapshot(self) -> tuple[list[ObjectRef], int]:
        return self.engines, self.weights_version

    def advance(self) -> int:
        self.weights_version += 1
        return self.weights_version
