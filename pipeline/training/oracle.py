"""Ground truth beside the reward, where a world has one. It is looked at and never trained on.

A rising reward proves nothing by itself: every collapse of self-checking (all roles agree on one number, a
Checker that invents the evidence, answers without claims) looks fine in it. What shows them is how often the
reward is the best one while the answer is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from reward.types import ClaimState, Outcome, RagQuery, Record, Verdict


class OracleJudgement(Record):
    """What the truth says of one answer and of the consensus on its claims."""

    faithful: bool
    false_accept: bool
    false_reject: bool
    num_consensus: int = 0
    num_consensus_right: int = 0


Oracle = Callable[[RagQuery, str, Verdict], OracleJudgement | None]


def oracle_for(name: str) -> Oracle:
    """Returns the judge of a recipe's `oracle` setting; "none" judges nothing."""
    if name == "none":
        return lambda query, response, verdict: None
    if name == "tiny":
        return judge_tiny
    raise ValueError(f"oracle: {name!r} is unknown; use none or tiny")


def judge_tiny(query: RagQuery, response: str, verdict: Verdict) -> OracleJudgement:
    """Judges an answer of the tiny world, whose documents can be read back into facts."""
    from pipeline.tiny.truth import oracle, true_answer

    faithful = oracle(query, response).faithful
    decided = [
        (claim.consensus, truth)
        for claim in verdict.claims
        if claim.state is not ClaimState.FAILED
        and (truth := true_answer(query, claim.claim.question)) is not None
    ]
    return OracleJudgement(
        faithful=faithful,
        false_accept=verdict.outcome is Outcome.SUPPORTED and not faithful,
        false_reject=verdict.outcome in (Outcome.REFUTED, Outcome.NO_CLAIMS) and faithful,
        num_consensus=len(decided),
        num_consensus_right=sum(consensus == truth for consensus, truth in decided),
    )
