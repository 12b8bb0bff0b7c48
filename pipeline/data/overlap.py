"""Which rows an evaluation set would meet again: an index of its questions and documents.

It is made once, as files that all workers read. A question that is asked of three or more sets of documents
is an instruction ("Summarize the following news.") and tells nothing; a document of fewer than ten words does
not either.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.fingerprints import TextKeys, fingerprint
from pipeline.data.removals import Match, Reason
from pipeline.data.texts_before import TextsBefore
from reward.types import RagQuery, Record

if TYPE_CHECKING:
    from pipeline.data.fingerprints import Signature, Signatures

_INSTRUCTION_FROM = 3  # sets of documents that a question is asked of
_QUESTIONS, _DOCUMENTS = "questions.sqlite", "documents.sqlite"


class IndexedSet(Record):
    """What an index holds of one evaluation set."""

    dataset: str
    sha256: str | None
    num_queries: int
    num_questions: int
    num_documents: int
    num_instructions: int


@dataclass(frozen=True)
class Overlap:
    """What a row has in common with evaluation sets."""

    reason: Reason
    match: Match


def write_index(folder: Path, sets: Iterable[tuple[str, str | None, Iterable[RagQuery]]]) -> list[IndexedSet]:
    """Writes an index of evaluation sets.

    Args:
        folder: An empty folder.
        sets: Name, SHA-256 of the file and queries of each.

    Returns:
        What was indexed of each set.
    """
    asked_of: dict[bytes, set[bytes]] = defaultdict(set)  # question to digests of its sets of documents
    with (
        closing(TextsBefore(folder / _QUESTIONS)) as questions,
        closing(TextsBefore(folder / _DOCUMENTS)) as documents,
    ):
        indexed = [
            _add_set(dataset, sha256, queries, questions, documents, asked_of)
            for dataset, sha256, queries in sets
        ]
        for question, sets_of in asked_of.items():
            if len(sets_of) >= _INSTRUCTION_FROM:
                questions.remove(question)
    return indexed


def _add_set(
    dataset: str,
    sha256: str | None,
    queries: Iterable[RagQuery],
    questions: TextsBefore,
    documents: TextsBefore,
    asked_of: dict[bytes, set[bytes]],
) -> IndexedSet:
    num_queries = num_questions = num_documents = 0
    asked: set[bytes] = set()
    for query in queries:
        num_queries += 1
        keys, found = fingerprint(query)
        for key, document, signature in zip(keys.documents, query.documents, found[1:], strict=True):
            if key:
                num_documents += documents.add(key, (f"{query.id}: {document.id}", dataset), signature)
        if query.query:
            num_questions += questions.add(keys.question, (query.id, dataset), found[0])
            asked.add(keys.question)
            texts = "\n".join(document.text for document in query.documents)
            asked_of[keys.question].add(hashlib.sha256(texts.encode(errors="surrogatepass")).digest()[:8])
    return IndexedSet(
        dataset=dataset,
        sha256=sha256,
        num_queries=num_queries,
        num_questions=num_questions,
        num_documents=num_documents,
        num_instructions=sum(len(asked_of[question]) >= _INSTRUCTION_FROM for question in asked),
    )


class OverlapIndex:
    """Tells what a row has in common with the evaluation sets of an index.

    Args:
        folder: What `write_index` wrote.
        threshold: Least similarity of texts that count as the same.
        max_shared_documents: A row may share as many documents.
    """

    def __init__(self, folder: Path, *, threshold: float, max_shared_documents: int) -> None:
        self._questions, self._documents = TextsBefore(folder / _QUESTIONS), TextsBefore(folder / _DOCUMENTS)
        self._threshold, self._max_shared = threshold, max_shared_documents

    def find(self, keys: TextKeys, found: Signatures) -> tuple[Overlap | None, int]:
        """What a row has in common with the sets, and how many of its documents."""
        held = (
            self._most_similar(self._documents, key, signature)
            for key, signature in zip(keys.documents, found[1:], strict=True)
            if key
        )
        shared = [match for match in held if match is not None]
        asked = self._most_similar(self._questions, keys.question, found[0])
        if asked is not None:
            return Overlap(Reason.OVERLAP_QUESTION, asked), len(shared)
        if len(shared) <= self._max_shared:
            return None, len(shared)
        most_similar = max(shared, key=lambda match: match.similarity)
        match = most_similar.model_copy(update={"num_documents": len(shared)})
        return Overlap(Reason.OVERLAP_DOCUMENT, match), len(shared)

    def _most_similar(self, texts: TextsBefore, key: bytes, signature: Signature) -> Match | None:
        """The text that is equal, or else the most similar one of those that are nearly equal."""
        equal = texts.equal(key)
        near = [] if equal else texts.nearly_equal(signature, self._threshold)
        if not near:
            return equal
        best = max(near, key=lambda match: match.similarity)
        # 1 is said of equal words alone.
        return best.model_copy(update={"similarity": round(min(best.similarity, 0.999), 3)})
