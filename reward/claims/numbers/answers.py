"""How an answer in a bracket is held against a number of running text.

Brackets hold bare numbers, because the question says what is asked for: "By what percentage ...?" is answered
12, and "More than how many ...?" 270. So a bare number takes the kind and the unit of the number that it is
held against, and one that states no bound its bound. A number that says what it is stays what it says: "12%"
never answers for a bare 12, nor "at most 270" for "over 270". An exact number is never taken to lie inside a
bound ("over 270" is not supported by 300): else "more than 0" would be supported by everything, and a policy
that is paid for being supported would write just that. Whether the document states that bound is for
`reward.claims.numbers.bound_stated` to say.
"""

from __future__ import annotations

from reward.claims.numbers import (
    Form,
    Kind,
    Number,
    bound_stated,
    close_like,
    closed,
    equal,
    read_as,
    supports,
    without_unit_of,
)
from reward.claims.numbers.model import changed

_BOUNDS = frozenset({Form.AT_LEAST, Form.MORE_THAN, Form.AT_MOST, Form.LESS_THAN})


def taken_as(number: Number, like: Number, *, with_bound: bool = True) -> Number:
    """The number with the kind, the unit and the bound of `like`, as far as it says nothing of its own.

    The bare digits of a name stand for the name: 19 for "COVID-19".

    Args:
        number: What a bracket says.
        like: What it is held against.
        with_bound: Whether it may take the bound, too.
    """
    if with_bound and number.form is Form.EXACT and like.form in _BOUNDS:
        number = changed(number, form=like.form)
    if number.kind is Kind.COUNT and like.kind is Kind.IDENTIFIER and {*number.readings} & {*like.readings}:
        return changed(like, start=number.start, end=number.end)
    return read_as(number, like)


def vote_as(number: Number, asked: Number, *, stated: Number | None = None) -> Number:
    """A vote in the terms of the claim that it is held against, with one reading.

    It takes the claim's bound only where the document states it at the place of its evidence.


    A vote that is open ("9:30", "5/6/2021") means what the claim means, if that is one of its readings, and
    its likeliest otherwise. `equal` is an equivalence, so the order of votes does not change their groups.

    Args:
        number: The vote.
        asked: The number of the response.
        stated: The document's own number at the place of the vote's evidence, if there is one.
    """
    with_bound = stated is not None and bound_stated(stated, asked)
    return closed(taken_as(number, asked, with_bound=with_bound), asked)


def in_terms_of(number: Number, asked: Number) -> Number:
    """The number without the unit and the bound that were asked for; what is other than asked for stays."""
    if number.form in _BOUNDS and number.form is asked.form:
        number, asked = changed(number, form=Form.EXACT), changed(asked, form=Form.EXACT)
    return without_unit_of(number, asked)


def says(answer: Number, other: Number) -> bool:
    """Whether an answer, as far as it says nothing of its own, is a number of a text in some reading."""
    return equal(taken_as(answer, other), close_like(other, answer))


def bears_out(found: Number, claimed: Number, *, relative_tolerance: float = 0.0) -> bool:
    """Whether a consensus, read in the terms of the claim, bears the claim out.

    As `reward.claims.numbers.supports`, but strict where a policy could write itself claims that always hold:
    a bound needs the same bound, and a bare claim a bare consensus (10 is not 10%).

    Args:
        found: What the voters found, as `vote_as` gives it.
        claimed: The number of the response.
        relative_tolerance: Largest difference that is allowed, as a share of the claim.
    """
    if (
        claimed.form in _BOUNDS
        or found.form in _BOUNDS
        or (claimed.kind is Kind.COUNT) != (found.kind is Kind.COUNT)
    ):
        return equal(close_like(claimed, found), found)
    return supports(claimed, found, relative_tolerance=relative_tolerance)
