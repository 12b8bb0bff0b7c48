"""Rows that stand before: equal ones, and nearly equal ones.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts. Questions that are only nearly the same are kept: on TAT-QA's they ask different things
("owed to members", "owed by members"). Of the rows so far, digests stay in memory and signatures lie in a
file that is gone at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.fingerprints import TextKeys
from pipeline.data.removals import Match
from pipeline.data.texts_before import TextsBefore

if TYPE_CHECKING:
    from pipeline.data.fingerprints import Signatures


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
