"""Response and documents as a reader sees them (`reward.claims.letters`): what all of an audit reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from reward.claims.letters import Seen, seen
from reward.claims.names.uncapitalised import with_capitals
from reward.config import AuditConfig
from reward.judging.unjudged import AuditFailure, check_lengths
from reward.roles.asking import answer_start
from reward.types import Answer, ClaimVerdict, DocumentSpan, RagQuery, Span, Verdict


@dataclass(frozen=True)
class Read:
    """A query and the answer of a response as they are read, and where all of it is written."""

    query: RagQuery
    answer: str
    start: int  # of the answer in the response
    seen_answer: Seen
    seen_documents: Mapping[str, Seen]  # those that are written otherwise, by id

    def span(self, span: Span) -> Span:
        """A span of the answer as one of the response."""
        start, end = self.seen_answer.start(span.start), self.seen_answer.end(span.end)
        return Span(start=start + self.start, end=end + self.start)

    def place(self, verdict: Verdict) -> Verdict:
        """A verdict on what was read as one on what is written."""
        if not self.start and not self.seen_answer.steps and not self.seen_documents:
            return verdict
        placed = {
            "claims": tuple(map(self._claim, verdict.claims)),
            "uncovered": tuple(map(self.span, verdict.uncovered)),
            "unread": tuple(map(self._document_span, verdict.unread)),
        }
        return verdict.model_copy(update=placed)

    def _claim(self, found: ClaimVerdict) -> ClaimVerdict:
        claim = found.claim.model_copy(update={"span": found.claim.span and self.span(found.claim.span)})
        votes = tuple(vote and self._vote(vote) for vote in found.votes)
        return found.model_copy(update={"claim": claim, "votes": votes})

    def _vote(self, vote: Answer) -> Answer:
        at = vote.evidence_at and self._document_span(vote.evidence_at)
        return vote.model_copy(update={"evidence_at": at})

    def _document_span(self, span: DocumentSpan) -> DocumentSpan:
        found = self.seen_documents.get(span.document)
        if found is None or span.start == span.end:
            return span
        return span.model_copy(update={"start": found.start(span.start), "end": found.end(span.end)})


def read(query: RagQuery, turn: str, config: AuditConfig) -> Read:
    """Reads a query and the answer of a turn, without a thought before it."""
    start = answer_start(turn, config)
    try:
        check_lengths(query, turn[start:], config)
    except AuditFailure:  # it is refused unread
        return Read(query, turn[start:], start, Seen(turn[start:]), {})
    answer, asked, documents = seen(turn[start:]), seen(query.query), query.documents
    texts = [(one, seen(one.title), seen(one.text)) for one in documents]
    same = asked.text == query.query and all(
        title.text == one.title and text.text == one.text for one, title, text in texts
    )
    if not same:
        documents = tuple(
            one.model_copy(update={"title": title.text, "text": text.text}) for one, title, text in texts
        )
        query = query.model_copy(update={"query": asked.text, "documents": documents})
    written_otherwise = {one.id: text for one, _, text in texts if text.steps}
    return Read(query, with_capitals(answer.text, query), start, answer, written_otherwise)
