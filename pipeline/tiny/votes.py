"""The Checker by itself: the asked questions put to the voters, and their votes held against the truth.

Numbers are compared by the audit's own vote, so that it decides what equals what. A name or a day is right
where it is written as the documents write it, and "Cannot answer" where they hold no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reward.roles.parse import parse_answers

from pipeline.tiny.facts import Fact
from pipeline.tiny.world import World
from reward.config import AuditConfig
from reward.judging.vote import CANNOT_ANSWER, vote
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.types import Answer, Claim, ClaimState, Sample

UNANSWERABLE = "unanswerable"  # beside the kinds: a question that no document answers
_LINE = re.compile(r"^(\d)\. Evidence: .* \[Answer: (.+)\]$", re.MULTILINE)


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
    messages = prompts.checker(world.query.documents, [fact.question() for fact in world.asked])
    group = await sampler.sample(messages, n=config.voters, settings=config.checker)
    lines = [read_lines(sample.text) for sample in group.samples]
    checked = []
    for i, fact in enumerate(world.asked, 1):
        if fact.kind == "number" and world.is_answerable:
            checked.append(_numbers_checked(i, fact, len(world.asked), group.samples, config))
        else:
            truth = str(world.truth.get(fact.key, CANNOT_ANSWER))
            kind = fact.kind if world.is_answerable else UNANSWERABLE
            checked.append(_texts_checked(kind, truth, [one.get(i) for one in lines], config))
    return checked


def read_lines(check: str) -> Mapping[int, str]:
    """What the well-formed lines of a check answer, by their number."""
    return {int(number): answer for number, answer in _LINE.findall(check)}


def _numbers_checked(
    index: int, fact: Fact, num_asked: int, samples: Sequence[Sample], config: AuditConfig
) -> CheckedQuestion:
    """A true claim that the voters support is a question that they answered right."""
    claim = Claim(index=index, question=fact.question(), answer=str(fact.value))
    ballot = [
        parse_answers(sample.text, num_asked, complete=sample.finish_reason == "stop")[index - 1]
        for sample in samples
    ]

    def is_right(answers: Sequence[Answer | None], needed: int) -> bool:
        return vote(claim, answers, num_valid_needed=needed).state is ClaimState.SUPPORTED

    together = is_right(ballot, config.num_valid_voters_needed)
    return CheckedQuestion(fact.kind, sum(is_right([answer], 1) for answer in ballot), together)


def _texts_checked(
    kind: str, truth: str, ballot: Sequence[str | None], config: AuditConfig
) -> CheckedQuestion:
    """The consensus is right where more than half of the readable votes are, and enough can be read."""
    readable = [answer for answer in ballot if answer is not None]
    right = readable.count(truth)
    is_valid = len(readable) >= config.num_valid_voters_needed
    return CheckedQuestion(kind, right, is_valid and 2 * right > len(readable))
