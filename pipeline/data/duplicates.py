"""What is kept of texts to find them again, equal or nearly equal, and of the rows that stand before.

Texts are compared by their words in lower case (Unicode NFKC), without punctuation; of scripts that put no
spaces between words each character is one. Nearly equal means: by an
estimate from 128 minimal hashes, the sets of pieces have a Jaccard similarity of at least a threshold. Pieces
are five words of a document and five characters of a question, which is too short for words. The hashes are
Rensa's (https://github.com/beowolx/rensa, MIT), and so is the locality-sensitive hashing that `TextIndex`
finds texts by; only the hashes of a text are kept, never the text.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts (`RowsBefore`). Questions that are only nearly the same are kept: on TAT-QA's they ask
different things ("owed to members", "owed by members").
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field

from reward.types import RagQuery, Record

if TYPE_CHECKING:
    from rensa import RMinHash

NUM_HASHES, NUM_BANDS = 128, 16
MIN_DOCUMENT_WORDS = 10  # "Net sales" and "Early life" stand in documents that have nothing in common
_MOST_ESTIMATED = 0.999  # 1 is for equal words alone
_SEED = 1
_WORDS_A_PIECE, _CHARS_A_PIECE = 5, 5
# Thai, Lao, Burmese, Khmer, kana and Chinese characters.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Vowel signs, which are no part of \w: Hindi's son and daughter differ in one.
_MARKS = "".join(mark for mark in map(chr, range(0x300, 0x1E000)) if unicodedata.category(mark)[0] == "M")
_WORD = re.compile(rf"[{_NO_SPACES}]|(?:(?![{_NO_SPACES}])[\w{_MARKS}])+[+#]*")
_ASCII_WORD = re.compile(r"\w+[+#]*")  # "C++" and "C#" are no "C"


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


def words_of(text: str) -> list[str]:
    word = _ASCII_WORD if text.isascii() else _WORD
    return word.findall(unicodedata.normalize("NFKC", text).casefold())


def fingerprint(query: RagQuery) -> tuple[tuple[bytes, ...], tuple[RMinHash, ...]]:
    """What names the texts of a query, exactly and nearly: of its question, then of its documents.

    Returns:
        1 + D keys, 64 bits of a digest of a text's words, empty for a document that is too short to tell it
        from others; the minimal hashes of as many texts.
    """
    from rensa import RMinHash

    question = words_of(query.query)
    documents = [words_of(document.text) for document in query.documents]
    keys = (digest(words) if len(words) >= MIN_DOCUMENT_WORDS else b"" for words in documents)
    pieces = [_pieces(" ".join(question), _CHARS_A_PIECE, "")]
    pieces += [_pieces(words, _WORDS_A_PIECE, " ") for words in documents]
    return (digest(question), *keys), tuple(RMinHash.from_token_sets(pieces, NUM_HASHES, _SEED))


def _pieces(parts: Sequence[str], size: int, joined_by: str) -> list[str]:
    starts = range(max(1, len(parts) - size + 1))
    return [joined_by.join(parts[i : i + size]) for i in starts]


def digest(words: Iterable[str]) -> bytes:
    return hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).digest()[:8]


class TextIndex:
    """Texts that are found again, by what makes texts equal or else by their hashes."""

    def __init__(self) -> None:
        from rensa import RMinHashLSH

        self._places: dict[bytes, int] = {}
        self._owners: list[tuple[str, str]] = []  # id and dataset
        self._hashes: list[RMinHash] = []
        self._bands = RMinHashLSH(0.0, NUM_HASHES, NUM_BANDS)  # `find` has the threshold

    def add(self, key: bytes, name: str, dataset: str, hashes: RMinHash) -> bool:
        """Adds a text, unless one with the same key is there; whether it was added."""
        if key in self._places:
            return False
        self._places[key] = len(self._owners)
        self._bands.insert(len(self._owners), hashes)
        self._owners.append((name, dataset))
        self._hashes.append(hashes)
        return True

    def find(self, key: bytes, hashes: RMinHash, threshold: float) -> Match | None:
        """The equal text, or else the most similar one that reaches the threshold; the first of several.

        Those with an equal band are candidates: two texts of Jaccard similarity s have one with probability
        1 - (1 - s^8)^16: 0.95 for 0.8, 0.9999 for 0.9, 0.06 for 0.5.
        """
        if key in self._places:
            return _match(self._owners[self._places[key]])
        near = sorted(self._bands.query(hashes))
        similar = {place: min(hashes.jaccard(self._hashes[place]), _MOST_ESTIMATED) for place in near}
        best = max(similar, key=similar.__getitem__, default=None)
        if best is None or similar[best] < threshold:
            return None
        return _match(self._owners[best], similar[best])


@dataclass(frozen=True)
class _First:
    """The first row with a content."""

    owner: tuple[str, str]  # id and source
    place: str
    unanswerable: bool


class RowsBefore:
    """The rows of a preparation so far."""

    def __init__(self) -> None:
        self._contents: dict[str, tuple[bytes, str]] = {}  # and the place, by the row's id
        self._first: dict[bytes, _First] = {}  # row with a content
        # By question: its rows with the keys of their documents, and their hashes one after the other.
        self._kept: defaultdict[bytes, tuple[list[tuple[tuple[str, str], bytes]], bytearray]]
        self._kept = defaultdict(lambda: ([], bytearray()))

    def add(
        self, row_id: str, source: str, content: bytes, place: str = "", *, unanswerable: bool = False
    ) -> Match | None:
        """Notes a row; the row that came before with the same content, if one does.

        Raises:
            ValueError: the id came before with another content, or the content as one that is (or is not)
                unanswerable.
        """
        known, where = self._contents.setdefault(row_id, (content, place))
        if known != content:
            places = f"{where}, {place}: " if place else ""
            raise ValueError(f"{places}id: {row_id!r} belongs to two different queries; give each its own")
        first = self._first.get(content)
        if first is None:
            self._first[content] = _First((row_id, source), place, unanswerable)
            return None
        if first.unanswerable != unanswerable:
            raise ValueError(
                f"{first.place}, {place}: unanswerable: true for one row and not for the other, and question "
                "and documents are equal; leave out the wrong one"
            )
        return _match(first.owner)

    def add_kept(
        self, row_id: str, source: str, keys: Sequence[bytes], found: Sequence[RMinHash], threshold: float
    ) -> Match | None:
        """Notes a row by its hashes, unless a nearly equal one comes before, which is returned."""
        import numpy as np

        kept, hashes = self._kept[keys[0]]
        digests = np.array([one.digest() for one in found[1:]], dtype=np.uint32)
        union = digests.min(axis=0)  # the least hashes of several texts are those of their union
        words = b"" if b"" in keys[1:] else b"".join(sorted(keys[1:]))
        if kept:
            before = np.frombuffer(hashes, dtype=np.uint32).reshape(-1, NUM_HASHES)
            similar = np.minimum((before == union).mean(axis=1), _MOST_ESTIMATED)
            similar[[one == words != b"" for _, one in kept]] = 1.0
            if (near := np.flatnonzero(similar >= threshold)).size:
                return _match(kept[near[0]][0], float(similar[near[0]]))
            del before  # a bytearray with a view of it does not grow
        kept.append(((row_id, source), words))
        hashes += union.tobytes()
        return None


def _match(owner: tuple[str, str], similar: float = 1.0) -> Match:
    return Match(id=owner[0], dataset=owner[1], similarity=round(similar, 3))
