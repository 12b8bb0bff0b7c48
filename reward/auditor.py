"""The audit: propose, check, vote. One path for training, for offline audits and for the evaluation.

    numbers of the response -> Proposer -> coverage -> Checker (n voters, one request) -> vote -> verdict

The Proposer sees the response and nothing else; the Checker sees the documents and the questions and nothing
else (paper section 2.2). Only questions that give away another claim's answer are put to the Checker in a
request of their own (`reward.grounding.blind_rounds`).

Whatever fails on the way (the sampler, an unusable Proposer, too few readable votes, a bound) gives the
outcome UNSCORED with its reason; the closed set of reasons is `reward.vote.Reason`. Errors of programming,
and cancellation, rise. Left out on purpose: time limits and caching, which belong to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from reward.config import AuditConfig, SamplingSettings
from reward.grounding import (
    Coverage,
    CoveredClaim,
    blind_rounds,
    cover,
    find_evidence,
    flatten,
    response_numbers,
)
from reward.numbers import Number, parse_number
from reward.parse import parse_answers, parse_claims
from reward.prompts import PromptSet
from reward.samplers import Message, Sampler, SamplerError
from reward.types import (
    Answer,
    AuditResult,
    ClaimVerdict,
    Document,
    Outcome,
    RagQuery,
    Role,
    SampleGroup,
    Trajectory,
    Verdict,
)
from reward.vote import Reason, judge, vote


class AuditFailure(Exception):
    """The audit could not be carried through, by no fault of the sampler; becomes an UNSCORED verdict."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Proposal:
    """The Proposer's best attempt."""

    coverage: Coverage
    num_malformed: int  # lines of it that could not be used
    group: SampleGroup


async def audit(
    query: RagQuery, response: str, *, sampler: Sampler, prompts: PromptSet, config: AuditConfig
) -> AuditResult:
    """Audits one response against the documents of its query.

    Args:
        query: The query and its documents.
        response: What the Solver answered.
        sampler: Where the Proposer's and the Checker's completions come from.
        prompts: The roles' prompts, as `load_prompts(config.prompts)` gives them.
        config: Voters, guards and rewards.

    Returns:
        The verdict; and, if the sampler gives token ids, the trajectory of the Proposer's attempt that was
        used and then one Checker trajectory a voter, in order (for several blind rounds, round after round).
    """
    num_numbers = 0
    try:
        check_bounds(query, response, config)
        numbers = response_numbers(response, query)
        num_numbers = len(numbers)
        if not numbers:
            return AuditResult(verdict=no_claims(query, config, prompt_digest=prompts.digest))
        proposal = await _propose(response, numbers, sampler=sampler, prompts=prompts, config=config)
        rounds = blind_rounds(proposal.coverage.claims)
        questions = [[covered.claim.question for covered in claims] for claims in rounds]
        groups = await _check(query.documents, questions, sampler=sampler, prompts=prompts, config=config)
    except (AuditFailure, SamplerError) as error:
        return AuditResult(verdict=_unscored(query, error, num_numbers, prompts.digest))
    claims = _votes(query.documents, rounds, groups, config)
    verdict = _verdict(query, proposal, claims, groups, config, num_numbers, prompts.digest)
    turns = [(Role.PROPOSER, proposal.group), *((Role.CHECKER, group) for group in groups)]
    return AuditResult(verdict=verdict, trajectories=tuple(t for turn in turns for t in _trajectories(*turn)))


def check_bounds(query: RagQuery, response: str, config: AuditConfig) -> None:
    """Refuses what is too long to audit; nothing is ever cut to fit.

    Raises:
        AuditFailure: with `response_too_long` or `documents_too_long`.
    """
    if len(response) > config.max_response_chars:
        detail = f"{len(response)} characters exceed max_response_chars: {config.max_response_chars}"
        raise AuditFailure(Reason.RESPONSE_TOO_LONG, detail)
    num_chars = sum(len(document.title) + len(document.text) for document in query.documents)
    if num_chars > config.max_documents_chars:
        detail = f"{num_chars} characters exceed max_documents_chars: {config.max_documents_chars}"
        raise AuditFailure(Reason.DOCUMENTS_TOO_LONG, detail)


def no_claims(query: RagQuery, config: AuditConfig, *, prompt_digest: str = "") -> Verdict:
    """The verdict on a response that holds no number to check."""
    return Verdict(
        id=query.id,
        outcome=Outcome.NO_CLAIMS,
        reward=config.reward_no_claims,
        reason=Reason.NO_NUMBERS,
        prompt_digest=prompt_digest,
    )


async def _propose(
    response: str, numbers: Sequence[Number], *, sampler: Sampler, prompts: PromptSet, config: AuditConfig
) -> Proposal:
    """Samples claims until every number is covered or no retry is left; keeps the best-covered attempt."""
    messages = prompts.proposer(response)
    best: Proposal | None = None
    problem = AuditFailure(Reason.PROPOSER_MALFORMED, "no attempt of the Proposer gave a usable claim")
    for _ in range(1 + config.proposer_retries):
        group = await _sample(sampler, messages, 1, config.proposer)
        if group.samples[0].finish_reason != "stop":
            continue
        parsed = parse_claims(group.samples[0].text, max_claims=config.max_claims)
        if parsed.too_many:
            problem = AuditFailure(
                Reason.TOO_MANY_CLAIMS, f"more claims than max_claims: {config.max_claims}"
            )
            continue
        coverage = cover(numbers, parsed.claims)
        if coverage.claims and (best is None or len(coverage.uncovered) < len(best.coverage.uncovered)):
            best = Proposal(coverage, parsed.num_malformed, group)
            if not coverage.uncovered:
                break
    if best is None:
        raise problem
    return best


async def _check(
    documents: Sequence[Document],
    questions: Sequence[Sequence[str]],
    *,
    sampler: Sampler,
    prompts: PromptSet,
    config: AuditConfig,
) -> list[SampleGroup]:
    """Asks all voters at once, one request a round; waits for all rounds before the first failure rises.

    Blind: it is given the questions of each round and neither the response nor a claim.
    """
    prompted = [prompts.checker(documents, asked) for asked in questions]
    requests = [_sample(sampler, messages, config.voters, config.checker) for messages in prompted]
    groups: list[SampleGroup] = []
    for result in await asyncio.gather(*requests, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        groups.append(result)
    return groups


async def _sample(
    sampler: Sampler, messages: Sequence[Message], n: int, settings: SamplingSettings
) -> SampleGroup:
    group = await sampler.sample(messages, n=n, settings=settings)
    if len(group.samples) != n:
        raise SamplerError(Reason.BAD_RESPONSE, f"asked for {n} completions, got {len(group.samples)}")
    return group


def _votes(
    documents: Sequence[Document],
    rounds: Sequence[Sequence[CoveredClaim]],
    groups: Sequence[SampleGroup],
    config: AuditConfig,
) -> list[ClaimVerdict]:
    """Each claim's verdict, in the order of the claims."""
    flat = flatten(documents)
    verdicts = []
    for claims, group in zip(rounds, groups, strict=True):
        read = [
            parse_answers(sample.text, len(claims), complete=sample.finish_reason == "stop")
            for sample in group.samples
        ]
        for place, covered in enumerate(claims):
            answers = [_with_evidence(answers[place], flat, config.verbatim_evidence) for answers in read]
            needed = config.num_valid_voters_needed
            verdicts.append(vote(covered.claim, answers, num_valid_needed=needed, number=covered.number))
    return sorted(verdicts, key=lambda verdict: verdict.claim.index)


def _with_evidence(answer: Answer | None, documents: Sequence[Document], required: bool) -> Answer | None:
    """The answer with the document that holds its evidence; "cannot answer" if one is required and none does.

    That it counts against the claim, and not as an unreadable vote, matters in training: an unreadable vote
    leaves the answer unscored, and a Checker that invents evidence would shield the Solver.
    """
    number = parse_number(answer.value) if answer is not None and answer.value is not None else None
    if answer is None or number is None:
        return answer
    document = find_evidence(answer.evidence, documents, number)
    if document is None and required:
        return answer.model_copy(update={"value": None})
    return answer.model_copy(update={"evidence_document": document})


def _verdict(
    query: RagQuery,
    proposal: Proposal,
    claims: Sequence[ClaimVerdict],
    groups: Sequence[SampleGroup],
    config: AuditConfig,
    num_numbers: int,
    prompt_digest: str,
) -> Verdict:
    coverage = proposal.coverage
    judgement = judge(claims, num_uncovered=len(coverage.uncovered), config=config)
    versions = [g.weights_version for g in (proposal.group, *groups) if g.weights_version is not None]
    unusable = (
        f"{proposal.num_malformed} lines of the Proposer were not used" if proposal.num_malformed else ""
    )
    return Verdict(
        id=query.id,
        outcome=judgement.outcome,
        reward=judgement.reward,
        reason=judgement.reason,
        detail=unusable,
        claims=tuple(claims),
        num_numbers=num_numbers,
        uncovered=coverage.uncovered,
        num_dropped_claims=coverage.num_dropped,
        num_voters=config.voters,
        weights_version=min(versions, default=None),
        prompt_digest=prompt_digest,
    )


def _unscored(
    query: RagQuery, error: AuditFailure | SamplerError, num_numbers: int, prompt_digest: str
) -> Verdict:
    return Verdict(
        id=query.id,
        outcome=Outcome.UNSCORED,
        reward=None,
        reason=error.reason,
        detail=error.detail,
        num_numbers=num_numbers,
        prompt_digest=prompt_digest,
    )


def _trajectories(role: Role, group: SampleGroup) -> list[Trajectory]:
    """One trajectory a sample; none at all unless the sampler gave every sample's token ids."""
    if not group.prompt_token_ids or not all(sample.token_ids for sample in group.samples):
        return []
    return [
        Trajectory(
            role=role,
            prompt_token_ids=group.prompt_token_ids,
            response_token_ids=sample.token_ids or (),
            logprobs=sample.logprobs,
            finish_reason=sample.finish_reason,
            weights_version=group.weights_version,
        )
        for sample in group.samples
    ]
