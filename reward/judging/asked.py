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
from collections.abc import Iterator, Sequence
from typing import Any

from reward.claims import kinds_for, targets_of
from reward.claims.kind import ClaimKind, Target
from reward.claims.text import sentence_span
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import Outcome, RagQuery, Verdict

_REACH = 200  # most characters of a sentence on each side of a number
_STEM = 5  # characters that singular and plural share: "family", "families"
_ASKED = re.compile(r"\b(?:how many|number of) ([^\W\d_]+)(?: ([^\W\d_]+))?|\b(population)\b", re.IGNORECASE)
_AFTER = re.compile(r"\W{0,2}([^\W\d_]+)(?: ([^\W\d_]+))?")  # "61 families", "61 Kurdish families"
_BEFORE = re.compile(r"\bnumber of (\w+)|\b(population)\b", re.IGNORECASE)
_PEOPLE = ("people", "person", "population", "inhabitant", "resident", "citizen", "villager")
_NO_NOUN = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at by came can could did die do does from for had has have in is it lie live of on "
        "or per play take the there they to was went were who will win with won would",
    )
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
    asked = [_nouns(match.groups()) for match in _ASKED.finditer(query.query)]
    if not any(asked) or "number" not in config.kinds:
        return None
    kinds = {name: kind for name, kind in kinds_for(config, query, answer).items() if name == "number"}
    given = targets_of(answer, kinds)
    counted = [_counted(answer, target) for target in given]
    for words in asked if given and all(counted) else ():
        things = {_stem(word) for word in words}
        if not any(things & set(one) for one in counted) and _is_counted(things, query, given):
            return " ".join(words)
    return None


def _is_counted(things: set[str], query: RagQuery, given: Sequence[Target]) -> bool:
    """Whether the documents count a thing, by no number of the answer."""
    kind = given[0].kind
    numbers = [number for document in query.documents for number in _numbers_of(things, document.text, kind)]
    return bool(numbers) and not any(
        kind.is_about(number, target.mention) for number in numbers for target in given
    )


def _numbers_of(things: set[str], text: str, kind: ClaimKind) -> Iterator[Any]:
    """The numbers of a text that count a thing, by the last of the words beside them.

    "12 career appearances" counts appearances, and no goals of "How many career goals".
    """
    for mention in kind.find_all(text):
        if things & set(_counted(text, Target(kind, mention))[-1:]):
            yield mention


def _counted(text: str, target: Target) -> list[str]:
    """What a number is said to count, by the first letters of the words: in "population of", or beside it."""
    low, high = sentence_span(text, target.start, target.end, reach=_REACH)
    before = _BEFORE.search(text, low, target.start)
    if before and any(map(str.isdigit, text[before.end() : target.start])):
        before = None
    after = _AFTER.match(text, target.end, high)
    beside = _nouns(after.groups()) if after else []
    # What follows directly says it best: "of the population 61 families".
    return [_stem(word) for word in [*(_nouns(before.groups()) if before else []), *beside]]


def _nouns(words: Sequence[str | None]) -> list[str]:
    """The words up to the first that counts nothing, such as a verb."""
    nouns: list[str] = []
    for word in filter(None, words):
        if word.casefold() in _NO_NOUN or (nouns and word.endswith("ed")):
            break
        nouns.append(word)
    return nouns


def _stem(word: str) -> str:
    folded = word.casefold()
    return "people" if folded.startswith(_PEOPLE) else folded[:_STEM]
