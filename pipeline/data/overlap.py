"""Which rows an evaluation set would meet again: an index of its questions and documents.

It is made once, as arrays in files that every worker maps, so that all of them together hold it once: sorted
digests for equal texts, and for nearly equal ones sorted keys of bands of their hashes, whose candidates are
then compared by their whole signatures. A look-up takes time with the logarithm of the evaluation sets' size.

A question that is asked of three or more sets of documents is an instruction ("Summarize the following
news.") and tells nothing; a document of fewer than ten words does not either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.data.fingerprints import (
    NUM_BANDS,
    NUM_HASHES,
    TextKeys,
    band_keys,
    digest64,
    fingerprint,
    similarity,
)
from pipeline.data.removals import Match, Reason
from reward.types import RagQuery, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.data.fingerprints import Signatures

_INSTRUCTION_FROM = 3  # sets of documents that a question is asked of


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


class _Texts:
    """Questions or documents on the way into an index: each text once, its owner, its signature in a file."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        self.keys: dict[int, int] = {}  # digest of the words: place in the index
        self._owners = (folder / f"{kind}.owners").open("wb")
        self._offsets: list[int] = []  # of each owner in its file
        self._signatures = (folder / f"{kind}.signatures").open("wb")

    def add(self, key: int, owner: Sequence[str], signature: Signatures) -> None:
        if key and key not in self.keys:
            self.keys[key] = len(self.keys)
            self._offsets.append(self._owners.tell())
            self._owners.write(json.dumps(owner).encode() + b"\n")
            self._signatures.write(signature.tobytes())

    def save(self, passed_over: Iterable[int]) -> None:
        """Writes the sorted keys and bands of all texts but some."""
        import numpy as np

        self._owners.close()
        self._signatures.close()
        np.save(self.folder / f"{self.kind}.offsets.npy", np.array(self._offsets, dtype=np.int64))
        for key in passed_over:
            self.keys.pop(key, None)
        keys = np.fromiter(self.keys.keys(), dtype=np.uint64, count=len(self.keys))
        places = np.fromiter(self.keys.values(), dtype=np.int64, count=len(self.keys))
        _save_sorted(self.folder / f"{self.kind}.exact", keys, places)
        path = self.folder / f"{self.kind}.signatures"
        num_texts = path.stat().st_size // (4 * NUM_HASHES)
        shape = (num_texts, NUM_HASHES)
        found = np.memmap(path, dtype=np.uint32, mode="r", shape=shape) if num_texts else np.zeros(shape)
        chosen = found[places].astype(np.uint32)
        for band, of_band in enumerate(band_keys(chosen).T):
            _save_sorted(self.folder / f"{self.kind}.band{band}", of_band, places)


def _save_sorted(path: Path, keys: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
    import numpy as np

    order = np.argsort(keys, kind="stable")
    np.save(f"{path}.keys.npy", keys[order])
    np.save(f"{path}.places.npy", places[order])


def write_index(folder: Path, sets: Iterable[tuple[str, str | None, Iterable[RagQuery]]]) -> list[IndexedSet]:
    """Writes an index of evaluation sets.

    Args:
        folder: An empty folder.
        sets: Name, SHA-256 of the file and queries of each.

    Returns:
        What was indexed of each set.
    """
    questions, documents = _Texts(folder, "questions"), _Texts(folder, "documents")
    asked_of: dict[int, set[int]] = {}
    indexed = []
    for dataset, sha256, queries in sets:
        before = len(questions.keys), len(documents.keys)
        own: set[int] = set()
        num_queries = 0
        for query in queries:
            num_queries += 1
            keys = _add(query, dataset, questions, documents)
            if not query.query:
                continue
            own.add(keys.question)
            seen = asked_of.setdefault(keys.question, set())
            if len(seen) < _INSTRUCTION_FROM:
                seen.add(digest64("\n".join(document.text for document in query.documents)))
        instructions = {key for key in own if len(asked_of[key]) >= _INSTRUCTION_FROM}
        indexed.append(
            IndexedSet(
                dataset=dataset,
                sha256=sha256,
                num_queries=num_queries,
                num_questions=len(questions.keys) - before[0],
                num_documents=len(documents.keys) - before[1],
                num_instructions=len(instructions),
            )
        )
    questions.save([key for key, sets_of in asked_of.items() if len(sets_of) >= _INSTRUCTION_FROM])
    documents.save([])
    return indexed


def _add(query: RagQuery, dataset: str, questions: _Texts, documents: _Texts) -> TextKeys:
    keys, found = fingerprint(query)
    if query.query:
        questions.add(keys.question, [dataset, query.id], found[0])
    for key, document, signature in zip(keys.documents, query.documents, found[1:], strict=True):
        documents.add(key, [dataset, f"{query.id}: {document.id}"], signature)
    return keys


class _Lookup:
    """Questions or documents of an index."""

    def __init__(self, folder: Path, kind: str) -> None:
        import numpy as np

        def load(name: str) -> Any:
            return np.load(folder / f"{kind}.{name}.npy", mmap_mode="r")

        self._exact = load("exact.keys"), load("exact.places")
        self._bands = [(load(f"band{band}.keys"), load(f"band{band}.places")) for band in range(NUM_BANDS)]
        path = folder / f"{kind}.signatures"
        num_texts = path.stat().st_size // (4 * NUM_HASHES)
        self._signatures = (
            np.memmap(path, dtype=np.uint32, mode="r", shape=(num_texts, NUM_HASHES)) if num_texts else None
        )
        self._owners, self._offsets = folder / f"{kind}.owners", load("offsets")

    def find(
        self, keys: Sequence[int], found: Signatures, threshold: float
    ) -> list[tuple[int, float] | None]:
        """The most similar text of the index for each of ours, and how similar; None where there is none."""
        import numpy as np

        matches: list[tuple[int, float] | None] = []
        exact_keys, exact_places = self._exact
        at = np.searchsorted(exact_keys, np.array(keys, dtype=np.uint64))
        near = self._candidates(found)
        for i, key in enumerate(keys):
            if not key:
                matches.append(None)
            elif at[i] < len(exact_keys) and int(exact_keys[at[i]]) == key:
                matches.append((int(exact_places[at[i]]), 1.0))
            else:
                matches.append(self._most_similar(found[i], near[i], threshold))
        return matches

    def _candidates(self, found: Signatures) -> list[set[int]]:
        import numpy as np

        candidates: list[set[int]] = [set() for _ in found]
        wanted = band_keys(found)
        for band, (keys, places) in enumerate(self._bands):
            first = np.searchsorted(keys, wanted[:, band], side="left")
            last = np.searchsorted(keys, wanted[:, band], side="right")
            for i in np.flatnonzero(last > first):
                candidates[i].update(int(place) for place in places[first[i] : last[i]])
        return candidates

    def _most_similar(
        self, signature: Signatures, candidates: set[int], threshold: float
    ) -> tuple[int, float] | None:
        if self._signatures is None or not candidates:
            return None
        scored = [(similarity(signature, self._signatures[place]), -place) for place in candidates]
        best, place = max(scored)
        return (-place, min(best, 0.999)) if best >= threshold else None  # 1 is said of equal words alone

    def owner(self, place: int) -> tuple[str, str]:
        """Evaluation set and id of a text."""
        with self._owners.open("rb") as file:
            file.seek(int(self._offsets[place]))
            dataset, name = json.loads(file.readline())
        return dataset, name


class OverlapIndex:
    """Tells what a row has in common with the evaluation sets of an index.

    Args:
        folder: What `write_index` wrote.
        threshold: Least similarity of texts that count as the same.
        max_shared_documents: A row may share as many documents.
    """

    def __init__(self, folder: Path, *, threshold: float, max_shared_documents: int) -> None:
        self._questions, self._documents = _Lookup(folder, "questions"), _Lookup(folder, "documents")
        self._threshold, self._max_shared = threshold, max_shared_documents

    def find(self, keys: TextKeys, found: Signatures) -> tuple[Overlap | None, int]:
        """What a row has in common with the sets, and how many of its documents."""
        asked = self._questions.find([keys.question], found[:1], self._threshold)[0]
        held = self._documents.find(keys.documents, found[1:], self._threshold)
        shared = [match for match in held if match is not None]
        if asked is not None:
            match = self._match(self._questions, asked, None)
            return Overlap(Reason.OVERLAP_QUESTION, match), len(shared)
        if len(shared) <= self._max_shared:
            return None, len(shared)
        most_similar = max(shared, key=lambda match: match[1])
        match = self._match(self._documents, most_similar, len(shared))
        return Overlap(Reason.OVERLAP_DOCUMENT, match), len(shared)

    @staticmethod
    def _match(lookup: _Lookup, match: tuple[int, float], num_documents: int | None) -> Match:
        place, score = match
        dataset, name = lookup.owner(place)
        return Match(id=name, dataset=dataset, similarity=round(score, 3), num_documents=num_documents)
