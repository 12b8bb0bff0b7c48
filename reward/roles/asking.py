"""One request to the sampler, as each role makes it: a seed of its own, and all completions or a failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.provenance import seeded
from reward.roles.prompts import PromptSet
from reward.samplers import Message, Sampler, SamplerError
from reward.types import Role, SampleGroup


class AuditFailure(Exception):
    """The audit could not be carried through, by no fault of the sampler; becomes an UNSCORED verdict."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Means:
    """What an audit is carried out with; nothing of what is audited."""

    sampler: Sampler
    prompts: PromptSet
    config: AuditConfig

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
        group = await self.sampler.sample(messages, n=n, settings=settings, pattern=pattern)
        if len(group.samples) != n:
            raise SamplerError(Reason.BAD_RESPONSE, f"asked for {n} completions, got {len(group.samples)}")
        return group
