"""One request to the sampler, as each role makes it: a seed of its own, and all completions or a failure.

Models that reason write "<think> ... </think>" and then the answer; some chat templates write "<think>"
themselves, at the end of the prompt. A serving stack that hides thought shows what follows the first
"</think>", so that is the answer (`AuditConfig.thinking`): cut at a later one, a policy could put before it
what people see and nobody checks. Only tokens' text is cut: the turn's token ids stay whole, and thought is
trained.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reward import telemetry
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.provenance import provenance_of, seeded
from reward.roles.prompts import PromptSet
from reward.samplers import Message, Sampler, SamplerError
from reward.types import Provenance, Role, SampleGroup, Trajectory

_START: Final = "<think>"
_END: Final = "</think>"
_SHOWN_FROM: Final = "<tool_call>"  # ends thought, too, in vLLM's parser for Qwen3, which shows what follows


@dataclass(frozen=True)
class Turn:
    """One request to the sampler that has ended, as an observer sees it."""

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
    observer: Observer | None = None  # sees every turn that was not cancelled

    @property
    def provenance(self) -> Provenance:
        """What its verdicts are made with."""
        digest, model = self.prompts.digest, self.sampler.model
        return provenance_of(self.config, auditor="model", prompt_digest=digest, model=model)

    async def ask(
        self, role: Role, messages: Sequence[Message], *, n: int, attempt: int, pattern: str | None
    ) -> SampleGroup:
        """Asks a role for `n` completions; `attempt`, from 0, counts the requests of this prompt.

        Raises:
            SamplerError: as `Sampler.sample`; `bad_response` when it gave too few completions.
        """
        settings = self.config.proposer if role is Role.PROPOSER else self.config.checker
        settings = seeded(settings, messages, seed=self.config.seed, role=role, attempt=attempt)
        start = time.perf_counter()
        try:
            with telemetry.chat(self.sampler.model, settings, n=n, role=role, attempt=attempt) as span:
                group = await self.sampler.sample(messages, n=n, settings=settings, pattern=pattern)
                telemetry.record_group(span, group)
                if len(group.samples) != n:
                    detail = f"asked for {n} completions, got {len(group.samples)}"
                    raise SamplerError(Reason.BAD_RESPONSE, detail)
        except Exception as error:
            failure = error.reason if isinstance(error, SamplerError) else "other"
            self._observe(Turn(role, attempt, time.perf_counter() - start, None, failure))
            raise
        self._observe(Turn(role, attempt, time.perf_counter() - start, group))
        return group

    def _observe(self, turn: Turn) -> None:
        if self.observer is not None:
            self.observer(turn)


def answer_start(turn: str, config: AuditConfig) -> int:
    """Where the answer of a turn begins: its length when it ended in thought, 0 when nothing is thought.

    Text before the first "</think>" is thought when it begins with "<think>" or holds none, and calls no
    tool; of any other some may be shown, so the whole turn is the answer. White space behind the thought
    belongs to it. With `thinking` off, the whole turn is the answer.
    """
    if not config.thinking:
        return 0
    before, end, after = turn.partition(_END)
    is_opened = before.lstrip().startswith(_START)
    if not end:
        return len(turn) if is_opened else 0
    is_thought = (is_opened or _START not in before) and _SHOWN_FROM not in before
    return len(turn) - len(after.lstrip()) if is_thought else 0


def answer_of(turn: str, config: AuditConfig) -> str:
    """The answer of a turn; empty when it ended in thought."""
    return turn[answer_start(turn, config) :]


@dataclass(frozen=True)
class OwnRewards:
    """What a turn's own words say of the claims: of all of them, and of each; nothing for a Proposer's."""

    reward: float | None = None
    undisputed: float | None = None
    answers: tuple[float | None, ...] = ()
    unreadable: bool = False


def turns(role: Role, group: SampleGroup, own: Sequence[OwnRewards]) -> list[Trajectory]:
    """The turns of one request as token records; none unless the sampler gave all their token ids."""
    if not has_tokens(group):
        return []
    return [
        Trajectory(
            role=role,
            prompt_token_ids=group.prompt_token_ids or (),
            response_token_ids=sample.token_ids or (),
            logprobs=sample.logprobs,
            finish_reason=sample.finish_reason,
            weights_version=group.weights_version,
            own_reward=rewards.reward,
            undisputed_reward=rewards.undisputed,
            answer_rewards=rewards.answers,
            unreadable=rewards.unreadable,
        )
        for sample, rewards in zip(group.samples, own, strict=True)
    ]


def has_tokens(group: SampleGroup) -> bool:
    """Whether all samples of a request have their token ids."""
    return bool(group.prompt_token_ids) and all(sample.token_ids for sample in group.samples)
