"""Which rows an evaluation set would meet again: what such sets ask and hold, and an index of it.

A file may be in any layout that `march prepare` trains on, or in that of FaithBench, ContextualJudgeBench or
FACTS Grounding. Which one it is, its first row tells. Of RAGTruth's two files the test split is meant.

A question that one file asks of three or more sets of documents is an instruction ("Summarize the following
news.") and tells nothing; a document of fewer than ten words does not either. Another file never makes a
question an instruction: the same questions may be published with other documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.duplicates import Match, Reason, TextIndex, digest, fingerprint
from pipeline.data.evaluation_rows import FactsRow, FaithBenchRow, PairRow
from pipeline.data.plain import PlainRow
from pipeline.data.ragtruth import RagTruthRow
from pipeline.data.rows import QuestionRow, SourceRow, parse_row
from pipeline.data.sources import SOURCES
from pipeline.data.values import raw_rows
from reward.offline.files import file_sha256
from reward.offline.ragtruth import RESPONSES
from reward.offline.ragtruth import SOURCES as RAGTRUTH_SOURCES
from reward.types import Document, RagQuery, Record

if TYPE_CHECKING:
    from rensa import RMinHash

_INSTRUCTION_FROM = 3  # sets of documents that a question is asked of
_MODELS: tuple[type[SourceRow], ...] = (
    *(source.model for source in SOURCES.values()),
    FaithBenchRow,
    PairRow,
    FactsRow,
)


def evaluation_queries(path: Path) -> Iterator[RagQuery]:
    """Yields what an evaluation set asks, in order; of an empty document what is asked of none.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is in no known layout, or a row is not what the first one is.
    """
    is_ragtruth = path.is_dir() or path.name in (RESPONSES, RAGTRUTH_SOURCES)
    model = RagTruthRow if is_ragtruth else _model_of(path)
    for raw in model.raw_rows(path, "test"):
        row = parse_row(raw, model)
        queries = row.queries(raw.place)
        if not queries and isinstance(row, QuestionRow):  # a held-out list of questions has no documents
            queries = (RagQuery(id=row.id, query=row.question, documents=(Document(id="", text=""),)),)
        yield from queries


def _model_of(path: Path) -> type[SourceRow]:
    problem = "there is none"
    for model in _MODELS:
        first = next(raw_rows(path, model.list_key), None)
        if first is None:
            continue
        try:
            parse_row(first, model)
            return model
        except ValueError as error:
            problem = str(error) if model is PlainRow else problem
    raise ValueError(
        f"{path}: its first row is in no layout that is known; give the published file, or rows like "
        f'{{"id": ..., "query": ..., "documents": [...]}} (as such: {problem})'
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


class OverlapIndex:
    """Tells what a row has in common with evaluation sets, which are read at once."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._questions, self._documents = TextIndex(), TextIndex()
        seen: set[bytes] = set()  # questions of the files so far
        self.sets = tuple([self._add_set(file, seen) for file in files])

    def _add_set(self, file: Path, seen: set[bytes]) -> IndexedSet:
        """Adds the documents of a set, and its questions that are no instructions."""
        num_queries, num_documents, num_before = 0, 0, len(seen)
        read: dict[bytes, tuple[str, RMinHash]] = {}
        asked_of: dict[bytes, set[bytes]] = defaultdict(set)  # question to digests of its documents
        for query in evaluation_queries(file):
            num_queries += 1
            keys, found = fingerprint(query)
            for key, document, hashes in zip(keys[1:], query.documents, found[1:], strict=True):
                if key:
                    name = f"{query.id}: {document.id}"
                    num_documents += self._documents.add(key, name, file.name, hashes)
            if query.query:
                read.setdefault(keys[0], (query.id, found[0]))
                asked_of[keys[0]].add(digest(sorted(document.text for document in query.documents)))
        questions = [key for key in read if len(asked_of[key]) < _INSTRUCTION_FROM]
        for key in questions:
            name, hashes = read[key]
            self._questions.add(key, name, file.name, hashes)
        seen |= read.keys()
        return IndexedSet(
            dataset=file.name,
            sha256=None if file.is_dir() else file_sha256(file),
            num_queries=num_queries,
            num_questions=len(seen) - num_before,
            num_documents=num_documents,
            num_instructions=len(read) - len(questions),
        )

    def find(
        self, keys: Sequence[bytes], found: Sequence[RMinHash], threshold: float, *, max_shared_documents: int
    ) -> Overlap:
        """What a row has in common with the sets.

        Args:
            keys: Of the row's question and documents, as `fingerprint` returns them.
            found: Their minimal hashes.
            threshold: Least similarity of texts that count as the same.
            max_shared_documents: A row may share as many.
        """
        asked = self._questions.find(keys[0], found[0], threshold)
        long = [(key, hashes) for key, hashes in zip(keys[1:], found[1:], strict=True) if key]
        held = (self._documents.find(key, hashes, threshold) for key, hashes in long)
        shared = [match for match in held if match is not None]
        if asked is not None:
            return Overlap(len(shared), Reason.OVERLAP_QUESTION, asked)
        if len(shared) <= max_shared_documents:
            return Overlap(len(shared))
        most_similar = max(shared, key=lambda match: match.similarity)
        match = most_similar.model_copy(update={"num_documents": len(shared)})
        return Overlap(len(shared), Reason.OVERLAP_DOCUMENT, match)
