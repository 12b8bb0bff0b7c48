"""Which rows an evaluation set would meet again: what such sets ask and hold, and an index of it.

A file may be in any layout that `march prepare` trains on, or in that of FaithBench (a batch or FaithJudge's
copy), ContextualJudgeBench or FACTS Grounding. Which one it is, its first row tells. Of RAGTruth's two files
the test split is meant.

The index is made once, as a file that all workers read. A question that is asked of three or more sets of
documents is an instruction ("Summarize the following news.") and tells nothing; a document of fewer than ten
words does not either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AliasChoices, Field

from pipeline.data.duplicates import Match, Reason, TextsBefore, digest, fingerprint
from pipeline.data.ragtruth import RagTruthRow
from pipeline.data.rows import SourceRow, parse_row
from pipeline.data.sources import SOURCES
from pipeline.data.values import raw_rows
from reward.offline.files import file_sha256
from reward.offline.ragtruth import RESPONSES
from reward.offline.ragtruth import SOURCES as RAGTRUTH_SOURCES
from reward.offline.rows import RowId, make_query
from reward.types import Document, RagQuery, Record

if TYPE_CHECKING:
    from pipeline.data.duplicates import Signature, Signatures

_INSTRUCTION_FROM = 3  # sets of documents that a question is asked of
_QUESTION, _DOCUMENT = b"question:", b"document:"  # a question is compared with questions alone


class _OneDocumentRow(SourceRow):
    """A row with one document, and a question of its own or none."""

    id: RowId = Field(
        validation_alias=AliasChoices("source_id", "sample_id", "question_id", "id"), default=""
    )
    question: str = Field(validation_alias=AliasChoices("question", "user_request"), default="")
    document: Annotated[str, Field(validation_alias=AliasChoices("source", "context", "context_document"))]

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        name = self.id or place.rpartition("/")[2]
        return (make_query(place, name, self.question, [Document(id=name, text=self.document)]),)


class _FaithBenchRow(_OneDocumentRow):
    list_key: ClassVar[str | None] = "samples"


_MODELS: tuple[type[SourceRow], ...] = (
    *(source.model for source in SOURCES.values()),
    _FaithBenchRow,
    _OneDocumentRow,
)


def evaluation_queries(path: Path) -> Iterator[RagQuery]:
    """Yields what an evaluation set asks, in order.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is in no known layout, or a row is not what the first one is.
    """
    is_ragtruth = path.is_dir() or path.name in (RESPONSES, RAGTRUTH_SOURCES)
    model = RagTruthRow if is_ragtruth else _model_of(path)
    for raw in model.raw_rows(path, "test"):
        yield from parse_row(raw, model).queries(raw.place)


def _model_of(path: Path) -> type[SourceRow]:
    for model in _MODELS:
        first = next(raw_rows(path, model.list_key), None)
        with suppress(ValueError):
            if first is not None:
                parse_row(first, model)
                return model
    raise ValueError(
        f"{path}: its first row is in no layout that is known; give the published file, or rows like "
        '{"id": ..., "query": ..., "documents": [...]}'
    )


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

    num_documents: int
    reason: Reason | None = None  # why it is left out, if it is
    match: Match | None = None


def write_index(path: Path, files: Iterable[Path]) -> list[IndexedSet]:
    """Writes an index of evaluation sets.

    Args:
        path: A file that is made.
        files: The evaluation sets.

    Returns:
        What was indexed of each set.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: one is in no known layout, or a row is not what the first one is.
    """
    asked_of: dict[bytes, set[bytes]] = defaultdict(set)  # question to digests of its sets of documents
    with closing(TextsBefore(path)) as texts:
        indexed = [_add_set(file, texts, asked_of) for file in files]
        for question, sets_of in asked_of.items():
            if len(sets_of) >= _INSTRUCTION_FROM:
                texts.remove(_QUESTION + question)
    return indexed


def _add_set(file: Path, texts: TextsBefore, asked_of: dict[bytes, set[bytes]]) -> IndexedSet:
    num_queries = num_questions = num_documents = 0
    asked: set[bytes] = set()
    for query in evaluation_queries(file):
        num_queries += 1
        keys, found = fingerprint(query)
        for key, document, signature in zip(keys[1:], query.documents, found[1:], strict=True):
            if key:
                owner = (f"{query.id}: {document.id}", file.name)
                num_documents += texts.add(_DOCUMENT + key, owner, signature, salt=_DOCUMENT)
        if query.query:
            num_questions += texts.add(_QUESTION + keys[0], (query.id, file.name), found[0], salt=_QUESTION)
            asked.add(keys[0])
            asked_of[keys[0]].add(digest([document.text for document in query.documents]))
    return IndexedSet(
        dataset=file.name,
        sha256=None if file.is_dir() else file_sha256(file),
        num_queries=num_queries,
        num_questions=num_questions,
        num_documents=num_documents,
        num_instructions=sum(len(asked_of[question]) >= _INSTRUCTION_FROM for question in asked),
    )


class OverlapIndex:
    """Tells what a row has in common with the evaluation sets of an index.

    Args:
        path: What `write_index` wrote.
        max_shared_documents: A row may share as many documents.
    """

    def __init__(self, path: Path, *, max_shared_documents: int) -> None:
        self._texts, self._max_shared = TextsBefore(path), max_shared_documents

    def find(self, keys: Sequence[bytes], found: Signatures, threshold: float) -> Overlap:
        """What a row has in common with the sets.

        Args:
            keys: Of the row's question and documents, as `fingerprint` returns them.
            found: (1 + D, NUM_HASHES), their signatures.
            threshold: Least similarity of texts that count as the same.
        """
        held = (
            self._most_similar(_DOCUMENT, key, signature, threshold)
            for key, signature in zip(keys[1:], found[1:], strict=True)
            if key
        )
        shared = [match for match in held if match is not None]
        asked = self._most_similar(_QUESTION, keys[0], found[0], threshold)
        if asked is not None:
            return Overlap(len(shared), Reason.OVERLAP_QUESTION, asked)
        if len(shared) <= self._max_shared:
            return Overlap(len(shared))
        most_similar = max(shared, key=lambda match: match.similarity)
        match = most_similar.model_copy(update={"num_documents": len(shared)})
        return Overlap(len(shared), Reason.OVERLAP_DOCUMENT, match)

    def _most_similar(self, kind: bytes, key: bytes, signature: Signature, threshold: float) -> Match | None:
        """The text that is equal, or else the most similar one of those that are nearly equal."""
        equal = self._texts.equal(kind + key)
        near = [] if equal else self._texts.nearly_equal(signature, threshold, salt=kind)
        if not near:
            return equal
        best = max(near, key=lambda match: match.similarity)
        # 1 is said of equal words alone.
        return best.model_copy(update={"similarity": round(min(best.similarity, 0.999), 3)})
