"""The audit: propose, check, vote. One path for training, for offline audits and for the evaluation.

    claims' kinds find what to check -> Proposer -> coverage -> Checker (n voters, one request) -> vote ->
    verdict

The Proposer sees the response and nothing else; the Checker sees the documents and the questions and nothing
else (paper section 2.2). Only questions that give away another claim's answer are put to the Checker in a
request of their own (`reward.judging.coverage.blind_rounds`), and documents that are too long for one prompt
are read in parts (`reward.roles.parts`). With `AuditConfig.thinking`, what a role wrote is what follows its
thought (`reward.roles.asking`).

Whatever fails on the way (the sampler, an unusable Proposer, too few readable votes, a bound) gives the
outcome UNSCORED with its reason; the closed set of reasons is `reward.judging.vote.Reason`. With
`AuditConfig.refute_without_claims` a Proposer that fails does not shelter what the documents refute: a lookup
then decides what it can; with `refute_by_lookup` one overrules voters who support what the documents do not
say. Errors of programming, and cancellation, rise. Left out on purpose: time limits and
caching, which belong to the server.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from reward import telemetry
from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target, num_atoms
from reward.config import AuditConfig
from reward.judging.coverage import Coverage, CoveredClaim, blind_rounds, with_lookup
from reward.judging.query import decided_by_query, is_known_unanswerable
from reward.judging.unjudged import (
    AuditFailure,
    check_bounds,
    may_be_looked_up,
    no_claims,
    numbered,
    refuted_by_lookup,
    says_nothing,
    unscored,
)
from reward.judging.vote import Reason, judge
from reward.lexical import lexical_audit
from reward.roles.asking import Means, Observer
from reward.roles.checker import Round, ask_voters, claim_verdicts, gathered, trajectories
from reward.roles.prompts import PromptSet, load_prompts
from reward.roles.proposer import Proposal, propose
from reward.roles.reading import Read, read
from reward.samplers import Sampler, SamplerError
from reward.types import AuditResult, Outcome, RagQuery, Span, Verdict

DEFAULT_CONFIG: Final = AuditConfig()


async def audit(
    query: RagQuery,
    response: str,
    *,
    sampler: Sampler | None = None,
    prompts: PromptSet | None = None,
    config: AuditConfig = DEFAULT_CONFIG,
    observer: Observer | None = None,
) -> AuditResult:
    """Audits one response against the documents of its query.

    Args:
        query: The query and its documents.
        response: What the Solver wrote; the verdict's spans index all of it, thought included.
        sampler: Where the Proposer's and the Checker's completions come from; None for the lexical audit,
            which needs no model.
        prompts: The roles' prompts; by default the set that `config.prompts` names.
        config: Voters, guards and rewards.
        observer: Called after every request to the sampler, for metrics.

    Returns:
        The verdict; and, if the sampler gives token ids, the trajectory of the Proposer's attempt that was
        used and then one Checker trajectory a voter, in order (for several blind rounds, or several parts of
        long documents, one after the other).

    Raises:
        ValueError: the response is no text, or the prompts cannot be loaded.

    Example:
        query = RagQuery(id="1", query="How many came?", documents=(Document(id="a", text="50 came."),))
        verdict = asyncio.run(audit(query, "60 people came.")).verdict  # REFUTED
    """
    if not isinstance(response, str):
        raise ValueError(f"response: {response!r:.60} is no text; give what is to be audited")
    if sampler is None:
        return AuditResult(verdict=audit_by_lookup(query, response, config))
    means = Means(sampler, prompts or _prompts(config.prompts), config, observer)
    found = await asyncio.to_thread(read, query, response, config)
    result = await _by_model(query, response, found, means)
    # In a thread, since the numbers of all documents may be read.
    verdict = await asyncio.to_thread(decided_by_query, result.verdict, found.query, found.answer, config)
    return result if verdict is result.verdict else result.model_copy(update={"verdict": verdict})


def audit_by_lookup(query: RagQuery, response: str, config: AuditConfig = DEFAULT_CONFIG) -> Verdict:
    """The audit without a model, as `audit` does it without a sampler; for threads."""
    verdict = lexical_audit(query, response, config)
    found = read(query, response, config)
    return decided_by_query(verdict, found.query, found.answer, config)


async def _by_model(query: RagQuery, response: str, found: Read, means: Means) -> AuditResult:
    config = means.config
    result = await _audited(found.query, found.answer, means)
    verdict = found.place(result.verdict)
    if may_be_looked_up(verdict, config):
        looked_up = await asyncio.to_thread(lexical_audit, query, response, config)
        refuted = refuted_by_lookup(verdict, looked_up, config)
        if refuted is not verdict:  # without its turns: that is no voter's doing, and no Proposer's
            return AuditResult(verdict=refuted)
    return result.model_copy(update={"verdict": verdict})


async def _audited(query: RagQuery, response: str, means: Means) -> AuditResult:
    config, num_mentions = means.config, 0
    try:
        check_bounds(query, response, config)
        kinds = kinds_for(config, query, response)
        targets = targets_of(response, kinds)
        num_mentions = num_atoms(targets)
        if await asyncio.to_thread(says_nothing, query, response, targets):  # which may read a long query
            return AuditResult(verdict=no_claims(query, response, config, provenance=means.provenance))
        with telemetry.span("proposer"):
            proposal = await propose(response, targets, kinds, means=means)
        answer_alone = config.model_copy(update={"thinking": False})  # the thought was cut off already
        proposal = await _looked_up(query, response, proposal, answer_alone)
        return await _checked(query, proposal, means, num_mentions)
    except (AuditFailure, SamplerError) as error:
        return AuditResult(verdict=_failed(query, error, means, num_mentions))


async def _looked_up(query: RagQuery, response: str, proposal: Proposal, config: AuditConfig) -> Proposal:
    """The proposal, with what a lookup refutes by setting.

    Raises:
        AuditFailure: the lookup failed, so that what it would refute is not known.
    """
    if not config.refute_by_lookup:
        return proposal
    looked_at = config.model_copy(update={"kinds": config.refute_by_lookup})
    looked_up = await asyncio.to_thread(lexical_audit, query, response, looked_at)
    if looked_up.outcome is Outcome.UNSCORED:
        raise AuditFailure(Reason(looked_up.reason), looked_up.detail)
    return replace(proposal, coverage=with_lookup(proposal.coverage, looked_up.claims))


async def recheck(
    query: RagQuery,
    response: str,
    first: Verdict,
    *,
    sampler: Sampler,
    prompts: PromptSet | None = None,
    config: AuditConfig = DEFAULT_CONFIG,
) -> Verdict:
    """Puts the questions of an audit to another Checker: the same claims and documents, another consensus.

    The verdict is UNSCORED where this Checker failed, whatever the first one said. To compare the two, give
    the settings of the first audit.

    Raises:
        ValueError: `first` has no claims, or is about another response.
    """
    means, found = Means(sampler, prompts or _prompts(config.prompts), config), read(query, response, config)
    proposal = Proposal(_coverage_of(first, found, config), first.num_malformed_claims, None)
    try:
        answer_alone = config.model_copy(update={"thinking": False})
        proposal = await _looked_up(found.query, found.answer, proposal, answer_alone)
        return found.place((await _checked(found.query, proposal, means, first.num_mentions)).verdict)
    except (AuditFailure, SamplerError) as error:
        return _failed(query, error, means, first.num_mentions)


@lru_cache(maxsize=8)
def _prompts(name_or_path: str) -> PromptSet:
    return load_prompts(name_or_path)


def _failed(query: RagQuery, error: AuditFailure | SamplerError, means: Means, num_mentions: int) -> Verdict:
    return unscored(query, error, num_mentions=num_mentions, provenance=means.provenance)


async def _checked(query: RagQuery, proposal: Proposal, means: Means, num_mentions: int) -> AuditResult:
    """Asks the voters about the claims and takes their consensus.

    Raises:
        AuditFailure, SamplerError: the voters could not be asked.
    """
    config = means.config
    asked = blind_rounds(proposal.coverage.claims)
    with telemetry.span("checker", {"march.num_rounds": len(asked)}):
        rounds = await gathered([ask_voters(query.documents, claims, means) for claims in asked])
    with telemetry.span("vote", {"march.num_voters": config.voters}) as span:
        verdict = _verdict(query, proposal, rounds, means, num_mentions)
        telemetry.record_verdict(span, verdict)
    turns = trajectories(proposal.group, rounds, config, unanswerable=is_known_unanswerable(query, config))
    return AuditResult(verdict=verdict, trajectories=turns)


def _verdict(
    query: RagQuery, proposal: Proposal, rounds: Sequence[Round], means: Means, num_mentions: int
) -> Verdict:
    coverage = proposal.coverage
    voted = [verdict for one in rounds for verdict in claim_verdicts(one, means.config, of_all=True)]
    voted.sort(key=lambda verdict: verdict.claim.index)
    claims = numbered([*voted, *coverage.refuted])
    num_uncovered = len(coverage.uncovered)
    judgement = judge(claims, num_uncovered=num_uncovered, config=means.config, num_mentions=num_mentions)
    groups = [proposal.group, *(group for one in rounds for group in one.groups)]
    versions = [one.weights_version for one in groups if one and one.weights_version is not None]
    return Verdict(
        id=query.id,
        **judgement._asdict(),
        claims=claims,
        num_mentions=num_mentions,
        uncovered=coverage.uncovered,
        num_dropped_claims=coverage.num_dropped,
        num_malformed_claims=proposal.num_malformed,
        unread=tuple(dict.fromkeys(span for one in rounds for span in one.unread)),
        num_voters=max(len(one.votes) for one in rounds),
        weights_version=min(versions, default=None),
        provenance=means.provenance,
    )


def _coverage_of(first: Verdict, found: Read, config: AuditConfig) -> Coverage:
    """What the claims of an earlier verdict cover: each has the span of its number."""
    targets = targets_of(found.answer, kinds_for(config, found.query, found.answer))
    together = [one for target in targets for one in [*target.parts, target]]
    read_spans = {found.span(span): span for span in map(_span_of, together)}
    by_span = {(one.kind.name, found.span(_span_of(one))): one for one in together}
    asked = [one.claim for one in first.voted_claims]
    spans = [(claim.kind, claim.span) if claim.span else None for claim in asked]
    if not spans or any(span not in by_span for span in spans):
        raise ValueError("first: has no claims, or claims about what this response does not say")
    about = [by_span[span] for span in spans if span]
    claims = [
        CoveredClaim(claim.model_copy(update={"span": _span_of(target)}), target)
        for claim, target in zip(asked, about, strict=True)
    ]
    uncovered = tuple(read_spans.get(span, span) for span in first.uncovered)
    return Coverage(tuple(claims), uncovered, first.num_dropped_claims)


def _span_of(target: Target) -> Span:
    return Span(start=target.start, end=target.end)
