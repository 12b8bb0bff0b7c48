"""Verdicts that may be given again, by the content, the settings and the weights that they came from.

A frozen model gives one verdict for one content, for as long as there is memory for it. In training the
weights are part of the key and everything is forgotten when they change, so no verdict outlives the policy
that gave it; within one version a verdict is kept only for a retry of its request, since a second look at the
same words must be a second sample. UNSCORED is never kept: a failure is tried again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from reward.samplers import Weights
from reward.types import AuditResult, Outcome, RagQuery

_BYTES_A_VERDICT = 4096  # records, strings and their pointers, on the high side
_BYTES_A_VOTE = 1024
_BYTES_A_TOKEN = 40  # an int or a float in a tuple


def content_key(query: RagQuery, response: str, *, settings: str, weights: Weights | None) -> bytes:
    """SHA-256 (32 bytes) of what decides a verdict.

    Args:
        query: The query and its documents; its id, too, since the verdict bears it.
        response: What is audited.
        settings: Digest of the audit's settings.
        weights: Of the policy in training; None for a frozen model.
    """
    texts = [settings, repr(weights), query.id, query.query, repr(query.unanswerable), response]
    for document in query.documents:
        texts += [document.id, document.title, document.text]
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8))  # so that no text can run into the next
        digest.update(data)
    return digest.digest()


class VerdictCache:
    """The results last given, bounded by an upper estimate of their bytes; the longest unused go first.

    An entry has an `asker`: None when any request may have it (a frozen model), else the idempotency key of
    the request that it was given to, or "" for requests without one (OpenRLHF's), whose retries only the
    content shows.
    """

    def __init__(self, max_bytes: int) -> None:
        self.num_bytes = 0
        self._max_bytes = max_bytes
        self._weights: Weights | None = None
        self._results: OrderedDict[tuple[bytes, str | None], tuple[AuditResult, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._results)

    def seen(self, weights: Weights | None) -> None:
        """Takes note of the weights of now; when they are others than before, everything is forgotten."""
        if weights != self._weights:
            self._weights = weights
            self._results.clear()
            self.num_bytes = 0

    def get(self, key: bytes, asker: str | None) -> AuditResult | None:
        """The result kept for a content and an asker."""
        if (key, asker) not in self._results:
            return None
        self._results.move_to_end((key, asker))
        return self._results[key, asker][0]

    def keep(self, key: bytes, asker: str | None, result: AuditResult, *, weights: Weights | None) -> None:
        """Keeps a scored result of the weights of now; any other is ignored."""
        version = None if weights is None else weights.version
        if result.verdict.outcome is Outcome.UNSCORED or weights != self._weights:
            return
        if result.verdict.weights_version not in (None, version):
            return
        entry, num_bytes = (key, asker), estimated_bytes(result)
        if num_bytes > self._max_bytes:
            return
        self.num_bytes += num_bytes - self._results.pop(entry, (result, 0))[1]
        self._results[entry] = (result, num_bytes)
        while self.num_bytes > self._max_bytes:
            _, (_, num_bytes) = self._results.popitem(last=False)
            self.num_bytes -= num_bytes


def estimated_bytes(result: AuditResult) -> int:
    """An upper estimate of a result's memory, in bytes."""
    num_tokens = sum(len(t.prompt_token_ids) + 2 * len(t.response_token_ids) for t in result.trajectories)
    votes = [vote for claim in result.verdict.claims for vote in claim.votes]
    num_chars = sum(len(vote.evidence) for vote in votes if vote is not None)
    return _BYTES_A_VERDICT + _BYTES_A_VOTE * len(votes) + 4 * num_chars + _BYTES_A_TOKEN * num_tokens
