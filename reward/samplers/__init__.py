"""Where completions come from: the live rollout engines, a server, or vLLM in this process.

A `Sampler` turns chat messages into completions and raises `SamplerError` for anything that is not one. It
never returns a made-up or empty stand-in: whatever fails must reach the audit as a failure.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from typing_extensions import TypedDict  # typing's own cannot be a field of a record before Python 3.12

from reward.config import SamplingSettings
from reward.types import SampleGroup


class Message(TypedDict):
    """One chat message."""

    role: str
    content: str


class SamplerError(RuntimeError):
    """A completion could not be had. `reason` is one word for metrics and verdicts."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Sampler(Protocol):
    """Turns messages into completions of one model."""

    @property
    def model(self) -> str:
        """What is sampled, for the provenance of a verdict."""
        ...

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """Returns `n` independent completions of one prompt, in one request.

        Args:
            messages: The chat.
            n: Completions.
            settings: Temperature, length and seed.
            pattern: A regular expression that the whole of each completion must match, for engines that can
                constrain what they write; others are free, and the caller parses strictly anyway.

        Raises:
            SamplerError: with reason `timeout`, `connection`, `prompt_too_long`, `bad_response` or `engine`.
        """
        ...

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of a prompt, or an upper bound of them where the model's tokenizer cannot be asked.

        Raises:
            SamplerError: as `sample`.
        """
        ...

    async def ready(self) -> None:
        """Returns when the model answers; raises `SamplerError` when it does not."""
        ...

    async def close(self) -> None:
        """Frees connections or the engine."""
        ...


class Weights(NamedTuple):
    """Which weights a policy in training has."""

    run: str  # names the training run, so that one run's version 3 is not another's
    version: int  # count of weight syncs


@runtime_checkable
class TrainedSampler(Protocol):
    """What a sampler of a policy in training has beside `Sampler`; one without it samples a frozen model."""

    async def weights(self) -> Weights:
        """The weights that a request sent now would be sampled with, or older ones.

        Raises:
            SamplerError: they cannot be asked for now.
        """
        ...
