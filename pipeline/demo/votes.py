"""The Checker by itself: the asked questions put to the voters, and their votes held against the truth.

A true claim that the voters support is a question that they answered right, so the audit's own vote decides
what equals what; where no document answers, the right votes are "Cannot answer".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.worlds.world import Asked, WorldRow
from reward.config import AuditConfig
from reward.judging.vote import vote
from reward.provenance import seeded
from reward.roles.asking import answer_of
from reward.roles.formats import parse_answers
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.types import Answer, Claim, ClaimState, Role

UNANSWERABLE = "unanswerable"  # beside the kinds: a question that no document answers


@dataclass(frozen=True)
class CheckedQuestion:
    """One asked question and how many votes on it are right."""

    kind: str  # of the fact, or UNANSWERABLE
    num_right: int
    is_consensus_right: bool


async def ask_checker(
    row: WorldRow, sampler: Sampler, prompts: PromptSet, config: AuditConfig, *, num_votes: int
) -> list[CheckedQuestion]:
    """Asks `num_votes` voters about all that a query asks for at once."""
    questions = [one.question for one in row.asked]
    messages = prompts.checker(row.query.documents, questions, kinds=config.kinds)
    settings = seeded(config.checker, messages, seed=config.seed, role=Role.CHECKER, attempt=0)
    group = await sampler.sample(messages, n=num_votes, settings=settings)
    read = [
        parse_answers(answer_of(sample.text, config), len(questions), complete=sample.finish_reason == "stop")
        for sample in group.samples
    ]
    needed = min(config.num_valid_voters_needed, num_votes)
    return [
        _checked(one, i, [answers[i - 1] for answers in read], needed) for i, one in enumerate(row.asked, 1)
    ]


def _checked(asked: Asked, index: int, ballot: Sequence[Answer | None], needed: int) -> CheckedQuestion:
    if asked.value is None:
        says_so = [one is not None and one.value is None for one in ballot]
        valid = sum(one is not None for one in ballot)
        together = valid >= needed and sum(says_so) * 2 > valid
        return CheckedQuestion(UNANSWERABLE, sum(says_so), together)
    claim = Claim(index=index, kind=asked.kind, question=asked.question, answer=asked.value)
    singles = [vote(claim, [answer], num_valid_needed=1) for answer in ballot]
    consensus = vote(claim, ballot, num_valid_needed=needed)
    return CheckedQuestion(
        kind=asked.kind,
        num_right=sum(one.state is ClaimState.SUPPORTED for one in singles),
        is_consensus_right=consensus.state is ClaimState.SUPPORTED,
    )
