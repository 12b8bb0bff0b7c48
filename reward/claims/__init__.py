"""Kinds of claims: what in a text can be checked, and the few functions that the audit needs of each kind.

A kind is one file or package here and one line below: `numbers`, `names`, `dates`. `reward.claims.kind` says
what it must be able to do.
"""

from __future__ import annotations

from functools import cache

from reward.claims.dates import Dates
from reward.claims.kind import ClaimKind, Target
from reward.claims.names import Names
from reward.claims.numbers.kind import Numbers, is_calendar
from reward.claims.text import Spans
from reward.config import AuditConfig
from reward.types import Claim, Document, RagQuery

__all__ = ["kinds_for", "target_of", "targets_of"]

_NO_TEXTS = RagQuery(id="none", query="", documents=(Document(id="none", text=""),))


def kinds_for(config: AuditConfig, query: RagQuery, response: str = "") -> dict[str, ClaimKind]:
    """The chosen kinds of claims by their names, made for the texts of one audit.

    Args:
        config: `kinds` chooses; the other settings are the kinds' own.
        query: The query and its documents.
        response: What is audited.
    """
    with_dates = "date" in config.kinds
    made: dict[str, ClaimKind] = {}
    for name in config.kinds:
        if name == "number":
            made[name] = Numbers(
                query,
                words=config.number_words,
                relative_tolerance=config.relative_tolerance,
                locale=config.locale,
                response=response,
                keeps=_is_no_date if with_dates else _is_any,
            )
        elif name == "name":
            made[name] = Names(query)
        elif name == "date":
            made[name] = Dates(query, words=config.number_words, locale=config.locale, response=response)
    return made


def targets_of(response: str, kinds: dict[str, ClaimKind]) -> list[Target]:
    """All that must be checked of a response, from left to right."""
    names: list[Target] = []
    others: list[Target] = []
    for kind in kinds.values():
        found = names if kind.name == "name" else others
        found += [Target(kind, mention) for mention in kind.find(response)]
    # "2,500 MHz" and "Q3 2018" are numbers and dates, and their words no names.
    if names and others:
        taken = Spans([(one.mention.start, one.mention.end) for one in others])
        names = [one for one in names if not taken.hold(one.mention.start, one.mention.end)]
    return sorted([*others, *names], key=_place)


def _place(target: Target) -> tuple[int, int]:
    return target.mention.start, -target.mention.end


@cache
def _kind_of_brackets(name: str) -> ClaimKind:
    """A kind that knows no texts, for what is in brackets alone."""
    return kinds_for(AuditConfig.model_validate({"kinds": [name]}), _NO_TEXTS)[name]


def target_of(claim: Claim) -> Target:
    """What a claim is about, read from its bracket alone.

    Raises:
        ValueError: its kind cannot read its answer.
    """
    kind = _kind_of_brackets(claim.kind)
    mention = kind.read(claim.answer)
    if mention is None:
        raise ValueError(
            f"claim {claim.index}: {claim.answer!r} is no {claim.kind}; give it an answer of its kind"
        )
    return Target(kind, mention)


def _is_no_date(number: object) -> bool:
    return not is_calendar(number)  # type: ignore[arg-type]


def _is_any(number: object) -> bool:
    return True
