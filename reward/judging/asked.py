"""Whether an answer counts what its query asks to be counted.

Zero tolerance looks at what an answer claims, and not at whether that was asked: to "How many families lived
in X?" the true sentence "X had a population of 274" is borne out and would be paid. SmolLM2 learned to give
the easier number in eighteen steps (docs/log.md).

Only the plain case is decided, without a model: the query says what to count, a document counts just that,
and the answer counts other things alone and gives none of the document's numbers for it. A number that is not
said to count anything ("61.") is in nobody's way, and so is whatever the documents do not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.claims.text import sentence_span
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import Outcome, RagQuery, Verdict

_REACH = 200  # most characters of a sentence on each side of a number
_STEM = 5  # characters that singular and plural share: "family", "families"
_ASKED = re.compile(r"\bhow many (\w+)|\bnumber of (\w+)|\b(population)\b", re.IGNORECASE)
_AFTER = re.compile(r"\W{0,2}([^\W\d_]+)(?: ([^\W\d_]+))?")  # "61 families", "61 Kurdish families"
_BEFORE = re.compile(r"\bnumber of (\w+)|\b(population)\b", re.IGNORECASE)
_PEOPLE = ("people", "person", "population", "inhabitant", "resident", "citizen", "villager")
_NO_THING = frozenset(
    [
        "of",
        "in",
        "at",
        "on",
        "to",
        "and",
        "or",
        "was",
        "is",
        "were",
        "are",
        "had",
        "as",
        "with",
        "by",
        "from",
        "per",
        "the",
        "a",
        "an",
    ]
)


def refuted_by_count(verdict: Verdict, query: RagQuery, answer: str, config: AuditConfig) -> Verdict:
    """The verdict, or REFUTED where a SUPPORTED answer counts something else than its query asks."""
    if verdict.outcome is not Outcome.SUPPORTED or not config.refute_other_counts:
        return verdict
    asked = uncounted(query, answer, config)
    if asked is None:
        return verdict
    refuted = {"outcome": Outcome.REFUTED, "reward": config.reward_refuted, "reason": Reason.OTHER_COUNT}
    detail = f"the query asks for a number of {asked}, which the documents give; the answer counts others"
    return verdict.model_copy(update=refuted | {"detail": detail})


def uncounted(query: RagQuery, answer: str, config: AuditConfig) -> str | None:
    """What a query asks to be counted, a document counts and an answer does not, or None.

    Args:
        query: The query and its documents.
        answer: What is audited.
        config: Of the audit.
    """
    asked = [next(filter(None, match.groups())) for match in _ASKED.finditer(query.query)]
    if not asked or "number" not in config.kinds:
        return None
    kinds = {name: kind for name, kind in kinds_for(config, query, answer).items() if name == "number"}
    given = targets_of(answer, kinds)
    counted = [_counted(answer, target) for target in given]
    others = [word for word in asked if given and all(one and _stem(word) not in one for one in counted)]
    return next((word for word in others if _is_counted(_stem(word), query, given)), None)


def _is_counted(thing: str, query: RagQuery, given: Sequence[Target]) -> bool:
    """Whether the documents count a thing, by no number of the answer."""
    kind = given[0].kind
    found = False
    for document in query.documents:
        for mention in kind.find_all(document.text):
            if thing not in _counted(document.text, Target(kind, mention)):
                continue
            if any(kind.is_about(mention, target.mention) for target in given):
                return False
            found = True
    return found


def _counted(text: str, target: Target) -> frozenset[str]:
    """What a number is said to count, by the first letters of the words: beside it, or in "population of"."""
    low, high = sentence_span(text, target.start, target.end, reach=_REACH)
    after = _AFTER.match(text, target.end, high)
    words = [word for word in after.groups() if word] if after else []
    if words and words[0].casefold() in _NO_THING:
        words = []
    before = _BEFORE.search(text, low, target.start)
    if before and not any(map(str.isdigit, text[before.end() : target.start])):
        words += [word for word in before.groups() if word]
    return frozenset(_stem(word) for word in words if word.casefold() not in _NO_THING)


def _stem(word: str) -> str:
    folded = word.casefold()
    return "people" if folded.startswith(_PEOPLE) else folded[:_STEM]
