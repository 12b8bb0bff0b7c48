"""The Proposer's step: claims for what a response says, which is all that it sees (paper section 2.2).

By setting, what no Proposer asked about is asked about by a template: the mention's own sentence with a mark
in its place. The Checker is shown a sentence of the response then, but no number of it, and not the mention
itself, in any writing: it must find in the documents what belongs at the mark. A question that would still
give its answer away is not asked, and the mention stays uncovered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from reward.claims.kind import ClaimKind, Mention, Target, num_atoms
from reward.claims.numbers.unread import all_numbers
from reward.claims.text import sentence_span
from reward.config import Structured, UncoveredPolicy
from reward.judging.coverage import Coverage, CoveredClaim, cover, covered_by
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
from reward.types import Claim, ClaimSource, Role, SampleGroup, Span

_REACH = 300  # most characters of the sentence on each side of its mention
_ASKED, _OTHER = "(?)", "(...)"
_MARKS = str.maketrans({"[": "(", "]": ")", '"': "'", "\u201c": "'", "\u201d": "'"})
_DIGIT = r"[\d\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u2189]"
_LEFT_DIGITS = re.compile(rf"{_DIGIT}+(?:[.,:/-]{_DIGIT}+)*")


@dataclass(frozen=True)
class Proposal:
    """The claims that are asked about."""

    coverage: Coverage
    num_malformed: int  # lines of the Proposer that could not be used
    group: SampleGroup | None  # the attempt that was used; None when all claims are from templates


async def propose(
    response: str, targets: Sequence[Target], kinds: Mapping[str, ClaimKind], *, means: Means
) -> Proposal:
    """Samples claims until every mention is covered or no retry is left; keeps the best-covered attempt.

    Args:
        response: What is audited, without the Solver's thought.
        targets: Its mentions that must be checked.
        kinds: The kinds of claims that are checked.
        means: The sampler, the prompts and the settings.

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
        written = answer_of(group.samples[0].text, config)
        parsed = parse_claims(written, max_claims=config.max_claims, kinds=kinds)
        if parsed.too_many:
            problem = Reason.TOO_MANY_CLAIMS
            continue
        proposal = _proposal(response, targets, parsed, group)
        if len(proposal.coverage.uncovered) < len(best.coverage.uncovered):
            best = proposal
        if not best.coverage.uncovered:
            return best
    if config.uncovered is UncoveredPolicy.TEMPLATE:
        best = replace(best, coverage=with_templates(response, targets, best.coverage, config.max_claims))
        problem = Reason.TOO_MANY_CLAIMS if len(best.coverage.claims) > config.max_claims else problem
    if not 1 <= len(best.coverage.claims) <= config.max_claims:
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


def with_templates(response: str, targets: Sequence[Target], coverage: Coverage, max_claims: int) -> Coverage:
    """Adds a claim for each mention that is still uncovered; a composite that no claim touched is asked
    whole.

    Args:
        response: What is audited.
        targets: Its mentions, as they were given to `cover`.
        coverage: What the Proposer's claims cover.
        max_claims: Where to stop; one claim more says that there were too many.
    """
    bare = {(span.start, span.end) for span in coverage.uncovered}
    claims: list[CoveredClaim] = list(coverage.claims)
    left: list[Span] = []
    for whole in targets:
        free = [part for part in whole.parts if (part.start, part.end) in bare]
        for target in [whole] if len(free) == len(whole.parts) else free:
            question = template_question(response, target) if len(claims) <= max_claims else None
            if question is None:
                left += [Span(start=start, end=end) for start, end in target.places]
                continue
            answer = response[target.start : target.end]
            claim = Claim(
                index=len(claims) + 1, question=question, answer=answer, source=ClaimSource.TEMPLATE
            )
            claims.append(covered_by(claim, target))
    return Coverage(tuple(claims), tuple(left), coverage.num_dropped)


def template_question(response: str, target: Target) -> str | None:
    """The question for one mention; None when it would give the mention away.

    Args:
        response: What is audited.
        target: What is asked for.
    """
    start, end = sentence_span(response, target.start, target.end, reach=_REACH)
    blanks = _blanks(response, target)
    before = _blanked(response, start, target.start, blanks)
    after = _blanked(response, target.end, end, blanks)
    sentence = " ".join(f"{before}{_ASKED}{after}".split())
    question = (
        f"{target.kind.question(target.mention)} belongs at the mark {_ASKED} of this statement, in which "
        f'every mark {_OTHER} stands for something else: "{sentence}"'
    )
    return None if target.kind.gives_away(question, target.mention) else question


def _blanks(response: str, target: Target) -> list[Mention]:
    """What the question must not show: all numbers, and what says the same as the target.

    Other names stay, or the statement would say nothing; `blind_rounds` keeps them from the Checker who is
    asked about them.
    """
    others = [one for one in target.kind.find_all(response) if target.kind.is_about(one, target.mention)]
    return sorted([*all_numbers(response), *others], key=attrgetter("start"))


def _blanked(text: str, start: int, end: int, blanks: Sequence[Mention]) -> str:
    """`text[start:end]` with a mark for each blank, and nothing that reads like an answer's bracket."""
    pieces: list[str] = []
    place = start
    for blank in blanks:
        if blank.end > place and blank.start < end:
            pieces += [text[place : max(place, blank.start)], _OTHER]
            place = min(end, blank.end)
    pieces.append(text[place:end])
    return _LEFT_DIGITS.sub(_OTHER, "".join(pieces).translate(_MARKS))
