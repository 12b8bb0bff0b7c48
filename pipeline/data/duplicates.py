"""What is kept of texts to find them again, equal or nearly equal, and of the rows that stand before.

Texts are compared by their words in lower case (Unicode NFKC), without punctuation. Nearly equal means: by an
estimate from 128 minimal hashes, the sets of pieces have a Jaccard similarity of at least a threshold. Pieces
are five words of a document and five characters of a question, which is too short for words. The hashes are
Rensa's (https://github.com/beowolx/rensa, MIT); only the signature of a text is kept, never the text.

They are found by locality-sensitive hashing over SQLite: a file holds a digest of each text, its owner, its
signature and one key for each band of hashes. Texts that share a key are candidates, and are then compared by
their whole signatures. Memory does not grow with the texts, a look-up takes time with their logarithm, and
processes that read one file share its pages.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts. Questions that are only nearly the same are kept: on TAT-QA's they ask different things
("owed to members", "owed by members"). Of the rows so far, digests stay in memory and signatures lie in a
file that is gone at the end.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from reward.types import RagQuery, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Signature = NDArray[np.uint32]  # (NUM_HASHES,)
    Signatures = NDArray[np.uint32]  # (N, NUM_HASHES)

NUM_HASHES = 128
NUM_BANDS, HASHES_A_BAND = 16, 8
MIN_DOCUMENT_WORDS = 10  # "Net sales" and "Early life" stand in documents that have nothing in common
_SEED = 1
_WORDS_A_PIECE, _CHARS_A_PIECE = 5, 5
_WORD = re.compile(r"\w+")
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
PRAGMA mmap_size = 2147418112;
CREATE TABLE IF NOT EXISTS texts (
    place INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE, id TEXT, dataset TEXT, signature BLOB
);
CREATE TABLE IF NOT EXISTS bands (key INTEGER, place INTEGER, PRIMARY KEY (key, place)) WITHOUT ROWID;
"""


class Reason(StrEnum):
    """Why a row is not trained on; in the order in which they are looked for."""

    NO_DOCUMENTS = "no_documents"
    OVERLAP_QUESTION = "overlap_question"  # an evaluation set asks it, or nearly
    OVERLAP_DOCUMENT = "overlap_document"  # an evaluation set has a document of it, or nearly
    DUPLICATE = "duplicate"  # the same question and documents stand before
    NEAR_DUPLICATE = "near_duplicate"  # the question comes earlier, with nearly the same documents
    OVERLONG = "overlong"  # more prompt tokens than the limit


class Match(Record):
    """What a row is too much like."""

    id: str = Field(description="Of the other row, and of its document if that is what matched.")
    dataset: str = Field(description="Evaluation set, or source of the earlier row.")
    similarity: float = Field(description="1 for equal words, else the estimate of the Jaccard similarity.")
    num_documents: int | None = Field(default=None, description="Documents of the row that matched.")


def _words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def fingerprint(query: RagQuery) -> tuple[tuple[bytes, ...], Signatures]:
    """What names the texts of a query, exactly and nearly: of its question, then of its documents.

    Returns:
        1 + D keys, 64 bits of a digest of a text's words, empty for a document that is too short to tell it
        from others; signatures (1 + D, NUM_HASHES).

    Raises:
        ModuleNotFoundError: Rensa or NumPy is not installed.
    """
    import numpy as np
    from rensa import RMinHash

    question = _words_of(query.query)
    documents = [_words_of(document.text) for document in query.documents]
    keys = (digest(words) if len(words) >= MIN_DOCUMENT_WORDS else b"" for words in documents)
    pieces = [_pieces(" ".join(question), _CHARS_A_PIECE, "")]
    pieces += [_pieces(words, _WORDS_A_PIECE, " ") for words in documents]
    found = RMinHash.digests_from_token_sets(pieces, NUM_HASHES, _SEED)
    return (digest(question), *keys), np.array(found, dtype=np.uint32)


def _pieces(parts: Sequence[str], size: int, joined_by: str) -> list[str]:
    starts = range(max(1, len(parts) - size + 1))
    return [joined_by.join(parts[i : i + size]) for i in starts]


def digest(words: Iterable[str]) -> bytes:
    """64 bits of a digest of words."""
    return hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).digest()[:8]


def band_keys(signature: Signature, salt: bytes = b"") -> list[int]:
    """One key for each band of hashes; equal bands have equal keys, under the same salt.

    Two texts of Jaccard similarity s share at least one key with probability 1 - (1 - s^8)^16: 0.95 for 0.8,
    0.9999 for 0.9, 0.06 for 0.5.
    """
    start = zlib.crc32(salt)
    bands = signature.reshape(NUM_BANDS, HASHES_A_BAND)
    return [zlib.crc32(band.tobytes(), start ^ place) for place, band in enumerate(bands)]


def similarity(first: Signature, second: Signature) -> float:
    """Estimate of the Jaccard similarity of two texts, from one signature (NUM_HASHES,) each."""
    return float((first == second).mean())


class TextsBefore:
    """The texts of a file.

    Args:
        path: Made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Writes what was added and lets go of the file."""
        self._database.commit()
        self._database.close()

    def add(self, digest: bytes, owner: tuple[str, str], signature: Signature, salt: bytes = b"") -> bool:
        """Adds a text, unless an equal one is there; whether it was added.

        Args:
            digest: Of what makes texts equal.
            owner: Id of the text and what it is of, for a `Match`.
            signature: (NUM_HASHES,), as `fingerprint` returns it.
            salt: Only texts that were added with the same one are nearly equal.
        """
        added = self._database.execute(
            "INSERT OR IGNORE INTO texts (digest, id, dataset, signature) VALUES (?, ?, ?, ?)",
            (digest, *owner, signature.tobytes()),
        )
        if not added.rowcount:
            return False
        keys = set(band_keys(signature, salt))
        self._database.executemany(
            "INSERT INTO bands VALUES (?, ?)", [(key, added.lastrowid) for key in keys]
        )
        return True

    def remove(self, digest: bytes) -> None:
        """Removes a text, if it is there."""
        self._database.execute("DELETE FROM texts WHERE digest = ?", (digest,))

    def equal(self, digest: bytes) -> Match | None:
        """The text of a digest, if it is there."""
        found = self._database.execute("SELECT id, dataset FROM texts WHERE digest = ?", (digest,)).fetchone()
        return Match(id=found[0], dataset=found[1], similarity=1.0) if found else None

    def nearly_equal(self, signature: Signature, threshold: float, salt: bytes = b"") -> list[Match]:
        """The texts whose estimated similarity reaches a threshold, in the order in which they were added."""
        import numpy as np

        keys = band_keys(signature, salt)
        candidates = self._database.execute(
            "SELECT id, dataset, signature FROM texts WHERE place IN "
            f"(SELECT place FROM bands WHERE key IN ({','.join('?' * len(keys))})) ORDER BY place",
            keys,
        )
        scored = (
            (similarity(signature, np.frombuffer(blob, dtype=np.uint32)), name, dataset)
            for name, dataset, blob in candidates
        )
        return [
            Match(id=name, dataset=dataset, similarity=similar)
            for similar, name, dataset in scored
            if similar >= threshold
        ]


class RowsBefore:
    """The rows of a preparation so far.

    Args:
        path: A file that is made and must not be there.
    """

    def __init__(self, path: Path) -> None:
        self._kept = TextsBefore(path)
        self._contents: dict[str, bytes] = {}  # by the row's id
        self._first: dict[bytes, tuple[str, str]] = {}  # id and source of the first row with a content

    def close(self) -> None:
        """Lets go of the file; what it held is not needed again."""
        self._kept.close()

    def add(self, row_id: str, source: str, content: bytes) -> Match | None:
        """Notes a row; the row that came before with the same content, if one does.

        Raises:
            ValueError: the id came before with another content.
        """
        if self._contents.setdefault(row_id, content) != content:
            raise ValueError(f"id: {row_id!r} belongs to two different queries; give each its own")
        if content not in self._first:
            self._first[content] = (row_id, source)
            return None
        first_id, first_source = self._first[content]
        return Match(id=first_id, dataset=first_source, similarity=1.0)

    def add_kept(
        self, row_id: str, source: str, keys: Sequence[bytes], found: Signatures, threshold: float
    ) -> Match | None:
        """Notes a row by its signatures, unless a nearly equal one comes before, which is returned."""
        union = found[1:].min(axis=0)  # the least hashes of several texts are those of their union
        near = self._kept.nearly_equal(union, threshold, salt=keys[0])
        if near:
            return near[0].model_copy(update={"similarity": round(near[0].similarity, 3)})
        self._kept.add(row_id.encode(), (row_id, source), union, salt=keys[0])
        return None
