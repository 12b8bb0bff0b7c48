"""Claims for the numbers that no Proposer asked about: the number's own sentence, its numbers blanked out.

The Checker is shown a sentence of the response, but none of its numbers, in digits or in words: it must find
in the documents what belongs at the mark. A question that would still give its answer away is not asked, and
the number stays uncovered.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from reward.claims.numbers import Form, Kind, Number, find_numbers, unread_numerals
from reward.claims.numbers.units import written_as
from reward.judging.coverage import Coverage, CoveredClaim
from reward.judging.readings import values_in, values_of
from reward.judging.sentences import sentence_span
from reward.types import Claim, ClaimSource, Span

_REACH = 300  # most characters of the sentence on each side of its number
_ASKED, _OTHER = "(?)", "(...)"
_MARKS = str.maketrans({"[": "(", "]": ")", '"': "'", "\u201c": "'", "\u201d": "'"})
_WHICH = {
    Form.AT_LEAST: "At least which",
    Form.MORE_THAN: "More than which",
    Form.AT_MOST: "At most which",
    Form.LESS_THAN: "Less than which",
}
_WHAT = {
    Kind.QUANTITY: "quantity",
    Kind.PERCENT: "percentage",
    Kind.PERCENTAGE_POINT: "number of percentage points",
    Kind.MONEY: "amount of money",
    Kind.DATE: "date",
    Kind.YEAR: "year",
    Kind.TIME: "time of day",
    Kind.DURATION: "duration",
    Kind.ORDINAL: "place in an order",
    Kind.RATIO: "ratio",
}
_IN_WORDS = str.maketrans({"²": " squared", "³": " cubed"})
_DIGIT = r"[\d\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u2189]"
_LEFT_DIGITS = re.compile(rf"{_DIGIT}+(?:[.,:/-]{_DIGIT}+)*")


def with_templates(response: str, numbers: Sequence[Number], coverage: Coverage, max_claims: int) -> Coverage:
    """Adds a claim for each number that is still uncovered; a composite that no claim touched is asked whole.

    Args:
        response: What is audited.
        numbers: Its numbers, as they were given to `cover`.
        coverage: What the Proposer's claims cover.
        max_claims: Where to stop; one claim more says that there were too many.
    """
    bare = {(span.start, span.end) for span in coverage.uncovered}
    claims: list[CoveredClaim] = list(coverage.claims)
    left: list[Span] = []
    blanks = find_numbers(response, enumerators=True)
    blanks = sorted([*blanks, *unread_numerals(response, blanks, enumerators=True)], key=_start)
    for number in numbers:
        free = [atom for atom in number.atoms if (atom.start, atom.end) in bare]
        for target in [number] if len(free) == len(number.atoms) else free:
            question = template_question(response, target, blanks) if len(claims) <= max_claims else None
            if question is None:
                left += [Span(start=atom.start, end=atom.end) for atom in target.atoms]
                continue
            claim = Claim(
                index=len(claims) + 1,
                question=question,
                answer=response[target.start : target.end],
                span=Span(start=target.start, end=target.end),
                source=ClaimSource.TEMPLATE,
            )
            claims.append(CoveredClaim(claim, target))
    return Coverage(tuple(claims), tuple(left), coverage.num_dropped)


def template_question(response: str, number: Number, blanks: Sequence[Number]) -> str | None:
    """The question for one number; None when it would give the number away.

    Args:
        response: What is audited.
        number: The number that is asked for.
        blanks: All numbers of the response, those that need no check too.
    """
    start, end = sentence_span(response, number.start, number.end, reach=_REACH)
    before = _blanked(response, start, number.start, blanks)
    after = _blanked(response, number.end, end, blanks)
    sentence = " ".join(f"{before}{_ASKED}{after}".split())
    question = (
        f"{_asked_for(number)} belongs at the mark {_ASKED} of this statement, in which every mark {_OTHER} "
        f'stands for another number: "{sentence}"'
    )
    return None if values_of([number]) & values_in(question) else question


def _asked_for(number: Number) -> str:
    what = _WHAT.get(number.kind, "number")
    if number.kind is Kind.MONEY:
        what = f"{what} in {number.unit}"
    elif number.kind in (Kind.QUANTITY, Kind.DURATION):
        what = f"{what} in {written_as(number.unit, singular=False).translate(_IN_WORDS)}"
    if number.form is Form.RANGE:
        what = f"range ({what})"
    return f"{_WHICH.get(number.form, 'Which')} {what}"


def _blanked(text: str, start: int, end: int, blanks: Sequence[Number]) -> str:
    """`text[start:end]` with a mark for each number, and nothing that reads like an answer's bracket."""
    pieces: list[str] = []
    place = start
    for number in blanks[max(0, bisect_left(blanks, start, key=_start) - 1) :]:
        if number.start >= end:
            break
        if number.end > place:
            pieces += [text[place : max(place, number.start)], _OTHER]
            place = min(end, number.end)
    pieces.append(text[place:end])
    return _LEFT_DIGITS.sub(_OTHER, "".join(pieces).translate(_MARKS))


def _start(number: Number) -> int:
    return number.start
