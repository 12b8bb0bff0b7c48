"""Queries that are known to be unanswerable: the document that answers was taken away on purpose.

For these it is known without any label what is right. A Solver is right to say that the documents do not say,
and no claim of its answer is. What an abstention is worth is a setting of its own, by default nothing: paid
like a right answer, it spread to queries that the documents answer (docs/log.md). A Checker that finds an
answer to a question about such a query has taken it from another place, so "cannot answer" is right: these
are the only rows on which a Checker is paid for that, since elsewhere a vote is paid for confirming what the
answer says.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict


def is_known_unanswerable(query: RagQuery, config: AuditConfig) -> bool:
    """Whether the query decides, by setting."""
    return query.unanswerable and config.refute_unanswerable


def decided_by_query(verdict: Verdict, config: AuditConfig) -> Verdict:
    """The verdict on an answer to a query that is known to be unanswerable.

    An abstention gets `reward_right_abstention`, claims `reward_refuted`. What is UNSCORED stays so, and so
    does an answer that neither claims anything nor abstains.
    """
    if verdict.outcome is Outcome.NO_CLAIMS:
        is_right = verdict.reason == Reason.ABSTENTION
        reward = config.reward_right_abstention
        return verdict.model_copy(update={"reward": reward}) if is_right else verdict
    if verdict.outcome is not Outcome.SUPPORTED:
        return verdict
    detail = "the documents are known not to answer the query"
    refuted = {"outcome": Outcome.REFUTED, "reward": config.reward_refuted, "reason": Reason.UNANSWERABLE}
    return verdict.model_copy(update=refuted | {"detail": detail})


def voter_reward(claims: Sequence[ClaimVerdict], config: AuditConfig) -> float | None:
    """What a voter is paid for its votes on claims of an answer to such a query.

    Args:
        claims: The verdicts on the claims by this voter alone.
        config: The rewards.

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
