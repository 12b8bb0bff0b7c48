"""Verdicts without a judgement: what is refused before it is read, what failed, and what says nothing to
check.

An answer without claims is no failure. It abstains if it says that the documents do not say; else it evades.
Both have no reward unless a setting gives them one, and each has its own reason, so that a policy that learns
one of them can be seen.
"""

import re
from collections.abc import Sequence

from reward.claims.day_names import FIRST_WORDS
from reward.claims.kind import Target
from reward.claims.letters import REVERSING
from reward.claims.names.capitals import num_capitalised
from reward.claims.numbers.digits import VULGAR
from reward.claims.numbers.starts import num_starts
from reward.claims.text import sentence_span
from reward.config import AuditConfig, RewardFunction
from reward.judging.vote import Reason
from reward.samplers import SamplerError
from reward.types import ClaimState, ClaimVerdict, Document, Outcome, Provenance, RagQuery, Span, Verdict

_DIGIT_RUN = re.compile(rf"[\d{''.join(VULGAR)}]+")
_MOST_RUNS_A_CLAIM = 16  # a date with a time has seven; more than this is refused before numbers are read
_MOST_STARTS_A_CLAIM = 40  # no number and no name has so many words
_SOURCES = r"(?:documents?|passages?|texts?|sources?|contexts?|articles?|information|excerpts?|reviews?)"
_NOT = r"(?:(?:do|does|did|is|are|was|were)(?: not|n['\u2019]t)|fails? to|cannot|no)"
_ABLE = r"(?:(?:can|could)(?: ?not|['\u2019]?t|n['\u2019]t)|unable to)"
_ABSTENTION = re.compile(
    rf"\b{_SOURCES}\b[^.!?\n]{{0,80}}\b{_NOT}\b"
    rf"|\b{_SOURCES}\b[^.!?\n]{{0,40}} nothing\b|\bnone of (?:the|these|my) (?:\w+ )?{_SOURCES}\b"
    r"|\b(?:it|this|that) is (?:not known|unknown)\W*\Z|\A\W*unknown\W*\Z"
    rf"|\b(?:not|never|nowhere) (?:\w+ ){{0,3}}(?:in|by|from) (?:the|these|any|my|its) (?:\w+ )?{_SOURCES}\b"
    rf"|\b{_ABLE} (?:be )?(?:\w+ )?(?:answer|determin|say|tell|find|infer)"
    r"|\bno (?:\w+ ){0,2}(?:information|mention|answer|data|evidence)\b"
    r"|\bnot enough information\b|\binsufficient\b|\bunanswerable\b|\bI (?:do not|don['\u2019]?t) know\b"
    r"|\bnot (?:stated|mentioned|specified|given|provided)\b",
    re.IGNORECASE,
)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_NOTHING_ASKED = (
    *(Reason.PROPOSER_MALFORMED, Reason.TOO_MANY_CLAIMS, Reason.TOO_FEW_CLAIMS),
    Reason.PROMPT_TOO_LONG,  # of the Checker, whose questions the Proposer writes, or of the Proposer
)
_LONGEST_ABSTENTION = 600  # characters; what is longer says more than that


class AuditFailure(Exception):
    """The audit could not be carried through, by no fault of the sampler; becomes an UNSCORED verdict."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def num_document_chars(query: RagQuery) -> int:
    return sum(len(document.title) + len(document.text) for document in query.documents)


def check_lengths(query: RagQuery, response: str, config: AuditConfig) -> None:
    """Refuses what is too long to read at all; raises as `check_bounds`."""
    of = {
        "max_response_chars": (len(response), Reason.RESPONSE_TOO_LONG),
        "max_query_chars": (len(query.query), Reason.QUERY_TOO_LONG),
        "max_documents_chars": (num_document_chars(query), Reason.DOCUMENTS_TOO_LONG),
    }
    for name, (num_chars, reason) in of.items():
        if num_chars > getattr(config, name):
            raise AuditFailure(reason, f"{num_chars} characters exceed {name}: {getattr(config, name)}")


def check_bounds(query: RagQuery, response: str, config: AuditConfig) -> None:
    """Refuses what is too long to audit, holds far too many numbers, or is no text; nothing is cut to fit.

    Raises:
        AuditFailure: with `response_too_long`, `query_too_long`, `documents_too_long`, `too_many_claims` or
            `invalid_text`.
    """
    check_lengths(query, response, config)
    num_chars = num_document_chars(query)
    if num_chars > config.max_document_numbers:  # with fewer characters there can be no more numbers
        num_numbers = sum(num_starts(document.text) for document in query.documents)
        if num_numbers > config.max_document_numbers:
            detail = (
                f"{num_numbers} numbers in the documents exceed max_document_numbers: "
                f"{config.max_document_numbers}; give fewer documents or parts of them, or raise it"
            )
            raise AuditFailure(Reason.DOCUMENTS_TOO_LONG, detail)
    # A shorter response cannot hold as many.
    if len(response) > config.max_claims * _MOST_RUNS_A_CLAIM:
        num = len(_DIGIT_RUN.findall(response))
        if num > config.max_claims * _MOST_RUNS_A_CLAIM:
            raise _too_many(f"{num} runs of digits", config)
    most_starts = config.max_claims * _MOST_STARTS_A_CLAIM
    if len(response) > 2 * most_starts:
        days = FIRST_WORDS if "date" in config.kinds else frozenset()
        if (num := num_starts(response, days)) > most_starts:
            raise _too_many(f"{num} digits and number words", config)
        if "name" in config.kinds and (num := num_capitalised(response)) > most_starts:
            raise _too_many(f"{num} capitalised words", config)
    _check_text("response", response)
    if reversing := next((c for c in REVERSING if c in response), None):
        detail = f"response: {reversing!r} shows what follows in another order than it is written in"
        raise AuditFailure(Reason.INVALID_TEXT, detail)
    _check_text("query", query.query)
    for document in query.documents:
        _check_text("document", document.title, document.id)
        _check_text("document", document.text, document.id)


def _too_many(what: str, config: AuditConfig) -> AuditFailure:
    return AuditFailure(Reason.TOO_MANY_CLAIMS, f"{what} are far over max_claims: {config.max_claims}")


def _check_text(where: str, text: str, name: str = "") -> None:
    if text.isascii():  # costs nothing to know
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = f"{where} {name!r}" if name else where
        detail = f"{place}: {text[error.start]!r} is half of a surrogate pair, which is no text"
        raise AuditFailure(Reason.INVALID_TEXT, detail) from error


def abstains(response: str) -> bool:
    """Whether a response says that the documents do not say; short ones only, in English."""
    return len(response) <= _LONGEST_ABSTENTION and _ABSTENTION.search(response) is not None


def says_nothing(query: RagQuery, response: str, targets: Sequence[Target]) -> bool:
    """Whether there is nothing to check: no mention, or an abstention that only repeats its query's."""
    if not targets or not abstains(response):
        return not targets
    asked = [Document(id="query", text=query.query)]
    if any(target.kind.lookup(asked).find(target.mention) is None for target in targets):
        return False
    # "It is Lola. I cannot say more." chooses, where "I cannot say whether Lola is older" does not.
    spans = (sentence_span(response, target.mention.start, target.mention.end) for target in targets)
    return _OR.search(query.query) is None or all(_ABSTENTION.search(response, *span) for span in spans)


def no_claims(
    query: RagQuery, response: str, config: AuditConfig, *, provenance: Provenance | None = None
) -> Verdict:
    """The verdict on a response that says nothing to check."""
    reason, reward = Reason.NO_CLAIMS, config.reward_no_claims
    if abstains(response):
        reason, reward = Reason.ABSTENTION, config.reward_abstention
    return Verdict(
        id=query.id, outcome=Outcome.NO_CLAIMS, reward=reward, reason=reason, provenance=provenance
    )


def unscored(
    query: RagQuery,
    error: AuditFailure | SamplerError,
    *,
    num_mentions: int = 0,
    provenance: Provenance | None = None,
) -> Verdict:
    """The verdict where the audit itself failed."""
    return Verdict(
        id=query.id,
        outcome=Outcome.UNSCORED,
        reward=None,
        reason=error.reason,
        detail=error.detail,
        num_mentions=num_mentions,
        provenance=provenance,
    )


def may_be_looked_up(verdict: Verdict, config: AuditConfig) -> bool:
    """Whether no claim could be put to voters, and a lookup may refute the answer by setting.

    A rate of errors stays hidden: it needs to know all claims, and zero tolerance one error.
    """
    is_on = config.refute_without_claims and config.reward_function is RewardFunction.ZERO_TOLERANCE
    return is_on and verdict.outcome is Outcome.UNSCORED and verdict.reason in _NOTHING_ASKED


def refuted_by_lookup(verdict: Verdict, looked_up: Verdict, config: AuditConfig) -> Verdict:
    """What is left of a failure of the Proposer: REFUTED by what the documents refute, else as it was.

    An answer pays for what the documents do not support, and never for its Proposer: what the lookup
    supports is no reason for a reward, since nobody asked what it means. A mention that voters have supported
    is not looked up against them. The verdict is one that `may_be_looked_up`.
    """
    borne_out = [one.claim.span for one in verdict.claims if one.state is ClaimState.SUPPORTED]
    refuted = [
        one
        for one in looked_up.claims
        if one.state is not ClaimState.SUPPORTED and not _overlaps(one.claim.span, borne_out)
    ]
    if not refuted:
        return verdict
    failure = f"{verdict.reason}: {verdict.detail}" if verdict.detail else verdict.reason
    return verdict.model_copy(
        update={
            "outcome": Outcome.REFUTED,
            "reward": config.reward_refuted,
            "reason": Reason.REFUTED_WITHOUT_CLAIMS,
            "detail": f"the audit without a model decided, since the Proposer failed ({failure})",
            "claims": numbered([*verdict.claims, *refuted]),
        }
    )


def _overlaps(span: Span | None, others: Sequence[Span | None]) -> bool:
    return span is not None and any(
        o is not None and span.start < o.end and o.start < span.end for o in others
    )


def numbered(claims: Sequence[ClaimVerdict]) -> tuple[ClaimVerdict, ...]:
    """The claims with indices from 1 on, in order."""
    return tuple(
        one.model_copy(update={"claim": one.claim.model_copy(update={"index": index})})
        for index, one in enumerate(claims, start=1)
    )
