"""The reward server's figures, for Prometheus; every label comes from a closed set.

`infra/monitoring/` holds alerts and a dashboard over these names, and a test that they exist.
"""

import logging
import math
from collections.abc import Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reward.judging.vote import Reason
from reward.roles.asking import Turn
from reward.serving.logs import REFUSALS
from reward.types import ClaimState, Outcome, Role, Verdict

logger = logging.getLogger(__name__)

CERTIFICATES, TOKENS = FILES = ("certificates", "tokens")  # read again when they change
_ALIKE_IN_A_ROW = 20
_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 120, 180)
_STAGES = {Role.PROPOSER: "propose", Role.CHECKER: "check"}
_REASONS = frozenset(Reason)
_FAILURES = (Reason.TIMEOUT, Reason.CONNECTION, Reason.PROMPT_TOO_LONG, Reason.BAD_RESPONSE, Reason.ENGINE)


class AuditMetrics:
    """All figures, in a registry of their own."""

    def __init__(self, *, checker_temperature: float = 0.0) -> None:
        self.registry = CollectorRegistry()
        self._must_differ = checker_temperature > 0
        self._num_alike = 0  # Checker requests in a row whose voters all wrote the same
        counter = partial(Counter, registry=self.registry)
        self._audits = counter("march_audits", "Audits ended", ["outcome", "reason"])
        self._claims = counter("march_claims", "Claims judged", ["state"])
        self._mentions = counter("march_mentions", "Mentions in audited responses that need a check")
        self._uncovered = counter("march_mentions_uncovered", "Those of them that no claim covers")
        self._votes = counter("march_votes", "Votes on claims, valid or unreadable", ["state"])
        self._agreeing = counter("march_votes_agreeing", "Valid votes for the claim's first place")
        self._asked_voters = counter(
            "march_voters_asked", "Checker requests to several voters at a temperature above 0"
        )
        self._repeating = counter(
            "march_voters_repeating", "Those of them whose voters all wrote the same, word for word"
        )
        self._tokens = counter("march_tokens", "Tokens, where the sampler gives them", ["stage", "kind"])
        self._prompt_tokens = counter(
            "march_prompt_tokens", "Prompt tokens, where the engine says what its cache held", ["role"]
        )
        self._cached_tokens = counter(
            "march_cached_prompt_tokens", "Those of them that its prefix cache held", ["role"]
        )
        self._failures = counter("march_sampler_failures", "Requests to the sampler failed", ["reason"])
        self.special_tokens = counter(
            "march_special_tokens", "Special tokens that responses spelled out; broken up in every prompt"
        )
        self.joined = counter("march_audits_joined", "Requests that joined an audit under way")
        self.cached = counter("march_audits_cached", "Requests answered with a verdict given before")
        self.retried = counter("march_audits_retried", "Audits tried a second time")
        self.cancelled = counter("march_audits_cancelled", "Audits ended because no client waited")
        self.refused = counter("march_requests_refused", "Requests refused before an audit began", ["reason"])
        self.refused_connections = counter(
            "march_connections_refused", "Connections ended before or beside a request", ["reason"]
        )
        histogram = partial(Histogram, buckets=_SECONDS, registry=self.registry)
        self._seconds = histogram("march_audit_seconds", "An audit from its acceptance to its end")
        self.wait = histogram("march_audit_wait_seconds", "An audit's wait for a place")
        self._stage = histogram("march_stage_seconds", "One request to the sampler", ["stage"])
        gauge = partial(Gauge, registry=self.registry)
        self.in_flight = gauge("march_audits_in_flight", "Audits that have a place")
        self.waiting = gauge("march_audits_waiting", "Audits that wait for a place")
        self._refused_files = gauge(
            "march_files_refused", "1 while a changed file cannot be used and the old content holds", ["what"]
        )
        self.weights_version = gauge("march_weights_version", "Of the policy in training; else NaN")
        self.weights_version.set(math.nan)
        self._begin_at_zero()

    def file_read(self, what: str, is_usable: bool) -> None:
        """A file of `FILES` has changed and was read."""
        self._refused_files.labels(what).set(not is_usable)

    def audit_ended(self, verdict: Verdict, *, seconds: float) -> None:
        reason = verdict.reason if verdict.reason in _REASONS else "other"
        self._audits.labels(verdict.outcome.value, reason).inc()
        self._seconds.observe(seconds)
        self._mentions.inc(verdict.num_mentions)
        self._uncovered.inc(len(verdict.uncovered))
        for claim in verdict.claims:
            num_valid = sum(vote is not None for vote in claim.votes)
            self._claims.labels(claim.state.value).inc()
            self._votes.labels("valid").inc(num_valid)
            self._votes.labels("unreadable").inc(len(claim.votes) - num_valid)
            self._agreeing.inc(max(claim.tally.values(), default=0))

    def turn_ended(self, turn: Turn) -> None:
        """Counts a request to the sampler; an `Observer` of audits."""
        stage = _STAGES[turn.role]
        self._stage.labels(stage).observe(turn.seconds)
        if turn.group is None:
            self._failures.labels(turn.failure if turn.failure in _REASONS else "other").inc()
            return
        if turn.role is Role.CHECKER:
            self._compare_voters([sample.text for sample in turn.group.samples])
        if (use := turn.group.use) is None:
            return
        self._tokens.labels(stage, "prompt").inc(use.num_prompt)
        self._tokens.labels(stage, "completion").inc(use.num_completion)
        if use.num_cached is not None:
            self._prompt_tokens.labels(turn.role.value).inc(use.num_prompt)
            self._cached_tokens.labels(turn.role.value).inc(use.num_cached)

    def _compare_voters(self, texts: Sequence[str]) -> None:
        """Voters who repeat each other are one voter: of a broken sampler, a fixed seed or a cache."""
        if not self._must_differ or len(texts) < 2:
            return
        self._asked_voters.inc()
        is_same = len(set(texts)) == 1
        if is_same:
            self._repeating.inc()
        self._num_alike = self._num_alike + 1 if is_same else 0
        if self._num_alike == _ALIKE_IN_A_ROW:  # said once, until voters differ again
            logger.warning(
                "the voters of %d audits in a row repeat each other word for word; look for a fixed seed, a "
                "temperature that the engine ignores, or a cache of completions",
                self._num_alike,
            )

    def _begin_at_zero(self) -> None:
        """Shows what has not happened yet as 0, so that its first time is a rise and not a new series."""
        for state in ClaimState:
            self._claims.labels(state.value)
        for kind in ("valid", "unreadable"):
            self._votes.labels(kind)
        for refusal in REFUSALS:
            self.refused.labels(refusal)
        for failure in (*_FAILURES, "other"):
            self._failures.labels(failure)
        for what in FILES:
            self._refused_files.labels(what)
        self._audits.labels(Outcome.NO_CLAIMS.value, Reason.NO_CLAIMS)
