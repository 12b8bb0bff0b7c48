"""The Proposer's step: claims for what a response says, which is all that it sees (paper section 2.2).

A question that gives its answer away is not asked, and what it asks about stays uncovered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reward.claims.kind import ClaimKind, Target, num_atoms
from reward.claims.letters import seen
from reward.config import Structured
from reward.judging.coverage import Coverage, cover
from reward.judging.unjudged import AuditFailure
from reward.judging.vote import Reason
from reward.roles.asking import Means, answer_of
from reward.roles.formats import (
    ParsedClaims,
    normal_question,
    parse_claims,
    proposer_pattern,
    quoted_questions,
)
from reward.types import Role, SampleGroup


@dataclass(frozen=True)
class Proposal:
    """The claims that are asked about."""

    coverage: Coverage
    num_malformed: int  # lines of the Proposer that could not be used
    group: SampleGroup | None  # the attempt that was used; None when the claims are of an earlier verdict


async def propose(
    response: str, targets: Sequence[Target], kinds: Mapping[str, ClaimKind], *, means: Means
) -> Proposal:
    """Samples claims until every mention is covered or no retry is left; keeps the best-covered attempt.

    The response comes without the Solver's thought.

    Raises:
        AuditFailure: there are too many claims, or none that can be used.
        SamplerError: the sampler failed.
    """
    config, problem = means.config, Reason.PROPOSER_MALFORMED
    least = min(config.min_claims, num_atoms(targets))
    messages = means.prompts.proposer(response, min_questions=least, kinds=config.kinds)
    free = config.structured is Structured.NONE
    pattern = None if free else proposer_pattern(config.max_claims, config.kinds)
    best = Proposal(cover(response, targets, ()), 0, None)
    for attempt in range(1 + config.proposer_retries):
        group = await means.ask(Role.PROPOSER, messages, n=1, attempt=attempt, pattern=pattern)
        if group.samples[0].finish_reason != "stop":
            continue  # a list that was cut is no list
        # In plain letters: others would hide in a question the value that it must not give away.
        written = seen(answer_of(group.samples[0].text, config)).text
        parsed = parse_claims(written, max_claims=config.max_claims, kinds=kinds)
        if parsed.too_many:
            problem = Reason.TOO_MANY_CLAIMS
            continue
        proposal = _proposal(response, targets, parsed, group)
        if len(proposal.coverage.uncovered) < len(best.coverage.uncovered):
            best = proposal
        if not best.coverage.uncovered:
            return best
    if not best.coverage.claims:
        too_many = f"more claims than max_claims: {config.max_claims}"
        unusable = "no attempt of the Proposer gave a usable claim"
        raise AuditFailure(problem, too_many if problem is Reason.TOO_MANY_CLAIMS else unusable)
    return best


def _proposal(response: str, targets: Sequence[Target], parsed: ParsedClaims, group: SampleGroup) -> Proposal:
    """What one attempt covers; of two claims with one question the first counts, since one vote answers both.

    A claim that the response wrote about itself does not count.
    """
    asked, claims = quoted_questions(response), []
    for claim in parsed.claims:
        question = normal_question(claim.question)
        if question not in asked:
            asked.add(question)
            claims.append(claim)
    num_malformed = parsed.num_malformed + len(parsed.claims) - len(claims)
    coverage = cover(response, targets, claims)
    shown = [one for one in coverage.claims if one.kind.gives_away(one.claim.question, one.target.mention)]
    if shown:  # the bracket alone did not show it: "the 5000 m road" shows the 5 of "5 km"
        refused = {one.claim.question for one in shown}
        claims = [claim for claim in claims if claim.question not in refused]
        coverage, num_malformed = cover(response, targets, claims), num_malformed + len(shown)
    return Proposal(coverage, num_malformed, group)
