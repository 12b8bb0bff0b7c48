"""Rows that stand before: equal ones, and nearly equal ones.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts. Questions that are only nearly the same are kept: on TAT-QA's they ask different things
("owed to members", "owed by members"). The rows kept so far lie in a SQLite file that is gone at the end:
digests, one key for each of 16 bands of eight hashes of the documents, and signatures to compare. So memory
does not grow with the rows, and a look-up takes time with their logarithm.
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.data.fingerprints import TextKeys, band_keys, similarity
from pipeline.data.removals import Match

if TYPE_CHECKING:
    from pipeline.data.fingerprints import Signatures

_CACHE_KIB = 65_536
_SCHEMA = """
CREATE TABLE ids (id BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE contents (content BLOB PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE kept (row INTEGER PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL, signature BLOB NOT NULL);
CREATE TABLE bands (key INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (key, row)) WITHOUT ROWID;
"""


class RowsBefore:
    """The rows of a preparation so far.

    Args:
        path: A file that is made and must not be there.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")

    def close(self) -> None:
        """Lets go of the file; what it held is not needed again."""
        self._database.close()

    def add(self, row_id: str, source: str, content: bytes) -> Match | None:
        """Notes a row; the row that stands before with the same content, if one does.

        Raises:
            ValueError: the id stands before with another content.
        """
        key = hashlib.sha256(row_id.encode(errors="surrogatepass")).digest()[:16]
        named = self._one("SELECT content FROM ids WHERE id = ?", key)
        if named is not None and named[0] != content:
            raise ValueError(f"id: {row_id!r} stands for two different queries; give each its own")
        self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (key, content))
        before = self._one("SELECT id, source FROM contents WHERE content = ?", content)
        if before is not None:
            return Match(id=before[0], dataset=before[1], similarity=1.0)
        self._database.execute("INSERT INTO contents VALUES (?, ?, ?)", (content, row_id, source))
        return None

    def add_kept(
        self, row_id: str, source: str, keys: TextKeys, found: Signatures, threshold: float
    ) -> Match | None:
        """Notes a row by its signatures, unless a nearly equal one stands before, which is returned."""
        import numpy as np

        union = found[1:].min(axis=0)  # the least hashes of several texts are those of their union
        bands = _bands(union, keys.question)
        marks = ",".join("?" * len(bands))
        rows = self._database.execute(
            f"SELECT id, source, signature FROM kept WHERE row IN "
            f"(SELECT row FROM bands WHERE key IN ({marks})) ORDER BY row",
            bands,
        )
        for other_id, other_source, blob in rows:
            similar = similarity(union, np.frombuffer(blob, dtype=np.uint32))
            if similar >= threshold:
                return Match(id=other_id, dataset=other_source, similarity=round(similar, 3))
        cursor = self._database.execute(
            "INSERT INTO kept (id, source, signature) VALUES (?, ?, ?)", (row_id, source, union.tobytes())
        )
        self._database.executemany(
            "INSERT OR IGNORE INTO bands VALUES (?, ?)", [(key, cursor.lastrowid) for key in bands]
        )
        return None

    def _one(self, statement: str, value: bytes) -> Any:
        """The first row of an answer, or None."""
        return self._database.execute(statement, (value,)).fetchone()


def _bands(union: Signatures, question: int) -> list[int]:
    """Keys that rows with the same question and nearly equal documents share; signed, as SQLite has them."""
    import numpy as np

    (keys,) = band_keys(union[None, :])
    places = np.arange(len(keys), dtype=np.uint64)
    mixed = (keys ^ places ^ np.uint64(question)) * np.uint64(0x9E3779B97F4A7C15)
    return [int(key) for key in mixed.view(np.int64)]
