"""Whether an answer counts what its query asks to be counted.

Zero tolerance looks at what an answer claims, and not at whether that was asked: to "How many families lived
in X?" the true sentence "X had a population of 274" is borne out and would be paid. SmolLM2 learned to give
the easier number in eighteen steps (docs/log.md).

Only the plain case is decided, without a model: the query says what to count, a document counts just that,
and the answer counts other things alone and gives none of the document's numbers for it. A number that is not
said to count anything ("61.") is in nobody's way, and so is whatever the documents do not count. What a text
asks for, and what a number of it is of, `reward.claims.numbers.things` tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.claims.numbers.index import index_numbers
from reward.claims.numbers.things import Thing, counted_things, stated_things
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import Outcome, RagQuery, Verdict


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
    asked = counted_things(query.query)
    if not asked or "number" not in config.kinds:
        return None
    kinds = {name: kind for name, kind in kinds_for(config, query, answer).items() if name == "number"}
    given = targets_of(answer, kinds)
    counted = [stated_things(target.mention, answer) for target in given]
    if not given or not all(counted):
        return None
    stated = [one for things in counted for one in things]
    missed = (thing for thing in asked if not any(map(thing.is_like, stated)))
    return next((" ".join(thing.words) for thing in missed if _is_counted(thing, query, given)), None)


def _is_counted(thing: Thing, query: RagQuery, given: Sequence[Target]) -> bool:
    """Whether the documents count a thing, by no number of the answer.

    What follows a number says best what it is of: "5 children: 3 sons" are three sons.
    """
    numbers = [
        number
        for document in query.documents
        for number in index_numbers(document.text).numbers
        if any(map(thing.is_named_by, stated_things(number, document.text)[:1]))
    ]
    return bool(numbers) and not any(
        target.kind.is_about(number, target.mention) for number in numbers for target in given
    )
