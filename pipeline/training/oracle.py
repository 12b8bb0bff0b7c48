"""Ground truth beside the reward, where a world or a row has it. It is looked at and never trained on.

A rising reward proves nothing by itself: every collapse of self-checking (all roles agree on one number, a
Checker that invents the evidence, answers without claims) looks fine in it. What shows them is how often the
reward is the best one while the answer is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from pipeline.worlds.wiki.settings import WikiSettings
from reward.claims import kinds_for, targets_of
from reward.claims.kind import ClaimKind, Target
from reward.config import AuditConfig
from reward.judging.unjudged import abstains, says_nothing
from reward.types import ClaimState, Outcome, RagQuery, Record, Verdict

_ALL_KINDS = AuditConfig(kinds=("number", "name", "date"))


class OracleJudgement(Record):
    """What the truth says of one answer and of the consensus on its claims."""

    faithful: bool
    false_accept: bool
    false_reject: bool
    abstained: bool = False
    answerable: bool = True
    right: bool | None = None  # all that is asked for and nothing wrong; None in records of earlier versions
    num_consensus: int = 0
    num_consensus_right: int = 0


class _Truth(Protocol):
    """What each world says of an answer."""

    @property
    def right(self) -> bool: ...

    @property
    def faithful(self) -> bool: ...

    @property
    def abstained(self) -> bool: ...

    @property
    def answerable(self) -> bool: ...


Oracle = Callable[[RagQuery, str, Verdict], OracleJudgement | None]


def oracle_for(name: str, wiki: WikiSettings | None = None) -> Oracle:
    """Returns the judge of a recipe's `oracle` setting; "none" judges nothing.

    Args:
        name: The setting.
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
    from pipeline.tiny.truth import is_written, oracle, true_answer

    truth = oracle(query, response)
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


def judge_against(truth: _Truth, verdict: Verdict, decided: Sequence[bool] = ()) -> OracleJudgement:
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


def is_right(query: RagQuery, answer: str, accepted: Sequence[str]) -> bool | None:
    """Whether an answer states one of the accepted ones: the same number, name or date, else the same words.

    What it says beside that is not looked at: the audit does. Where the query is known to be unanswerable,
    whether the answer says so and nothing else.

    Returns:
        None where no answer is known.
    """
    if not accepted and not query.unanswerable:
        return None
    kinds = kinds_for(_ALL_KINDS, query, answer)
    values = targets_of(answer, kinds)
    if query.unanswerable:
        return abstains(answer) and says_nothing(query, answer, values)
    return any(_states(answer, values, one, kinds) for one in accepted)


def _states(answer: str, values: Sequence[Target], accepted: str, kinds: dict[str, ClaimKind]) -> bool:
    for kind in kinds.values():
        truth = kind.read(accepted, of_documents=True)
        mentions = [value.mention for value in values if truth is not None and value.kind.name == kind.name]
        if any(kind.bears_out(kind.taken_as(truth, mention), mention) for mention in mentions):
            return True
    words = r"\s+".join(map(re.escape, accepted.split()))
    # No part of a word or of a longer number: "5" is not in "2.5".
    return re.search(rf"(?<![\w.,]){words}(?!\w|[.,]\d)", answer, re.IGNORECASE) is not None


def _is_refused(verdict: Verdict) -> bool:
    """An answer without claims is refused where it is paid less than the best; a masked one is not judged."""
    return verdict.outcome is Outcome.REFUTED or (
        verdict.outcome is Outcome.NO_CLAIMS and verdict.reward is not None and verdict.reward < 0
    )
