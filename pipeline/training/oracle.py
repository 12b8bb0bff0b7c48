"""Ground truth beside the reward, where a world or a row has it. It is looked at and never trained on.

A rising reward proves nothing by itself: every collapse of self-checking (all roles agree on one number, a
Checker that invents the evidence, answers without claims) looks fine in it. What shows them is how often the
reward is the best one while the answer is wrong.
"""

from collections.abc import Callable
from functools import partial

from pipeline.record.rollout_record import OracleJudgement
from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.world import Judgement
from reward.judging.vote import vote
from reward.types import ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict

Oracle = Callable[[RagQuery, str, Verdict], OracleJudgement | None]
IsRight = Callable[[str, str | None], bool | None]  # of a question and its consensus; None: nobody knows


def oracle_for(name: str, wiki: WikiSettings | None = None) -> Oracle:
    """Returns the judge of a recipe's `oracle`; "wiki" judges the rows that are made with these settings."""
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

    def is_right(question: str, consensus: str | None) -> bool | None:
        known = true_answer(query, question)
        return None if known is None else is_written(consensus, known)

    return judge_against(judge(query, response), verdict, is_right)


def _judge_of_wiki(settings: WikiSettings | None) -> Oracle:
    """Judges answers to the rows of real text, which are found by the ids of their queries."""
    from pipeline.worlds.judge import judge as judge_row
    from pipeline.worlds.wiki.world import WikiWorld, is_right_consensus

    world = WikiWorld(settings)

    def judge(query: RagQuery, response: str, verdict: Verdict) -> OracleJudgement | None:
        row = world.by_id.get(query.id)
        if row is None:
            return None
        return judge_against(judge_row(row, response), verdict, partial(is_right_consensus, row))

    return judge


def judge_against(
    truth: Judgement, verdict: Verdict, is_right: IsRight = lambda question, consensus: None
) -> OracleJudgement:
    """What a world knows of an answer beside its verdict."""
    claims = (claim for claim in verdict.voted_claims if claim.state is not ClaimState.FAILED)
    found = [_is_consensus_right(claim, is_right) for claim in claims]
    decided = [right for right in found if right is not None]
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


def _is_consensus_right(claim: ClaimVerdict, is_right: IsRight) -> bool | None:
    """Whether most voters answer rightly, whatever a lookup says; without a majority they do not."""
    own = vote(claim.claim, claim.votes, num_valid_needed=1) if claim.votes else claim
    if own.state is ClaimState.FAILED:
        return None
    right = is_right(claim.claim.question, own.consensus)
    return right if right is None else right and own.state is not ClaimState.NO_CONSENSUS


def _is_refused(verdict: Verdict) -> bool:
    """An answer without claims is refused where it is paid less than the best; a masked one is not judged."""
    return verdict.outcome is Outcome.REFUTED or (
        verdict.outcome is Outcome.NO_CLAIMS and verdict.reward is not None and verdict.reward < 0
    )
