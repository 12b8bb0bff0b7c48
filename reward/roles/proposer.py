"""The Proposer's step: claims for the numbers of a response, which is all it sees (paper section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reward.claims.numbers import Number
from reward.config import Structured, UncoveredPolicy
from reward.judging.bounds import AuditFailure
from reward.judging.coverage import Coverage, cover, num_atoms
from reward.judging.vote import Reason
from reward.roles.asking import Means
from reward.roles.parse import ParsedClaims, normal_question, parse_claims, quoted_questions
from reward.roles.patterns import proposer_pattern
from reward.roles.template import with_templates
from reward.roles.thought import answer_of
from reward.types import Role, SampleGroup

_DETAILS = {
    Reason.PROPOSER_MALFORMED: "no attempt of the Proposer gave a usable claim",
    Reason.TOO_MANY_CLAIMS: "more claims than max_claims: {max_claims}",
}


@dataclass(frozen=True)
class Proposal:
    """The claims that are asked about."""

    coverage: Coverage
    num_malformed: int  # lines of the Proposer that could not be used
    group: SampleGroup | None  # the attempt that was used; None when all claims are from templates


async def propose(response: str, numbers: Sequence[Number], *, means: Means) -> Proposal:
    """Samples claims until every number is covered or no retry is left; keeps the best-covered attempt.

    Args:
        response: What is audited, without the Solver's thought.
        numbers: Its numbers that must be checked.
        means: The sampler, the prompts and the settings.

    Raises:
        AuditFailure: there are too many claims, or none that can be used.
        SamplerError: the sampler failed.
    """
    config, problem = means.config, Reason.PROPOSER_MALFORMED
    messages = means.prompts.proposer(response, min_questions=min(config.min_claims, num_atoms(numbers)))
    pattern = None if config.structured is Structured.NONE else proposer_pattern(config.max_claims)
    best = Proposal(cover(numbers, ()), 0, None)
    for attempt in range(1 + config.proposer_retries):
        group = await means.ask(Role.PROPOSER, messages, n=1, attempt=attempt, pattern=pattern)
        if group.samples[0].finish_reason != "stop":
            continue  # a list that was cut is no list
        parsed = parse_claims(answer_of(group.samples[0].text, config), max_claims=config.max_claims)
        if parsed.too_many:
            problem = Reason.TOO_MANY_CLAIMS
            continue
        proposal = _proposal(response, numbers, parsed, group)
        if len(proposal.coverage.uncovered) < len(best.coverage.uncovered):
            best = proposal
        if not best.coverage.uncovered:
            return best
    if config.uncovered is UncoveredPolicy.TEMPLATE:
        best = replace(best, coverage=with_templates(response, numbers, best.coverage, config.max_claims))
        problem = Reason.TOO_MANY_CLAIMS if len(best.coverage.claims) > config.max_claims else problem
    if not 1 <= len(best.coverage.claims) <= config.max_claims:
        raise AuditFailure(problem, _DETAILS[problem].format(max_claims=config.max_claims))
    return best


def _proposal(response: str, numbers: Sequence[Number], parsed: ParsedClaims, group: SampleGroup) -> Proposal:
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
    return Proposal(cover(numbers, claims), num_malformed, group)
