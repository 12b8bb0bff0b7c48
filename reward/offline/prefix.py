"""How much of an audit's prompts the engine's prefix cache held; an `Observer` of its turns."""

from __future__ import annotations

from reward.roles.asking import Turn


class PrefixUse:
    """Adds up the prompts of which somebody tells what was cached."""

    def __init__(self) -> None:
        self._num_prompt = self._num_cached = 0

    def turn_ended(self, turn: Turn) -> None:
        """Counts a request to the sampler."""
        group = turn.group
        if group and group.num_prompt_tokens is not None and group.num_cached_tokens is not None:
            self._num_prompt += group.num_prompt_tokens
            self._num_cached += group.num_cached_tokens

    @property
    def hit_rate(self) -> float | None:
        """Share of the tokens that were cached; None when nobody told."""
        return self._num_cached / self._num_prompt if self._num_prompt else None
