"""Kinds of claims: what in a text can be checked, and the few functions that the audit needs of each kind.

A kind is one file or package here and one line below: `numbers`, `names`, `dates`. `reward.claims.kind` says
what it must be able to do.
"""

from collections.abc import Callable
from functools import cache

from reward.claims.dates import Dates
from reward.claims.kind import ClaimKind, Target
from reward.claims.names import Names
from reward.claims.numbers.kind import Numbers
from reward.claims.text import Spans
from reward.config import AuditConfig
from reward.types import Claim, Document, RagQuery

_KINDS: dict[str, Callable[[RagQuery, AuditConfig, str], ClaimKind]] = {
    "number": Numbers,
    "name": lambda query, config, response: Names(query),
    "date": Dates,
}


def kinds_for(config: AuditConfig, query: RagQuery, response: str = "") -> dict[str, ClaimKind]:
    """The chosen kinds of claims by their names, made for the texts of one audit.

    Args:
        config: `kinds` chooses; the other settings are the kinds' own.
        query: The query and its documents.
        response: What is audited.
    """
    return {name: _KINDS[name](query, config, response) for name in config.kinds}


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
    return sorted([*others, *names], key=lambda one: (one.start, -one.end))


@cache
def _kind_of_brackets(name: str) -> ClaimKind:
    """A kind that knows no texts, for what is in brackets alone."""
    no_texts = RagQuery(id="none", query="", documents=(Document(id="none", text=""),))
    return kinds_for(AuditConfig.model_validate({"kinds": [name]}), no_texts)[name]


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
