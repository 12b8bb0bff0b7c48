"""The consensus of the voters on each claim, and what the claims' states mean for the whole response.

The consensus comes first (plurality over typed equality, "cannot answer" being one of the options), and only
then is it compared with the claim; the paper takes a majority of independent audits (section 2.3). The reward
is the paper's zero-tolerance reward (equation 6): one unsupported claim costs the whole response.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reward.config import AuditConfig, UncoveredPolicy
from reward.numbers import Number, canonical, parse_number, without_unit_of
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Outcome

CANNOT_ANSWER = "Cannot answer"


class Reason(StrEnum):
    """Why a verdict is what it is: the closed set of `Verdict.reason`."""

    SUPPORTED = "supported"
    # REFUTED: the state of the first claim that is not supported.
    CONTRADICTED = "contradicted"
    NOT_IN_DOCUMENTS = "not_in_documents"
    NO_CONSENSUS = "no_consensus"
    # REFUTED or UNSCORED, by the setting `uncovered`.
    UNCOVERED_NUMBERS = "uncovered_numbers"
    # NO_CLAIMS
    NO_NUMBERS = "no_numbers"
    # UNSCORED
    RESPONSE_TOO_LONG = "response_too_long"
    DOCUMENTS_TOO_LONG = "documents_too_long"
    PROPOSER_MALFORMED = "proposer_malformed"
    TOO_MANY_CLAIMS = "too_many_claims"
    TOO_FEW_VALID_VOTES = "too_few_valid_votes"
    # UNSCORED: the reasons of `SamplerError`.
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    PROMPT_TOO_LONG = "prompt_too_long"
    BAD_RESPONSE = "bad_response"
    ENGINE = "engine"
    # UNSCORED: of the reward server, and of a trainer that cannot reach it.
    DEADLINE = "deadline"
    INTERNAL = "internal"
    REWARD_SERVER = "reward_server"


@dataclass(frozen=True)
class Judgement:
    """What the claims and the coverage say of the whole response; `reward` is None when UNSCORED."""

    outcome: Outcome
    reward: float | None
    reason: Reason


def vote(
    claim: Claim, answers: Sequence[Answer | None], *, num_valid_needed: int, number: Number | None = None
) -> ClaimVerdict:
    """Takes the voters' consensus and compares it with the claim.

    Votes are counted in the claim's own unit: for a claim about "12%", the votes 12 and 12% are the same
    answer, while $12 is another; for a claim about a bare 12, 12% is another.

    Args:
        claim: The claim; its answer must be a number.
        answers: One vote a voter; None, or a value that is no number, is an invalid vote.
        num_valid_needed: Fewest valid votes that decide; with fewer the claim is FAILED.
        number: The number of the response that the claim is about; read from the claim's answer by default.
    """
    asked = number or parse_number(claim.answer)
    assert asked is not None, f"claim {claim.index} has no number: {claim.answer!r}"
    tally = Counter(option for answer in answers if (option := _option(answer, asked)) is not None)
    state, winner = _state(tally, canonical(without_unit_of(asked, asked)), num_valid_needed)
    return ClaimVerdict(
        claim=claim,
        state=state,
        consensus=None if winner == CANNOT_ANSWER else winner,
        votes=tuple(answers),
        tally=dict(tally),
        entropy=_entropy(tally),
    )


def judge(verdicts: Sequence[ClaimVerdict], *, num_uncovered: int, config: AuditConfig) -> Judgement:
    """Combines the claims into the verdict on the response.

    The first unsupported claim refutes; else a failed claim leaves the response unscored; else the numbers
    that no claim covers are treated as configured.

    Args:
        verdicts: At least one claim.
        num_uncovered: Numbers of the response that no claim covers.
        config: Rewards and the policy on uncovered numbers.
    """
    assert verdicts, "a response without claims is not judged by its claims"
    states = [verdict.state for verdict in verdicts]
    refuting = [s for s in states if s not in (ClaimState.SUPPORTED, ClaimState.FAILED)]
    if refuting:
        return Judgement(Outcome.REFUTED, config.reward_refuted, Reason(refuting[0].value))
    if ClaimState.FAILED in states:
        return Judgement(Outcome.UNSCORED, None, Reason.TOO_FEW_VALID_VOTES)
    if num_uncovered and config.uncovered is UncoveredPolicy.REFUTE:
        return Judgement(Outcome.REFUTED, config.reward_refuted, Reason.UNCOVERED_NUMBERS)
    if num_uncovered and config.uncovered is UncoveredPolicy.UNSCORED:
        return Judgement(Outcome.UNSCORED, None, Reason.UNCOVERED_NUMBERS)
    return Judgement(Outcome.SUPPORTED, config.reward_supported, Reason.SUPPORTED)


def _option(answer: Answer | None, asked: Number) -> str | None:
    """The option that a vote is counted under; None for an invalid vote."""
    if answer is None:
        return None
    if answer.value is None:
        return CANNOT_ANSWER
    number = parse_number(answer.value)
    return None if number is None else canonical(without_unit_of(number, asked))


def _state(tally: Counter[str], claimed: str, num_valid_needed: int) -> tuple[ClaimState, str | None]:
    """The claim's state and the option that won, if one did."""
    if not tally or tally.total() < num_valid_needed:
        return ClaimState.FAILED, None
    (winner, most), *others = tally.most_common(2)
    if others and others[0][1] == most:
        return ClaimState.NO_CONSENSUS, None
    if winner == CANNOT_ANSWER:
        return ClaimState.NOT_IN_DOCUMENTS, winner
    return (ClaimState.SUPPORTED if winner == claimed else ClaimState.CONTRADICTED), winner


def _entropy(tally: Counter[str]) -> float:
    """Shannon entropy of the valid votes, in nats."""
    total = tally.total()
    return max(0.0, -sum(count / total * math.log(count / total) for count in tally.values()))
