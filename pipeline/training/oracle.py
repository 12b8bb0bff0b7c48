"""Ground truth beside the reward, where a world or a row has it. It is looked at and never trained on.

A rising reward proves nothing by itself: every collapse of self-checking (all roles agree on one number, a
Checker that invents the evidence, answers without claims) looks fine in it. What shows them is how often the
reward is the best one while the answer is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.record.rollout_record import OracleJudgement
from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.world import Judgement
from reward.types import ClaimState, Outcome, RagQuery, Verdict

Oracle = Callable[[RagQuery, str, Verdict], OracleJudgement | None]


def oracle_for(name: str, wiki: WikiSettings | None = None) -> Oracle:
    """Returns the judge of a recipe's `oracle`; "none" judges nothing.

    Args:
        name: Of the world.
        wiki: For "wiki": what its rows are made with; rows of others are not judged.
    """
    if name == "none":
        return lambda query, response, verdict: None
    if name == "tiny":
        return judge_tiny
    if name == "wiki":
        return _judge_of_wiki(wiki)
    raise ValueError(f"oracle: {name!r} is unknown; use none, tiny or wiki")


def judge_tiny(query: RagQuery, response: str, verdict: Verdict) -> OracleJudgement:
    """Judges an answer of the tiny world, whose documents can be read back into facts."""
    from pipeline.tiny.truth import is_written, judge, true_answer

    truth = judge(query, response)
    decided = [
        is_written(claim.consensus, known)
        for claim in verdict.voted_claims
        if claim.state is not ClaimState.FAILED
        and (known := true_answer(query, claim.claim.question)) is not None
    ]
    return judge_against(truth, verdict, decided)


def _judge_of_wiki(settings: WikiSettings | None) -> Oracle:
    """Judges answers to the rows of real text, which are found by the ids of their queries."""
    from pipeline.worlds.wiki.world import WikiWorld, is_right_consensus

    world = WikiWorld(settings)

    def judge(query: RagQuery, response: str, verdict: Verdict) -> OracleJudgement | None:
        row = world.by_id.get(query.id)
        if row is None:
            return None
        truth = world.judge(row, response)
        decided = [
            is_right
            for claim in verdict.voted_claims
            if claim.state is not ClaimState.FAILED
            and (is_right := is_right_consensus(row, claim.claim.question, claim.consensus)) is not None
        ]
        return judge_against(truth, verdict, decided)

    return judge


def judge_against(truth: Judgement, verdict: Verdict, decided: Sequence[bool] = ()) -> OracleJudgement:
    """What a world knows of an answer beside its verdict; `decided` says which consensuses are right."""
    return OracleJudgement(
        faithful=truth.faithful,
        false_accept=verdict.outcome is Outcome.SUPPORTED and not truth.faithful,
        false_reject=truth.faithful and _is_refused(verdict),
        abstained=truth.abstained,
        answerable=truth.answerable,
        right=truth.right,
        num_consensus=len(decided),
        num_consensus_right=sum(decided),
    )


def _is_refused(verdict: Verdict) -> bool:
    """An answer without claims is refused where it is paid less than the best; a masked one is not judged."""
    return verdict.outcome is Outcome.REFUTED or (
        verdict.outcome is Outcome.NO_CLAIMS and verdict.reward is not None and verdict.reward < 0
    )
