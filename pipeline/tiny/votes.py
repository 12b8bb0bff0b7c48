"""The Checker by itself: the asked questions put to the voters, and their votes held against the truth.

A true claim that the voters support is a question that they answered right, so the audit's own vote decides
what equals what; where no document answers, the right votes are "Cannot answer".
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.tiny.world import World
from reward.config import AuditConfig
from reward.judging.vote import vote
from reward.roles.formats import parse_answers
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.types import Claim, ClaimState

UNANSWERABLE = "unanswerable"  # beside the kinds: a question that no document answers


@dataclass(frozen=True)
class CheckedQuestion:
    """One asked question and how many votes on it are right."""

    kind: str  # of the fact, or UNANSWERABLE
    num_right: int
    is_consensus_right: bool


async def ask_checker(
    world: World, sampler: Sampler, prompts: PromptSet, config: AuditConfig
) -> list[CheckedQuestion]:
    """Asks all voters about all items of a query at once."""
    claims = [
        Claim(index=i, kind=fact.kind, question=fact.question(), answer=str(fact.value))
        for i, fact in enumerate(world.asked, 1)
    ]
    questions = [claim.question for claim in claims]
    messages = prompts.checker(world.query.documents, questions, kinds=config.kinds)
    group = await sampler.sample(messages, n=config.voters, settings=config.checker)
    read = [
        parse_answers(sample.text, len(claims), complete=sample.finish_reason == "stop")
        for sample in group.samples
    ]
    expected = ClaimState.SUPPORTED if world.is_answerable else ClaimState.NOT_IN_DOCUMENTS
    needed = config.num_valid_voters_needed
    checked = []
    for place, claim in enumerate(claims):
        ballot = [answers[place] for answers in read]
        singles = [vote(claim, [answer], num_valid_needed=1) for answer in ballot]
        together = vote(claim, ballot, num_valid_needed=needed)
        checked.append(
            CheckedQuestion(
                kind=claim.kind if world.is_answerable else UNANSWERABLE,
                num_right=sum(verdict.state is expected for verdict in singles),
                is_consensus_right=together.state is expected,
            )
        )
    return checked
