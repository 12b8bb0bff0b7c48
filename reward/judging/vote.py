"""The consensus of the voters on each claim, and what the claims' states mean for the whole response.

The consensus comes first (plurality over typed equality, "cannot answer" being one of the options), and only
then is it compared with the claim; the paper takes a majority of independent audits (section 2.3). The reward
is the paper's zero-tolerance reward (equation 6): one unsupported claim costs the whole response. Or it is
the error-rate reward of its ablation (section 3.4): minus the share of unsupported claims.

Votes are bare numbers as a rule, and are read in the terms of the claim (`reward.judging.readings`): for a
claim about "over 270 cars" the Checker was asked "more than how many?", and its 270 is that bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from reward.claims.numbers import ENGLISH, Conventions, Number, canonical, equal, parse_number
from reward.config import AuditConfig, RewardFunction, UncoveredPolicy
from reward.judging.evidence import holds
from reward.judging.readings import bears_out, in_terms_of, vote_as
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Document, Outcome

CANNOT_ANSWER = "Cannot answer"
_UNSUPPORTED = (ClaimState.CONTRADICTED, ClaimState.NOT_IN_DOCUMENTS, ClaimState.NO_CONSENSUS)


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
    INVALID_TEXT = "invalid_text"
    RESPONSE_TOO_LONG = "response_too_long"
    DOCUMENTS_TOO_LONG = "documents_too_long"
    PROPOSER_MALFORMED = "proposer_malformed"
    TOO_MANY_CLAIMS = "too_many_claims"
    TOO_FEW_CLAIMS = "too_few_claims"
    TOO_FEW_VALID_VOTES = "too_few_valid_votes"
    UNREAD_DOCUMENTS = "unread_documents"
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
    UNTRUSTED = "untrusted_answer"  # something answered in its place, or altered what it said
    REWARD_MODEL = "reward_model"  # that of an extra term gave no score


@dataclass(frozen=True)
class Judgement:
    """What the claims and the coverage say of the whole response; `reward` is None when UNSCORED."""

    outcome: Outcome
    reward: float | None
    reason: Reason


@dataclass(frozen=True)
class ErrorCount:
    """The paper's N_err and N_total of one response."""

    num_errors: int
    num_total: int

    @property
    def rate(self) -> float:
        """Share of errors, from 0 to 1."""
        return self.num_errors / self.num_total


@dataclass
class _Option:
    """What some voters answered: one number, or None for "cannot answer"."""

    number: Number | None
    votes: list[Answer] = field(default_factory=list)


def vote(
    claim: Claim,
    answers: Sequence[Answer | None],
    *,
    num_valid_needed: int,
    number: Number | None = None,
    relative_tolerance: float = 0.0,
    documents: Sequence[Document] = (),
    conventions: Conventions = ENGLISH,
) -> ClaimVerdict:
    """Takes the voters' consensus and compares it with the claim.

    Votes are counted in the claim's own unit: for a claim about "12%", the votes 12 and 12% are the same
    answer, while $12 is another; for a claim about a bare 12, 12% is another. The verdict does not depend on
    the order of the votes: `equal` is an equivalence, and an option has the most exact of its writings.

    Args:
        claim: The claim; its answer must be a number.
        answers: One vote a voter; None, or a value that is no number, is an invalid vote.
        num_valid_needed: Fewest valid votes that decide; with fewer the claim is FAILED.
        number: The number of the response that the claim is about; read from the claim's answer by default.
        relative_tolerance: How far the consensus may be from the claim, as a share of it.
        documents: Where the answers' evidence stands, to say whether it holds the consensus.
        conventions: How the answers write "1.500": as the documents that they are read from.
    """
    asked = _asked(claim, number)
    options = _options(answers, asked, conventions)
    winner = _plurality(options)
    valid = sum(len(option.votes) for option in options)
    if valid < num_valid_needed or not options:
        winner, state = None, ClaimState.FAILED
    elif winner is None:
        state = ClaimState.NO_CONSENSUS
    elif winner.number is None:
        state = ClaimState.NOT_IN_DOCUMENTS
    else:
        agreed = bears_out(winner.number, asked, relative_tolerance=relative_tolerance)
        state = ClaimState.SUPPORTED if agreed else ClaimState.CONTRADICTED
    return ClaimVerdict(
        claim=claim,
        state=state,
        consensus=_text(winner, asked) if winner and winner.number else None,
        votes=tuple(answers),
        tally=_tally(options, asked),
        entropy=_entropy([len(option.votes) for option in options]),
        evidence_holds_consensus=_is_held(winner, documents, conventions),
    )


def is_decided(
    claim: Claim,
    answers: Sequence[Answer | None],
    *,
    num_outstanding: int,
    num_valid_needed: int,
    number: Number | None = None,
    conventions: Conventions = ENGLISH,
) -> bool:
    """Whether no outcome of the outstanding votes can change the claim's state.

    Args:
        claim: The claim.
        answers: The votes so far.
        num_outstanding: How many voters were not asked yet.
        num_valid_needed: As for `vote`.
        number: As for `vote`.
        conventions: As for `vote`.
    """
    options = _options(answers, _asked(claim, number), conventions)
    sizes = sorted((len(option.votes) for option in options), reverse=True)
    if sum(sizes) < num_valid_needed:
        return sum(sizes) + num_outstanding < num_valid_needed
    second = sizes[1] if len(sizes) > 1 else 0
    return sizes[0] - second > num_outstanding


def judge(
    verdicts: Sequence[ClaimVerdict],
    *,
    num_uncovered: int,
    config: AuditConfig,
    num_numbers: int | None = None,
    any_unread: bool = False,
) -> Judgement:
    """Combines the claims into the verdict on the response.

    The first unsupported claim refutes; else a failed claim leaves the response unscored; else the numbers
    that no claim covers are treated as configured. With `reward_function: error_rate` a failed claim leaves
    the response unscored even beside unsupported ones, and so does whatever else hides the rate: zero
    tolerance needs to know one error, a rate needs to know them all.

    Args:
        verdicts: At least one claim.
        num_uncovered: Numbers of the response that no claim covers.
        config: Rewards and the policy on uncovered numbers.
        num_numbers: All numbers of the response; by default one for each claim, and the uncovered ones.
        any_unread: Whether a claim failed because some of the documents was shown to no voter.
    """
    assert verdicts, "a response without claims is not judged by its claims"
    states = [verdict.state for verdict in verdicts]
    total = num_numbers if num_numbers is not None else len(verdicts) + num_uncovered
    wrong = next((state for state in states if state in _UNSUPPORTED), None)
    hidden = _hidden(states, num_uncovered, total, config, any_unread=any_unread)
    if hidden and (wrong is None or config.reward_function is RewardFunction.ERROR_RATE):
        return Judgement(Outcome.UNSCORED, None, hidden)
    errors = error_count(verdicts, num_uncovered=num_uncovered, config=config)
    reward = _reward(errors, num_uncovered / total if total else 0.0, config)
    if not errors.num_errors:
        return Judgement(Outcome.SUPPORTED, reward, Reason.SUPPORTED)
    return Judgement(Outcome.REFUTED, reward, Reason(wrong.value) if wrong else Reason.UNCOVERED_NUMBERS)


def error_count(verdicts: Sequence[ClaimVerdict], *, num_uncovered: int, config: AuditConfig) -> ErrorCount:
    """Counts a response's errors for the error-rate reward, -N_err / N_total (paper, section 3.4).

    N_total is the claims that were put to the vote, those from templates too, and, unless `uncovered` is
    ignore, each number that no claim covers as a claim of its own. Claims that coverage dropped, which are
    about no number of the response, are in neither count. N_err is the claims whose consensus is another
    number, "cannot answer" or none at all, and those uncovered numbers: what was not checked is not
    supported. FAILED claims are in N_total only; a response that has one gets no error rate.
    """
    unchecked = 0 if config.uncovered is UncoveredPolicy.IGNORE else num_uncovered
    wrong = sum(verdict.state in _UNSUPPORTED for verdict in verdicts)
    return ErrorCount(wrong + unchecked, len(verdicts) + unchecked)


def _hidden(
    states: Sequence[ClaimState], num_uncovered: int, total: int, config: AuditConfig, *, any_unread: bool
) -> Reason | None:
    """What keeps some of the response's claims or numbers from being judged, if anything does."""
    if ClaimState.FAILED in states:
        return Reason.UNREAD_DOCUMENTS if any_unread else Reason.TOO_FEW_VALID_VOTES
    if num_uncovered and config.uncovered is UncoveredPolicy.UNSCORED:
        return Reason.UNCOVERED_NUMBERS
    few = config.uncovered is UncoveredPolicy.IGNORE and len(states) < min(config.min_claims, total)
    return Reason.TOO_FEW_CLAIMS if num_uncovered and few else None


def _reward(errors: ErrorCount, uncovered_share: float, config: AuditConfig) -> float:
    """From `reward_supported` down to `reward_refuted`, and never below."""
    is_rate = config.reward_function is RewardFunction.ERROR_RATE
    loss = errors.rate if is_rate else float(errors.num_errors > 0)
    reward = config.reward_supported + (config.reward_refuted - config.reward_supported) * loss
    if config.uncovered is UncoveredPolicy.IGNORE:
        reward -= config.coverage_penalty * uncovered_share
    return max(reward, config.reward_refuted)


def _asked(claim: Claim, number: Number | None) -> Number:
    asked = number or parse_number(claim.answer)
    assert asked is not None, f"claim {claim.index} has no number: {claim.answer!r}"
    return asked


def _options(answers: Sequence[Answer | None], asked: Number, conventions: Conventions) -> list[_Option]:
    """The valid votes by what they answer, in the order in which each option was first voted for."""
    options: list[_Option] = []
    for answer in answers:
        number = (
            parse_number(answer.value, conventions=conventions)
            if answer and answer.value is not None
            else None
        )
        if answer is None or (number is None and answer.value is not None):
            continue
        read = vote_as(number, asked) if number is not None else None
        fitting = (option for option in options if _is_same(option.number, read))
        option = next(fitting, None)
        if option is None:
            options.append(option := _Option(read))
        elif read is not None and option.number is not None:
            option.number = min(option.number, read, key=_writing)
        option.votes.append(answer)
    return options


def _writing(number: Number) -> tuple[tuple[Decimal, ...], bool, str]:
    """What tells equal numbers apart, the most exact first: "1,234,000" before "about 1.234 million"."""
    return number.steps, number.approximate, canonical(number)


def _is_same(a: Number | None, b: Number | None) -> bool:
    return a is b is None or (a is not None and b is not None and equal(a, b))


def _plurality(options: Sequence[_Option]) -> _Option | None:
    """The option with the most votes; None when the first place is shared or empty."""
    most = max((len(option.votes) for option in options), default=0)
    first = [option for option in options if len(option.votes) == most]
    return first[0] if len(first) == 1 else None


def _tally(options: Sequence[_Option], asked: Number) -> dict[str, int]:
    tally: dict[str, int] = {}
    for option in options:
        tally[_text(option, asked)] = tally.get(_text(option, asked), 0) + len(option.votes)
    return tally


def _text(option: _Option, asked: Number) -> str:
    return CANNOT_ANSWER if option.number is None else canonical(in_terms_of(option.number, asked))


def _is_held(winner: _Option | None, documents: Sequence[Document], conventions: Conventions) -> bool | None:
    """Whether a vote for the consensus has verbatim evidence that holds it; None where there is no number."""
    if winner is None or winner.number is None or not documents:
        return None
    texts = {document.id: document.text for document in documents}
    for answer in winner.votes:
        number, at = parse_number(answer.value or "", conventions=conventions), answer.evidence_at
        if number and at and holds(texts[at.document][at.start : at.end], number):
            return True
    return False


def _entropy(sizes: Sequence[int]) -> float:
    """Shannon entropy of the valid votes, in nats."""
    total = sum(sizes)
    return max(0.0, -math.fsum(size / total * math.log(size / total) for size in sizes))
