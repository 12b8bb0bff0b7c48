"""How an answer in a bracket is held against a number of running text.

Brackets hold bare numbers, because the question says what is asked for: "By what percentage ...?" is answered
12, and "More than how many ...?" 270. So a bare number takes the kind and the unit of the number that it is
held against, and one that states no bound its bound. A number that says what it is stays what it says: "12%"
never answers for a bare 12, nor "at most 270" for "over 270". An exact number is never taken to lie inside a
bound ("over 270" is not supported by 300): else "more than 0" would be supported by everything, and a policy
that is paid for being supported would write just that.
"""

from __future__ import annotations

from dataclasses import replace

from reward.claims.numbers import (
    Form,
    Kind,
    Number,
    equal,
    read_as,
    supports,
    without_unit_of,
)

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
        number = replace(number, form=like.form)
    if number.kind is Kind.COUNT and like.kind is Kind.IDENTIFIER and {*number.readings} & {*like.readings}:
        return replace(like, start=number.start, end=number.end)
    return read_as(number, like)


def in_terms_of(number: Number, asked: Number) -> Number:
    """The number without the unit and the bound that were asked for; what is other than asked for stays."""
    if number.form in _BOUNDS and number.form is asked.form:
        number, asked = replace(number, form=Form.EXACT), replace(asked, form=Form.EXACT)
    return without_unit_of(number, asked)


def same(a: Number, b: Number) -> bool:
    """Whether two answers to one question are the same, where either may leave out what the other says."""
    return equal(taken_as(a, b), b) or equal(taken_as(b, a), a)


def bears_out(found: Number, claimed: Number, *, relative_tolerance: float = 0.0) -> bool:
    """Whether a consensus, read in the terms of the claim, bears the claim out.

    As `reward.claims.numbers.supports`, but strict where a policy could write itself claims that hold of
    everything: a bound needs the same bound, and a bare claim a bare consensus (10 is not 10%).

    Args:
        found: What the voters found, as `taken_as` gives it.
        claimed: The number of the response.
        relative_tolerance: Largest difference that is allowed, as a share of the claim.
    """
    if (
        claimed.form in _BOUNDS
        or found.form in _BOUNDS
        or (claimed.kind is Kind.COUNT) != (found.kind is Kind.COUNT)
    ):
        return equal(claimed, found)
    return supports(claimed, found, relative_tolerance=relative_tolerance)


def states_bound(stated: Number, claimed: Number) -> bool:
    """Whether a number of a document states the bound that is claimed: 270 does not state "over 270".

    An exact number states the bounds that include it: "at least 5" and "at most 5" of 5.
    """
    if claimed.form not in _BOUNDS:
        return False
    inclusive = claimed.form in (Form.AT_LEAST, Form.AT_MOST) and stated.form is Form.EXACT
    return stated.form is claimed.form or inclusive
