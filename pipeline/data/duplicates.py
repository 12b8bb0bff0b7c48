"""Texts and rows that stand before: equal ones, and nearly equal ones.

Texts are found by locality-sensitive hashing over SQLite: a file holds a digest of each, its owner, its
signature of minimal hashes and one key for each band of them. Texts that share a key are candidates, and are
then compared by their whole signatures. Memory does not grow with the texts, a look-up takes time with their
logarithm, and processes that read one file share its pages.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts. Questions that are only nearly the same are kept: on TAT-QA's they ask different things
("owed to members", "owed by members"). Of the rows so far, digests stay in memory and signatures lie in a
file that is gone at the end.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.fingerprints import TextKeys, band_keys, similarity
from pipeline.data.removals import Match

if TYPE_CHECKING:
    from pipeline.data.fingerprints import Signature, Signatures

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
        """Notes a row; the row that stands before with the same content, if one does.

        Raises:
            ValueError: the id stands before with another content.
        """
        if self._contents.setdefault(row_id, content) != content:
            raise ValueError(f"id: {row_id!r} stands for two different queries; give each its own")
        if content not in self._first:
            self._first[content] = (row_id, source)
            return None
        first_id, first_source = self._first[content]
        return Match(id=first_id, dataset=first_source, similarity=1.0)

    def add_kept(
        self, row_id: str, source: str, keys: TextKeys, found: Signatures, threshold: float
    ) -> Match | None:
        """Notes a row by its signatures, unless a nearly equal one stands before, which is returned."""
        union = found[1:].min(axis=0)  # the least hashes of several texts are those of their union
        near = self._kept.nearly_equal(union, threshold, salt=keys.question)
        if near:
            return near[0].model_copy(update={"similarity": round(near[0].similarity, 3)})
        self._kept.add(row_id.encode(), (row_id, source), union, salt=keys.question)
        return None
