"""Which claims are about which mentions of a response, and which claims may be asked about together.

Coverage closes a way to be paid for silence: a number or a name that no claim asks about is unchecked (the
published code lets it pass). What is counted are atoms: each end of a range, each part of a date, or a
mention that has no parts. A claim about the whole of a range covers both its ends.

A claim is about a mention if its bracket names it, its question asks for no other kind, unit or thing, and
both speak of one subject: "How many people came?" covers the 12 of "12 people came", and neither that of "12%
of the members" nor that of "12 families came".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from reward.claims.clauses import Clauses, fit
from reward.claims.kind import ClaimKind, Target
from reward.claims.names import Name, find_names
from reward.claims.text import sentence_span
from reward.types import Claim, ClaimState, ClaimVerdict, Span

_REACH = 300  # most characters of a sentence on each side of a mention
_WORD = re.compile(r"[^\W\d_]{2,}")
_COUNTED = re.compile(r"\bhow many (\w+)", re.IGNORECASE)
_FEWEST_WORDS = 3  # of a question that tell its subject; verbs change too much for fewer (take, took)
_NEARLY = 0.5  # of the closeness of the likeliest mention
_MOST_COMPARED = 64  # mentions that one bracket names
_STEM = 4  # characters that words of one family share: "carries", "carry"
_STOP = frozenset(
    word[:_STEM]
    for word in _WORD.findall(
        "a an the of in on at to for from by with and or but is are was were be been it its this "
        "that these those as how many much what which who whom whose when where why did do does has "
        "have had than more less over under there their they he she his her not no about into per "
        "each number amount "
    )
)


@dataclass(frozen=True)
class CoveredClaim:
    """A claim, with its span, and the mention of the response that it is about."""

    claim: Claim
    target: Target
    refuted: ClaimVerdict | None = None  # by a lookup, whatever the voters say

    @property
    def kind(self) -> ClaimKind:
        return self.target.kind


@dataclass(frozen=True)
class Coverage:
    """Which claims are about which mentions of a response."""

    claims: tuple[CoveredClaim, ...]  # numbered from 1 again
    uncovered: tuple[Span, ...]  # atoms without a claim, from left to right
    num_dropped: int  # claims about nothing in the response, or about what is already covered
    refuted: tuple[ClaimVerdict, ...] = ()  # by a lookup, and no claim is about it


def cover(response: str, targets: Sequence[Target], claims: Sequence[Claim]) -> Coverage:
    """Gives each claim one mention of the response, or a part of one; `targets` are from left to right.

    Of several mentions with its answer a claim takes the one that its question fits best, by the words that
    both share, and of equal ones the leftmost; if the best one is already covered, the claim covers nothing.
    """
    free = _Free(response, targets)
    covered = [one for claim in claims if (one := free.take(claim)) is not None]
    numbered = tuple(
        CoveredClaim(one.claim.model_copy(update={"index": index}), one.target)
        for index, one in enumerate(covered, start=1)
    )
    uncovered = tuple(Span(start=start, end=end) for start, end in sorted(free.atoms))
    return Coverage(numbered, uncovered, len(claims) - len(covered))


def with_lookup(coverage: Coverage, looked_up: Sequence[ClaimVerdict]) -> Coverage:
    """The coverage with what `reward.lexical.lexical_audit` refutes, beside the claims about it."""
    refuted = [one for one in looked_up if one.state is not ClaimState.SUPPORTED]
    claims = tuple(
        replace(one, refuted=next((found for found in refuted if _is_about(one.claim, found)), None))
        for one in coverage.claims
    )
    unasked = tuple(one for one in refuted if not any(_is_about(c.claim, one) for c in coverage.claims))
    spans = {(one.claim.span.start, one.claim.span.end) for one in unasked if one.claim.span}
    uncovered = tuple(one for one in coverage.uncovered if (one.start, one.end) not in spans)
    return replace(coverage, claims=claims, refuted=unasked, uncovered=uncovered)


def _is_about(claim: Claim, found: ClaimVerdict) -> bool:
    """Whether a claim is about all of what was looked up; one about its year does not answer for a date."""
    span, other = claim.span, found.claim.span
    return span is not None and other is not None and span.start <= other.start and other.end <= span.end


def blind_rounds(claims: Sequence[CoveredClaim]) -> list[list[CoveredClaim]]:
    """Splits claims so that no question is asked beside a claim whose answer it gives away.

    "How many sat the exam in 2025?" must not be shown with "In which year was the exam?", whose claimed
    answer is 2025. Each round is one Checker prompt; nearly always one or two are enough.
    """
    rounds: list[list[CoveredClaim]] = []
    for claim in claims:
        for members in rounds:
            if all(_is_blind(claim, other) for other in members):
                members.append(claim)
                break
        else:
            rounds.append([claim])
    return rounds


def _is_blind(a: CoveredClaim, b: CoveredClaim) -> bool:
    """Whether neither question shows the other's answer."""
    return not (
        b.kind.gives_away(a.claim.question, b.target.mention)
        or a.kind.gives_away(b.claim.question, a.target.mention)
    )


class _Free:
    """The mentions, and parts of mentions, that no claim covers yet."""

    def __init__(self, response: str, targets: Sequence[Target]) -> None:
        self._response = response
        self._words = content_words(response)
        self.atoms = {place for target in targets for place in target.places}
        together = [one for target in targets for one in [target, *target.parts]]
        unique = {(one.kind.name, one.start, one.end): one for one in together}
        self._targets = sorted(unique.values(), key=lambda one: (one.start, -one.end))
        self._kinds = {target.kind.name: target.kind for target in targets}
        self._named: dict[str, list[Target]] = {}
        self._clauses = Clauses(response, targets)

    def take(self, claim: Claim) -> CoveredClaim | None:
        """Takes out what a claim is about."""
        fitting = [
            target
            for target in self._with_answer(claim.answer)
            if target.kind.asks_for(claim.question, target.mention, self._response)
            and not self._is_of_another(claim.question, target)
        ]
        words = content_words(claim.question)
        if len(words) >= _FEWEST_WORDS and self._words and not words & self._words:
            return None  # asks about something that the response does not speak of
        if len(fitting) > 1:
            fitting = self._of_subject(claim.question, fitting)
        taken = next(filter(self._is_free, fitting), None)
        if taken is None:
            return None
        self.atoms -= set(taken.places)
        span = Span(start=taken.start, end=taken.end)
        return CoveredClaim(claim.model_copy(update={"span": span, "kind": taken.kind.name}), taken)

    def _is_of_another(self, question: str, target: Target) -> bool:
        """Whether a question names whom the response speaks of, but not where it says a mention."""
        subject = None if target.kind.name == "name" else self._clauses.subject(target)
        if subject is None:
            return False
        asked = _names_of(question)
        beside = self._clauses.names_beside(target)
        if any(fit(name, one) for name in asked for one in beside):
            return False
        return any(fit(name, one) for name in asked for one in self._clauses.names)

    def _with_answer(self, answer: str) -> list[Target]:
        """The mentions that a bracket names, the free ones first; kept, as claims may share a bracket."""
        if answer not in self._named:
            read = {name: kind.read(answer) for name, kind in self._kinds.items()}
            self._named[answer] = [
                one
                for one in self._targets
                if (said := read[one.kind.name]) is not None and one.kind.is_about(said, one.mention)
            ]
        return sorted(self._named[answer], key=lambda one: not self._is_free(one))[:_MOST_COMPARED]

    def _is_free(self, target: Target) -> bool:
        return self.atoms.issuperset(target.places)

    def _of_subject(self, question: str, fitting: Sequence[Target]) -> list[Target]:
        """Of several mentions with one answer those that a question is about, the likeliest first.

        They share words with it, what "how many" counts among them, and nearly as close as the likeliest
        does.
        """
        words = content_words(question)
        counted = _COUNTED.search(question)
        needed = content_words(counted[1]) if counted else words
        closeness = {id(target): self._closeness(words, needed, target) for target in fitting}
        most = max(closeness.values(), default=0.0)
        near = [target for target in fitting if closeness[id(target)] > most * _NEARLY]
        return sorted(near, key=lambda target: (-closeness[id(target)], target.start))

    def _closeness(self, words: frozenset[str], needed: frozenset[str], target: Target) -> float:
        """Sum over the shared words of 1 / (1 + words between each and the mention); 0 without a needed one.

        A sentence without any word of its own speaks of every subject.
        """
        low, high = sentence_span(self._response, target.start, target.end, reach=_REACH)
        before = _stems(self._response[low : target.start])[::-1]
        after = _stems(self._response[target.end : high])
        mentioned = self._response[target.start : target.end]
        own_words = dict.fromkeys(_stems(mentioned), 0)  # "euros" of "466 euros"
        sides = sorted((place, word) for side in (before, after) for place, word in enumerate(side))
        near = {word: place for place, word in reversed(sides)} | own_words
        own = near.keys() - _STOP
        if not own:
            return 1.0
        return sum(1 / (1 + near[word]) for word in words & own) if needed & own else 0.0


def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, by their first letters."""
    return frozenset(_stems(text)) - _STOP


@lru_cache(maxsize=256)
def _names_of(question: str) -> list[Name]:
    return find_names(question)


@lru_cache(maxsize=4096)
def _stems(text: str) -> list[str]:
    return [word.casefold()[:_STEM] for word in _WORD.findall(text)]
