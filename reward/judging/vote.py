"""The judge: from votes, evidence and coverage to a claim's state, and to the response's outcome and reward.

First the voters' consensus on each claim, then the claims together. Nothing after this module decides.

| the votes on one claim | state |
|---|---|
| fewer readable votes than `min_valid_voters` | FAILED |
| no majority of the readable votes, and one that is missing could have decided | FAILED |
| no answer has more than half of the readable votes | NO_CONSENSUS |
| the majority says "cannot answer" | NOT_IN_DOCUMENTS |
| the majority's answer bears the claim out (`ClaimKind.bears_out`) | SUPPORTED |
| the majority's answer is another one | CONTRADICTED |

A vote whose evidence is in no document counts as "cannot answer" with `verbatim_evidence`. A bare vote
states a bound ("over 270") only if the document does where its evidence is. Votes are grouped by an
equivalence, so their order never matters, and a minority never decides. What the lookup refutes of the kinds
in `refute_by_lookup` is refuted (`reward.judging.coverage.with_lookup`): a SUPPORTED or FAILED claim takes
the lookup's state, and what no claim is about becomes one.

| the response | outcome | reward, `march` | reward, `paper` |
|---|---|---|---|
| some claim CONTRADICTED, NOT_IN_DOCUMENTS or NO_CONSENSUS | REFUTED | -1 | -1 |
| no usable claim, and the lookup finds one that the documents refute | REFUTED | -1 | none: UNSCORED |
| else some claim FAILED, or the audit itself failed | UNSCORED | none | none |
| else a mention that no claim covers (`uncovered`) | REFUTED | -1 (`refute`) | ignored |
| else all claims SUPPORTED | SUPPORTED | 0 | 0 |
| claims, to a query that is known to be unanswerable | REFUTED | -1 | as the claims say |
| all claims SUPPORTED, and they count something else than the query asks | REFUTED | -1 | 0 |
| no claim, and it says that the documents do not say, as is known | NO_CLAIMS | by setting | none |
| no claim, and it says that the documents do not say | NO_CLAIMS, `abstention` | none, or by setting | none |
| no claim, and it says something else | NO_CLAIMS, `no_claims` | none, or by setting | none |

None is no reward: a training masks the response. `march` and `paper` are a training's presets; for the lookup
see `reward.judging.unjudged`. The reward is the paper's zero-tolerance reward (equation 6), or the error-rate
reward of its ablation (section 3.4): minus the share of unsupported claims.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from reward.claims import target_of
from reward.claims.kind import Target
from reward.config import AuditConfig, RewardFunction, UncoveredPolicy
from reward.types import Answer, Claim, ClaimState, ClaimVerdict, Outcome

CANNOT_ANSWER = "Cannot answer"
UNREAD_NOTE = "cannot be answered from what was read, and some of the documents was not read"
_UNSUPPORTED = (ClaimState.CONTRADICTED, ClaimState.NOT_IN_DOCUMENTS, ClaimState.NO_CONSENSUS)


class Reason(StrEnum):
    """Why a verdict is what it is: the closed set of `Verdict.reason`."""

    SUPPORTED = "supported"
    # REFUTED: the state of the first claim that is not supported.
    CONTRADICTED = "contradicted"
    NOT_IN_DOCUMENTS = "not_in_documents"
    NO_CONSENSUS = "no_consensus"
    # REFUTED or UNSCORED, by the setting `uncovered`.
    UNCOVERED = "uncovered"
    UNANSWERABLE = "unanswerable"  # REFUTED: the documents are known not to answer, and it makes claims
    OTHER_COUNT = "other_count"  # REFUTED: true, and about another count than the query asks for
    REFUTED_WITHOUT_CLAIMS = "refuted_without_claims"  # REFUTED by a lookup, since the Proposer failed
    # NO_CLAIMS
    ABSTENTION = "abstention"  # it says that the documents do not say
    NO_CLAIMS = "no_claims"
    # UNSCORED
    INVALID_TEXT = "invalid_text"
    RESPONSE_TOO_LONG = "response_too_long"
    QUERY_TOO_LONG = "query_too_long"
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


# Nobody asked a question about these, or the query itself decides: another Checker cannot agree or disagree.
WITHOUT_VOTERS = (Reason.REFUTED_WITHOUT_CLAIMS, Reason.UNANSWERABLE, Reason.OTHER_COUNT)


class Judgement(NamedTuple):
    """What the claims and the coverage say of the whole response; `reward` is None when UNSCORED."""

    outcome: Outcome
    reward: float | None
    reason: Reason


@dataclass(frozen=True)
class ErrorCount:
    """The paper's N_err and N_total of one response."""

    num_errors: int
    num_total: int


@dataclass
class _Option:
    """What some voters answered: one number, name or date, or None for "cannot answer"."""

    answer: Any | None
    votes: list[Answer] = field(default_factory=list)
    writings: list[Any] = field(default_factory=list)  # what equal votes say, each as exactly as it does


def vote(
    claim: Claim,
    answers: Sequence[Answer | None],
    *,
    num_valid_needed: int,
    target: Target | None = None,
    relative_tolerance: float = 0.0,
) -> ClaimVerdict:
    """Takes the voters' consensus, which needs more than half of the readable votes, and compares it.

    Votes are counted in the claim's own terms: for a claim about "12%", the votes 12 and 12% are the same
    answer, while $12 is another; for a claim about a bare 12, 12% is another.

    Args:
        claim: The claim; its answer must be readable by its kind.
        answers: One vote a voter; None, or a value that its kind cannot read, is an invalid vote.
        num_valid_needed: Fewest valid votes that decide; with fewer the claim is FAILED.
        target: What of the response the claim is about; read from the claim's answer by default.
        relative_tolerance: How far the consensus may be from the claim, as a share of it.
    """
    asked = target or target_of(claim)
    options = _options(answers, asked)
    valid = sum(len(option.votes) for option in options)
    winner = next((option for option in options if len(option.votes) * 2 > valid), None)
    given: _Option | None = None  # the majority's number, name or date
    if valid < num_valid_needed or not options:
        state = ClaimState.FAILED
    elif winner is None and _could_be_won(options, num_invalid=len(answers) - valid):
        state = ClaimState.FAILED  # a vote that is missing makes no tie
    elif winner is None:
        state = ClaimState.NO_CONSENSUS
    elif winner.answer is None:
        state = ClaimState.NOT_IN_DOCUMENTS
    else:
        given = winner
        agreed = any(
            asked.kind.bears_out(one, asked.mention, relative_tolerance=relative_tolerance)
            for one in given.writings
        )
        state = ClaimState.SUPPORTED if agreed else ClaimState.CONTRADICTED
    return ClaimVerdict(
        claim=claim,
        state=state,
        consensus=_text(given, asked) if given else None,
        votes=tuple(answers),
        tally=Counter(_text(option, asked) for option in options for _ in option.votes),
        entropy=_entropy([len(option.votes) for option in options]),
        evidence_holds_consensus=any(one.evidence_says for one in given.votes) if given else None,
    )


def _could_be_won(options: Sequence[_Option], *, num_invalid: int) -> bool:
    """Whether the votes that cannot be read could have given an option the majority of all votes."""
    sizes = [len(option.votes) for option in options]
    return num_invalid > 0 and (max(sizes) + num_invalid) * 2 > sum(sizes) + num_invalid


def gives_majority(answers: Sequence[Answer | None], target: Target) -> list[bool]:
    """(V,) whether each vote gives the number, name or date of more than half of the readable votes."""
    options = _options(answers, target)
    valid = sum(len(option.votes) for option in options)
    won = [one for one in options if one.answer is not None and len(one.votes) * 2 > valid]
    return [any(answer is vote_ for one in won for vote_ in one.votes) for answer in answers]


def is_decided(
    claim: Claim,
    answers: Sequence[Answer | None],
    *,
    num_outstanding: int,
    num_valid_needed: int,
    target: Target | None = None,
) -> bool:
    """Whether no outcome of the outstanding votes can change the claim's state."""
    sizes = [len(option.votes) for option in _options(answers, target or target_of(claim))]
    valid = sum(sizes)
    if valid < num_valid_needed:
        return valid + num_outstanding < num_valid_needed
    return max(sizes) * 2 > valid + num_outstanding  # stays a majority, whatever the others say


def judge(
    verdicts: Sequence[ClaimVerdict],
    *,
    num_uncovered: int,
    config: AuditConfig,
    num_mentions: int | None = None,
) -> Judgement:
    """Combines the claims into the verdict on the response.

    The first unsupported claim refutes; else a failed claim leaves the response unscored; else the numbers
    that no claim covers are treated as configured. With `reward_function: error_rate` a failed claim leaves
    the response unscored even beside unsupported ones, and so does whatever else hides the rate: zero
    tolerance needs to know one error, a rate needs to know them all. By default all that is mentioned is what
    the claims are about, and what none covers.
    """
    assert verdicts, "a response without claims is not judged by its claims"
    total = num_mentions if num_mentions is not None else len(verdicts) + num_uncovered
    wrong = next((one.state for one in verdicts if one.state in _UNSUPPORTED), None)
    hidden = _hidden(verdicts, num_uncovered, total, config)
    if hidden and (wrong is None or config.reward_function is RewardFunction.ERROR_RATE):
        return Judgement(Outcome.UNSCORED, None, hidden)
    errors = error_count(verdicts, num_uncovered=num_uncovered, config=config)
    reward = _reward(errors, num_uncovered / total if total else 0.0, config)
    if not errors.num_errors:
        return Judgement(Outcome.SUPPORTED, reward, Reason.SUPPORTED)
    return Judgement(Outcome.REFUTED, reward, Reason(wrong.value) if wrong else Reason.UNCOVERED)


def error_count(verdicts: Sequence[ClaimVerdict], *, num_uncovered: int, config: AuditConfig) -> ErrorCount:
    """Counts a response's errors for the error-rate reward, -N_err / N_total (paper, section 3.4).

    N_total is the claims that were put to the vote and, unless `uncovered` is ignore, each number that no
    claim covers as a claim of its own. Claims that coverage dropped, which are about no number of the
    response, are in neither count. N_err is the claims whose consensus is another number, "cannot answer" or
    none at all, and those uncovered numbers: what was not checked is not supported. FAILED claims are in
    N_total only; a response that has one gets no error rate.
    """
    unchecked = 0 if config.uncovered is UncoveredPolicy.IGNORE else num_uncovered
    wrong = sum(verdict.state in _UNSUPPORTED for verdict in verdicts)
    return ErrorCount(wrong + unchecked, len(verdicts) + unchecked)


def _hidden(
    verdicts: Sequence[ClaimVerdict], num_uncovered: int, total: int, config: AuditConfig
) -> Reason | None:
    """What keeps some of the response's claims or numbers from being judged, if anything does."""
    if any(one.state is ClaimState.FAILED for one in verdicts):
        is_unread = any(one.note == UNREAD_NOTE for one in verdicts)
        return Reason.UNREAD_DOCUMENTS if is_unread else Reason.TOO_FEW_VALID_VOTES
    if num_uncovered and config.uncovered is UncoveredPolicy.UNSCORED:
        return Reason.UNCOVERED
    few = config.uncovered is UncoveredPolicy.IGNORE and len(verdicts) < min(config.min_claims, total)
    return Reason.TOO_FEW_CLAIMS if num_uncovered and few else None


def _reward(errors: ErrorCount, uncovered_share: float, config: AuditConfig) -> float:
    """From `reward_supported` down to `reward_refuted`, and never below."""
    is_rate = config.reward_function is RewardFunction.ERROR_RATE
    loss = errors.num_errors / errors.num_total if is_rate else float(errors.num_errors > 0)
    reward = config.reward_supported + (config.reward_refuted - config.reward_supported) * loss
    if config.uncovered is UncoveredPolicy.IGNORE:
        reward -= config.coverage_penalty * uncovered_share
    return max(reward, config.reward_refuted)


def _options(answers: Sequence[Answer | None], asked: Target) -> list[_Option]:
    """The valid votes by what they answer, in the order in which each option was first voted for."""
    options: list[_Option] = []
    for vote_ in answers:
        answer = read_vote(vote_, asked) if vote_ else None
        if vote_ is None or (answer is None and vote_.value is not None):
            continue
        option = next((one for one in options if _is_same(one.answer, answer, asked)), None)
        if option is None:
            options.append(option := _Option(answer))
        option.votes.append(vote_)
        option.writings.append(answer)
    return options


def read_vote(answer: Answer, asked: Target) -> Any | None:
    """What a vote says, in the terms of the claim; None where it says nothing of the claim's kind."""
    kind = asked.kind
    if answer.value is None:
        return None
    value = kind.read(answer.value, of_documents=True, asked=asked.mention)
    if value is None:
        return None
    stated = kind.read(answer.evidence_says, of_documents=True) if answer.evidence_says else None
    return kind.taken_as(value, asked.mention, stated=stated)


def _is_same(a: Any | None, b: Any | None, asked: Target) -> bool:
    return a is b is None or (a is not None and b is not None and asked.kind.equal(a, b))


def _text(option: _Option, asked: Target) -> str:
    if option.answer is None:
        return CANNOT_ANSWER
    return min(asked.kind.written(one, asked.mention) for one in option.writings)


def _entropy(sizes: Sequence[int]) -> float:
    """Shannon entropy of the valid votes, in nats."""
    total = sum(sizes)
    return max(0.0, -math.fsum(size / total * math.log(size / total) for size in sizes))
