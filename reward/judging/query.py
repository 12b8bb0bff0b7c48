"""What the query itself says of its answer: it cannot be answered, or asks to count something else.

Some queries are known to be unanswerable: the document that answers was taken away on purpose. For these it
is known without any label what is right. A Solver is right to say that the documents do not say, and no claim
of its answer is. What an abstention is worth is a setting of its own, by default nothing: paid like a right
answer, it spread to queries that the documents answer (docs/log.md). A Checker that finds an answer to a
question about such a query has taken it from another place, so "cannot answer" is right: these are the only
rows on which a Checker is paid for that, since elsewhere a vote is paid for confirming what the answer says.

Zero tolerance looks at what an answer claims, and not at whether that was asked: to "How many families lived
in X?" the true sentence "X had a population of 274" is borne out and would be paid. SmolLM2 learned to give
the easier number in eighteen steps (docs/log.md). Only the plain case is decided, without a model: the query
says what to count, a document counts just that, and the answer counts other things alone and gives none of
the document's numbers for it. A number that is not said to count anything ("61.") is in nobody's way, and so
is whatever the documents do not count. What a text asks for, and what a number of it is of,
`reward.claims.numbers.things` tells.
"""

from collections.abc import Sequence

from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.claims.numbers.index import index_numbers
from reward.claims.numbers.things import Thing, counted_things, stated_things
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict


def is_known_unanswerable(query: RagQuery, config: AuditConfig) -> bool:
    """Whether the query decides, by setting."""
    return query.unanswerable and config.refute_unanswerable


def decided_by_query(verdict: Verdict, query: RagQuery, answer: str, config: AuditConfig) -> Verdict:
    """The verdict, or another one where the query itself decides.

    Where it is known to be unanswerable, an abstention gets `reward_right_abstention` and claims
    `reward_refuted`; what is UNSCORED stays so, and so does an answer that neither claims anything nor
    abstains. Elsewhere a SUPPORTED answer that counts something else than its query asks is REFUTED.
    """
    is_unanswerable = is_known_unanswerable(query, config)
    if is_unanswerable and verdict.reason == Reason.ABSTENTION:
        return verdict.model_copy(update={"reward": config.reward_right_abstention})
    if verdict.outcome is not Outcome.SUPPORTED:
        return verdict
    refuted: dict[str, object] = {"outcome": Outcome.REFUTED, "reward": config.reward_refuted}
    if is_unanswerable:
        detail = "the documents are known not to answer the query"
        return verdict.model_copy(update=refuted | {"reason": Reason.UNANSWERABLE, "detail": detail})
    asked = uncounted(query, answer, config) if config.refute_other_counts else None
    if asked is None:
        return verdict
    detail = f"the query asks for a number of {asked}, which the documents give; the answer counts others"
    return verdict.model_copy(update=refuted | {"reason": Reason.OTHER_COUNT, "detail": detail})


def voter_reward(claims: Sequence[ClaimVerdict], config: AuditConfig) -> float | None:
    """What a voter is paid for its votes on claims of an answer to such a query: by its verdicts alone.

    Returns:
        `reward_supported` where it says "cannot answer" to all, `reward_refuted` where it gives any answer,
        None where one of its votes cannot be read.
    """
    states = {claim.state for claim in claims}
    if ClaimState.FAILED in states:
        return None
    # With required evidence an invented quotation counts as "cannot answer" against a claim. It is an answer.
    has_answered = any(vote and vote.unproven is not None for claim in claims for vote in claim.votes)
    is_right = states == {ClaimState.NOT_IN_DOCUMENTS} and not has_answered
    return config.reward_supported if is_right else config.reward_refuted


def uncounted(query: RagQuery, answer: str, config: AuditConfig) -> str | None:
    """What a query asks to be counted, a document counts and an answer does not, or None."""
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
