"""Which claims are about which numbers of a response, and which claims may be asked about together.

Coverage closes a way to be paid for silence: a number that no claim asks about is an unchecked number (the
published code lets it pass). What is counted are atoms: each end of a range, each part of a date, or a number
that has no parts. A claim about the whole of a range covers both its ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from reward.claims.numbers import Form, Kind, Number, equal, parse_number
from reward.judging.readings import says, taken_as, values_in, values_of
from reward.types import Claim, Span

_Place = tuple[int, int]  # of an atom in the response
_Values = tuple[Decimal, ...]
_Kind = tuple[Kind, str, Form]  # of a number, with its unit


@dataclass(frozen=True)
class CoveredClaim:
    """A claim, with its span, and the number of the response that it is about."""

    claim: Claim
    number: Number


@dataclass(frozen=True)
class Coverage:
    """Which claims are about which numbers of a response."""

    claims: tuple[CoveredClaim, ...]  # numbered from 1 again
    uncovered: tuple[Span, ...]  # atoms without a claim, from left to right
    num_dropped: int  # claims about a number that does not stand in the response, or is already covered


def num_atoms(numbers: Sequence[Number]) -> int:
    """How many numbers need a check, parts counted one by one."""
    return sum(len(number.atoms) for number in numbers)


def cover(numbers: Sequence[Number], claims: Sequence[Claim]) -> Coverage:
    """Gives each claim one number of the response, or one part of a number, from left to right.

    A claim's bare number covers any number of that value, but first one of its own kind.

    Args:
        numbers: The numbers of the response that must be checked, from left to right, composite ones whole.
        claims: The Proposer's claims.
    """
    free = _Free(numbers)
    covered: list[CoveredClaim] = []
    for claim in claims:
        claimed = parse_number(claim.answer)
        taken = free.take(claimed) if claimed is not None else None
        if taken is not None:
            span = Span(start=taken.start, end=taken.end)
            numbered = claim.model_copy(update={"index": len(covered) + 1, "span": span})
            covered.append(CoveredClaim(numbered, taken))
    return Coverage(tuple(covered), tuple(free.spans()), len(claims) - len(covered))


def blind_rounds(claims: Sequence[CoveredClaim]) -> list[list[CoveredClaim]]:
    """Splits claims so that no question stands beside a claim whose answer it gives away.

    "How many sat the exam in 2025?" must not be shown with "In which year was the exam?", whose claimed
    answer is 2025. Each round is one Checker prompt; nearly always one or two are enough.
    """
    rounds: list[tuple[list[CoveredClaim], set[Decimal], set[Decimal]]] = []
    for claim in claims:
        shown, asked = values_in(claim.claim.question), values_of([claim.number])
        fitting = (r for r in rounds if not asked & r[2] and not shown & r[1])
        members, answers, given = next(fitting, None) or ([], set(), set())
        if not members:
            rounds.append((members, answers, given))
        members.append(claim)
        answers |= asked
        given |= shown
    return [members for members, _, _ in rounds]


class _Free:
    """The numbers, and parts of numbers, that no claim covers yet; found by value, so that this is quick."""

    def __init__(self, numbers: Sequence[Number]) -> None:
        self._atoms = {_place(atom) for number in numbers for atom in number.atoms}
        self._kinds: dict[_Kind, dict[_Values, deque[Number]]] = {}
        targets = {id(n): n for number in numbers for n in (number, *number.parts)}.values()
        for target in sorted(targets, key=_order):
            unit = "" if target.kind is Kind.IDENTIFIER else target.unit
            kind = self._kinds.setdefault((target.kind, unit, target.form), {})
            for values in set(target.readings):
                kind.setdefault(values, deque()).append(target)

    def take(self, claimed: Number) -> Number | None:
        """Takes out the leftmost number that a claim can be about, first one of its own kind."""
        firsts = [first for kind in self._kinds.values() for first in self._firsts(kind, claimed)]
        own = [target for target in firsts if equal(claimed, target)]
        read = own or [target for target in firsts if says(claimed, target)]
        taken = min(read, key=_order, default=None)
        if taken is not None:
            self._atoms -= {_place(atom) for atom in taken.atoms}
        return taken

    def spans(self) -> Iterator[Span]:
        """Where the atoms stand that are left, from left to right."""
        return (Span(start=start, end=end) for start, end in sorted(self._atoms))

    def _firsts(self, kind: dict[_Values, deque[Number]], claimed: Number) -> Iterator[Number]:
        """The leftmost free targets of one kind and unit that a claim may mean, by its values."""
        like = next(iter(kind.values()))
        readings = {*claimed.readings, *(taken_as(claimed, like[0]).readings if like else ())}
        for same in filter(None, map(kind.get, readings)):
            while same and not all(_place(atom) in self._atoms for atom in same[0].atoms):
                same.popleft()
            if same:
                yield same[0]


def _place(atom: Number) -> _Place:
    return atom.start, atom.end


def _order(number: Number) -> _Place:
    return number.start, -number.end
