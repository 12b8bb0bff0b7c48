"""One request to the sampler, as each role makes it: a seed of its own, and all completions or a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward import telemetry
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.provenance import seeded
from reward.roles.prompts import PromptSet
from reward.samplers import Message, Sampler, SamplerError
from reward.types import Role, SampleGroup


@dataclass(frozen=True)
class Turn:
    """One request to the sampler that has ended, as an observer is told of it."""

    role: Role
    attempt: int
    seconds: float
    group: SampleGroup | None  # None when it failed
    failure: str = ""  # the `SamplerError`'s reason, or "other"


Observer = Callable[[Turn], None]


@dataclass(frozen=True)
class Means:
    """What an audit is carried out with; nothing of what is audited."""

    sampler: Sampler
    prompts: PromptSet
    config: AuditConfig
    observer: Observer | None = None  # is told of every turn that was not cancelled

    async def ask(
        self, role: Role, messages: Sequence[Message], *, n: int, attempt: int, pattern: str | None
    ) -> SampleGroup:
        """Asks a role.

        Args:
            role: PROPOSER or CHECKER.
            messages: The prompt.
            n: Completions.
            attempt: From 0; which request of this prompt it is.
            pattern: What each completion must match, for samplers that can see to it.

        Raises:
            SamplerError: as `Sampler.sample`; `bad_response` when it gave too few completions.
        """
        settings = self.config.proposer if role is Role.PROPOSER else self.config.checker
        settings = seeded(settings, messages, seed=self.config.seed, role=role, attempt=attempt)
        start = time.perf_counter()
        try:
            with telemetry.chat(self.sampler.model, settings, n=n, role=role, attempt=attempt) as span:
                group = await self.sampler.sample(messages, n=n, settings=settings, pattern=pattern)
                telemetry.tell_group(span, group)
                telemetry.tell_texts(span, messages, [sample.text for sample in group.samples])
                if len(group.samples) != n:
                    detail = f"asked for {n} completions, got {len(group.samples)}"
                    raise SamplerError(Reason.BAD_RESPONSE, detail)
        except Exception as error:
            failure = error.reason if isinstance(error, SamplerError) else "other"
            self._tell(Turn(role, attempt, time.perf_counter() - start, None, failure))
            raise
        self._tell(Turn(role, attempt, time.perf_counter() - start, group))
        return group

    def _tell(self, turn: Turn) -> None:
        if self.observer is not None:
            self.observer(turn)
