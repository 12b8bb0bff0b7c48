"""The Checker's step: several voters answer questions from the documents (paper section 2.2).

Blind by construction: `check`, which makes the prompt, is given documents and questions, and neither the
response nor a claim. Documents that are too long for one prompt are read in parts, each part by all voters.
`ask_voters` knows the claims: it reads the answers by their kinds, brings together what one voter says of the
parts, and finds the evidence.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from reward.claims.letters import seen
from reward.config import AuditConfig, Structured
from reward.judging.coverage import CoveredClaim
from reward.judging.evidence import place_evidence
from reward.judging.query import voter_reward
from reward.judging.unjudged import AuditFailure
from reward.judging.vote import UNREAD_NOTE, Reason, gives_majority, is_decided, judge, read_vote, vote
from reward.roles.asking import Means, OwnRewards, answer_of, has_tokens, turns
from reward.roles.formats import checker_pattern, parse_answers
from reward.roles.parts import Parts, split_documents
from reward.types import (
    Answer,
    ClaimState,
    ClaimVerdict,
    Document,
    DocumentSpan,
    Role,
    Sample,
    SampleGroup,
    Trajectory,
)

_MOST_CHARS_A_TOKEN = 16  # longer texts are taken not to fit without counting; real tokens are far shorter
T = TypeVar("T")


async def plan_parts(documents: Sequence[Document], questions: Sequence[str], *, means: Means) -> Parts:
    """The documents in parts that each fit into a prompt with all questions; one part without a limit.

    Raises:
        AuditFailure: the questions alone exceed the limit, or leave no room for any text.
        SamplerError: the sampler could not count tokens.
    """
    limit = means.config.max_prompt_tokens
    if limit is None:
        return Parts((tuple(documents),))

    async def fits(some: Sequence[Document]) -> bool:
        messages = means.prompts.checker(some, questions, kinds=means.config.kinds)
        return await means.sampler.count_tokens(messages) <= limit

    if not await fits([documents[0].model_copy(update={"title": "", "text": ""})]):
        detail = f"{len(questions)} questions alone exceed max_prompt_tokens: {limit}"
        raise AuditFailure(Reason.PROMPT_TOO_LONG, detail)
    max_chars = _MOST_CHARS_A_TOKEN * limit
    parts = await split_documents(documents, fits=fits, max_parts=means.config.max_parts, max_chars=max_chars)
    if not parts.parts:
        detail = f"max_prompt_tokens: {limit} leaves no room for any text of the documents"
        raise AuditFailure(Reason.PROMPT_TOO_LONG, detail)
    return parts


async def check(
    parts: Parts, questions: Sequence[str], *, n: int, attempt: int, means: Means
) -> list[SampleGroup]:
    """Puts the questions to `n` voters, one request a part; all requests end before a failure rises.

    Raises:
        SamplerError: a request failed.
    """
    config = means.config
    is_bound = config.structured is Structured.ALL
    pattern = checker_pattern(len(questions), config.kinds) if is_bound else None
    prompted = [means.prompts.checker(part, questions, kinds=config.kinds) for part in parts.parts]
    return await gathered(
        [means.ask(Role.CHECKER, messages, n=n, attempt=attempt, pattern=pattern) for messages in prompted]
    )


async def gathered(works: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """The results in order; waits for all of them before the first failure rises."""
    if len(works) == 1:  # mostly; a task of its own would cost more than the rest of this step
        return [await works[0]]
    results: list[T] = []
    for result in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


@dataclass(frozen=True)
class Round:
    """Claims that were asked about together, and what the voters said."""

    claims: tuple[CoveredClaim, ...]
    votes: tuple[tuple[Answer | None, ...], ...]  # (V, Q): one row a voter, one entry a claim
    groups: tuple[SampleGroup, ...]
    first_voters: tuple[int, ...]  # (G,): for each group, the row of votes that its first sample brought
    unread: tuple[DocumentSpan, ...]


async def ask_voters(documents: Sequence[Document], claims: Sequence[CoveredClaim], means: Means) -> Round:
    """Asks the voters about claims; with early stop the last ones only while a claim is undecided."""
    config = means.config
    questions = [covered.claim.question for covered in claims]
    parts = await plan_parts(documents, questions, means=means)
    votes: list[tuple[Answer | None, ...]] = []
    groups: list[SampleGroup] = []
    first_voters: list[int] = []

    @cache  # voters often agree word for word
    def located(place: int, answer: Answer | None) -> Answer | None:
        """The answer with the place of its evidence."""
        covered = claims[place]
        mention = read_vote(answer, covered.target) if answer is not None else None
        if answer is None or mention is None:
            return answer
        return place_evidence(answer, covered.kind, mention, documents, required=config.verbatim_evidence)

    for attempt, n in enumerate((config.num_first_voters, config.voters - config.num_first_voters)):
        if not n or (attempt and _all_decided(claims, votes, config)):
            break
        answered = await check(parts, questions, n=n, attempt=attempt, means=means)
        first_voters += [len(votes)] * len(answered)
        for voter in range(n):
            by_part = [_answers(group.samples[voter], len(claims), config) for group in answered]
            by_claim = zip(zip(*by_part, strict=True), claims, strict=True)
            merged = [merged_parts(answers, covered) for answers, covered in by_claim]
            votes.append(tuple(located(place, answer) for place, answer in enumerate(merged)))
        groups += answered
    return Round(tuple(claims), tuple(votes), tuple(groups), tuple(first_voters), parts.unread)


def _answers(sample: Sample, num_questions: int, config: AuditConfig) -> list[Answer | None]:
    text = seen(answer_of(sample.text, config)).text  # as the documents, which it quotes, are read
    return parse_answers(text, num_questions, complete=sample.finish_reason == "stop")


def merged_parts(parts: Sequence[Answer | None], covered: CoveredClaim) -> Answer | None:
    """One voter's answer to one question over all parts of the documents.

    The one answer that was given; "cannot answer" when all parts say so; else None, an unreadable vote: two
    parts gave different answers, no part gave one and not all could be read, or it is not of the claim's
    kind.
    """
    given = [answer for answer in parts if answer is not None and answer.value is not None]
    if not given:
        return parts[0] if None not in parts else None
    read = [read_vote(answer, covered.target) for answer in given]
    if any(one is None or not covered.kind.equal(read[0], one) for one in read):
        return None
    return given[0]


def _all_decided(
    claims: Sequence[CoveredClaim], votes: Sequence[Sequence[Answer | None]], config: AuditConfig
) -> bool:
    return all(
        is_decided(
            covered.claim,
            [row[place] for row in votes],
            num_outstanding=config.voters - len(votes),
            num_valid_needed=config.num_valid_voters_needed,
            target=covered.target,
        )
        for place, covered in enumerate(claims)
    )


def claim_verdicts(one: Round, config: AuditConfig, *, of_all: bool = False) -> list[ClaimVerdict]:
    """The verdict on each claim; what not all documents were read for is not known to be in none.

    Of all voters together, what a lookup refutes is refuted where too few votes can be read, too. A lone
    voter's failure stays one.
    """
    return [_refuted(one, _voted(one, place, config), place, of_all) for place in range(len(one.claims))]


def _voted(one: Round, place: int, config: AuditConfig) -> ClaimVerdict:
    covered = one.claims[place]
    verdict = vote(
        covered.claim,
        [row[place] for row in one.votes],
        num_valid_needed=config.num_valid_voters_needed,
        target=covered.target,
        relative_tolerance=config.relative_tolerance,
    )
    if verdict.state is ClaimState.NOT_IN_DOCUMENTS and one.unread:
        return verdict.model_copy(update={"state": ClaimState.FAILED, "note": UNREAD_NOTE})
    return verdict


def _refuted(one: Round, verdict: ClaimVerdict, place: int, of_all: bool) -> ClaimVerdict:
    """The verdict, or that of the lookup where it refutes what the voters support, or could not judge."""
    refuted = one.claims[place].refuted
    overruled = (ClaimState.SUPPORTED, ClaimState.FAILED) if of_all else (ClaimState.SUPPORTED,)
    if refuted is None or verdict.state not in overruled:
        return verdict
    said = "the voters agree" if verdict.state is ClaimState.SUPPORTED else "too few votes can be read"
    note = f"{said}; a lookup refutes it{refuted.note and f': {refuted.note}'}"
    return verdict.model_copy(update={"state": refuted.state, "consensus": refuted.consensus, "note": note})


def own_rewards(one: Round, config: AuditConfig, *, unanswerable: bool = False) -> list[OwnRewards]:
    """(V,) for each voter: the reward of the round's claims, and of each claim, by its votes alone.

    Where the query is known to be unanswerable, that of `reward.judging.query.voter_reward`.

    None where a lone voter would leave them UNSCORED: it wrote nothing readable, or could not read it all.

    A voter that gives the answer by which all voters together contradict a claim is not known to be wrong,
    nor is one that does not support what a lookup refutes: its `undisputed` reward is that of the other
    claims.
    """
    alone = config.model_copy(update={"voters": 1, "min_valid_voters": None})

    def rewarded(claims: Sequence[ClaimVerdict]) -> float | None:
        if unanswerable:
            return voter_reward(claims, alone)
        return judge(claims, num_uncovered=0, config=alone).reward

    disputing = _disputing(one, config, alone)
    own = []
    for voter, row in enumerate(one.votes):
        mine = replace(one, votes=(row,))
        claims = claim_verdicts(mine, alone)
        if unanswerable:  # as it votes: an answer that a lookup refutes is no "cannot answer"
            claims = [_voted(mine, place, alone) for place in range(len(one.claims))]
        left = [claim for place, claim in enumerate(claims) if unanswerable or voter not in disputing[place]]
        reward = rewarded(claims)
        undisputed = reward if len(left) == len(claims) else rewarded(left) if left else None
        own.append(OwnRewards(reward, undisputed, tuple(rewarded([claim]) for claim in claims)))
    return own


def _disputing(one: Round, config: AuditConfig, alone: AuditConfig) -> list[set[int]]:
    """(Q,) for each claim, who gives the answer by which all voters together contradict it, and who does not
    support what a lookup refutes; `alone` are the settings of one voter.
    """
    other = (ClaimState.CONTRADICTED, ClaimState.NOT_IN_DOCUMENTS)
    voters: list[set[int]] = []
    for place, covered in enumerate(one.claims):
        disputes = [False] * len(one.votes)
        if covered.refuted is not None:
            disputes = [_voted(replace(one, votes=(row,)), place, alone).state in other for row in one.votes]
        elif _voted(one, place, config).state is ClaimState.CONTRADICTED:
            disputes = gives_majority([row[place] for row in one.votes], covered.target)
        voters.append({voter for voter, is_disputing in enumerate(disputes) if is_disputing})
    return voters


def trajectories(
    proposed: SampleGroup | None, rounds: Sequence[Round], config: AuditConfig, *, unanswerable: bool = False
) -> tuple[Trajectory, ...]:
    """The Proposer's turn that was used, if any, then the Checker's by round, part and voter.

    A request's turns are left out unless the sampler gave the token ids of all its samples.
    """
    taken = turns(Role.PROPOSER, proposed, [OwnRewards()] * len(proposed.samples)) if proposed else []
    for one in rounds:
        if not any(map(has_tokens, one.groups)):
            continue
        rewards = own_rewards(one, config, unanswerable=unanswerable)
        for group, first in zip(one.groups, one.first_voters, strict=True):
            own = rewards[first : first + len(group.samples)]
            pairs = zip(group.samples, own, strict=True)
            own = [_of_turn(sample, rest, one.claims, config) for sample, rest in pairs]
            taken += turns(Role.CHECKER, group, own)
    return tuple(taken)


def _of_turn(
    sample: Sample, rewards: OwnRewards, claims: Sequence[CoveredClaim], config: AuditConfig
) -> OwnRewards:
    """A turn's rewards; those of a refuted one if it ended by itself without an answer to each question.

    "[Answer: unknown]" is none: no kind of claim can read it, and "Cannot answer" is there to be written.
    """
    if sample.finish_reason != "stop" or not config.refute_unreadable:
        return rewards
    answers = zip(_answers(sample, len(claims), config), claims, strict=True)
    if all(
        answer and (answer.value is None or read_vote(answer, covered.target) is not None)
        for answer, covered in answers
    ):
        return rewards
    refuted = config.reward_refuted
    return replace(rewards, reward=refuted, undisputed=refuted, unreadable=True)
