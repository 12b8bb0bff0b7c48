"""The voters on the claims: what each one answered, with the place of its evidence, and what follows a claim.

The claims are known here, and the Checker's step (`reward.roles.checker`) is given their questions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from reward.claims.numbers import parse_number
from reward.config import AuditConfig
from reward.judging.coverage import CoveredClaim
from reward.judging.evidence import Source, place_evidence
from reward.judging.vote import is_decided, judge, vote
from reward.roles.asking import Means
from reward.roles.checker import check, plan_parts
from reward.types import Answer, ClaimState, ClaimVerdict, Document, DocumentSpan, SampleGroup

UNREAD_NOTE = "cannot be answered from what was read, and some of the documents was not read"


@dataclass(frozen=True)
class Round:
    """Claims that were asked about together, and what the voters said."""

    claims: tuple[CoveredClaim, ...]
    votes: tuple[tuple[Answer | None, ...], ...]  # (V, Q): one row a voter, one entry a claim
    groups: tuple[SampleGroup, ...]
    first_voters: tuple[int, ...]  # (G,): for each group, the row of votes that its first sample brought
    unread: tuple[DocumentSpan, ...]


async def hear(
    documents: Sequence[Document], claims: Sequence[CoveredClaim], within: Sequence[Source], means: Means
) -> Round:
    """Asks the voters about claims; with early stop the last ones only while a claim is undecided."""
    config = means.config
    questions = [covered.claim.question for covered in claims]
    parts = await plan_parts(documents, questions, means=means)
    votes: list[tuple[Answer | None, ...]] = []
    groups: list[SampleGroup] = []
    first_voters: list[int] = []
    located = cache(partial(_located, within=within, config=config))  # voters often agree word for word
    for attempt, n in enumerate((config.num_first_voters, config.voters - config.num_first_voters)):
        if not n or (attempt and _all_decided(claims, votes, config)):
            break
        reading = await check(parts, questions, n=n, attempt=attempt, means=means)
        first_voters += [len(votes)] * len(reading.groups)
        votes += [tuple(map(located, row)) for row in reading.answers]
        groups += reading.groups
    return Round(tuple(claims), tuple(votes), tuple(groups), tuple(first_voters), parts.unread)


def _located(answer: Answer | None, within: Sequence[Source], config: AuditConfig) -> Answer | None:
    """The answer with the place of its evidence."""
    number = parse_number(answer.value) if answer is not None and answer.value is not None else None
    if answer is None or number is None:
        return answer
    return place_evidence(answer, number, within, required=config.verbatim_evidence)


def _all_decided(
    claims: Sequence[CoveredClaim], votes: Sequence[Sequence[Answer | None]], config: AuditConfig
) -> bool:
    return all(
        is_decided(
            covered.claim,
            [row[place] for row in votes],
            num_outstanding=config.voters - len(votes),
            num_valid_needed=config.num_valid_voters_needed,
            number=covered.number,
        )
        for place, covered in enumerate(claims)
    )


def claim_verdicts(one: Round, documents: Sequence[Document], config: AuditConfig) -> list[ClaimVerdict]:
    """The verdict on each claim; what not all documents were read for is not known to stand in none."""
    verdicts = []
    for place, covered in enumerate(one.claims):
        verdict = vote(
            covered.claim,
            [row[place] for row in one.votes],
            num_valid_needed=config.num_valid_voters_needed,
            number=covered.number,
            relative_tolerance=config.relative_tolerance,
            documents=documents,
        )
        if verdict.state is ClaimState.NOT_IN_DOCUMENTS and one.unread:
            verdict = verdict.model_copy(update={"state": ClaimState.FAILED, "note": UNREAD_NOTE})
        verdicts.append(verdict)
    return verdicts


def own_rewards(one: Round, config: AuditConfig) -> list[float | None]:
    """(V,) for each voter: the reward of the round's claims by its votes alone.

    None where a lone voter would leave them UNSCORED: it wrote nothing readable, or could not read it all.
    """
    alone = config.model_copy(update={"voters": 1, "min_valid_voters": None})
    rewards = []
    for row in one.votes:
        claims = claim_verdicts(replace(one, votes=(row,)), (), alone)
        is_unread = any(claim.note == UNREAD_NOTE for claim in claims)
        rewards.append(judge(claims, num_uncovered=0, config=alone, any_unread=is_unread).reward)
    return rewards


def unread_spans(rounds: Sequence[Round]) -> tuple[DocumentSpan, ...]:
    """What was unread in some round, without doubles."""
    spans = {(span.document, span.start, span.end): span for one in rounds for span in one.unread}
    return tuple(spans.values())
