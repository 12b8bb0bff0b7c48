"""What is kept of texts to find them again, equal or nearly equal, and of the rows that stand before.

Texts are compared by their words in lower case (Unicode NFKC), without punctuation; of scripts that put no
spaces between words each character is one. Nearly equal means: by an
estimate from 128 minimal hashes, the sets of pieces have a Jaccard similarity of at least a threshold. Pieces
are five words of a document and five characters of a question, which is too short for words. The hashes are
Rensa's (https://github.com/beowolx/rensa, MIT); only the signature of a text is kept, never the text.

`TextIndex` finds texts by locality-sensitive hashing: those that share a band of hashes with a text are
candidates, and are then compared by their whole signatures.

A row is nearly equal to another when its question has the same words and its documents, taken together, are
nearly the same texts (`RowsBefore`). Questions that are only nearly the same are kept: on TAT-QA's they ask
different things ("owed to members", "owed by members").
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from pydantic import Field

from reward.types import RagQuery, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Signature = NDArray[np.uint32]  # (NUM_HASHES,)
    Signatures = NDArray[np.uint32]  # (N, NUM_HASHES)
    Bands = NDArray[np.uint64]  # (NUM_BANDS, N)

NUM_HASHES = 128
NUM_BANDS, HASHES_A_BAND = 16, 8
MIN_DOCUMENT_WORDS = 10  # "Net sales" and "Early life" stand in documents that have nothing in common
_MOST_ESTIMATED = 0.999  # 1 is for equal words alone
_SEED = 1
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that its powers keep all bits
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


def _words_of(text: str) -> list[str]:
    word = _ASCII_WORD if text.isascii() else _WORD
    return word.findall(unicodedata.normalize("NFKC", text).casefold())


def fingerprint(query: RagQuery) -> tuple[tuple[bytes, ...], Signatures]:
    """What names the texts of a query, exactly and nearly: of its question, then of its documents.

    Returns:
        1 + D keys, 64 bits of a digest of a text's words, empty for a document that is too short to tell it
        from others; signatures (1 + D, NUM_HASHES).
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
    return hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).digest()[:8]


def similarities(signature: Signature, others: Signatures) -> NDArray[np.float64]:
    """Estimates of the Jaccard similarity of a text (NUM_HASHES,) and of others (N, NUM_HASHES); (N,)."""
    found: NDArray[np.float64] = (others == signature).mean(axis=1)
    return found


class TextIndex:
    """Texts that are found again; all of them are added before the first is looked for."""

    def __init__(self) -> None:
        self._owners: dict[bytes, tuple[str, str]] = {}  # id and dataset, by what makes texts equal
        self._signatures: list[Signature] = []

    def add(self, key: bytes, name: str, dataset: str, signature: Signature) -> bool:
        """Adds a text, unless one with the same key is there; whether it was added."""
        if key in self._owners:
            return False
        self._owners[key] = (name, dataset)
        self._signatures.append(signature)
        return True

    def find(self, keys: Sequence[bytes], signatures: Signatures, threshold: float) -> Iterator[Match | None]:
        """Yields for each text the equal one, or else the most similar one that reaches the threshold.

        Those with an equal band are candidates: two texts of Jaccard similarity s have one with probability
        1 - (1 - s^8)^16: 0.95 for 0.8, 0.9999 for 0.9, 0.06 for 0.5.
        """
        import numpy as np

        if not self._owners:
            yield from [None] * len(keys)
            return
        wanted, (bands, order) = _band_keys(signatures), self._bands
        pairs = list(zip(bands, wanted, strict=True))
        starts = np.stack([band.searchsorted(one, "left") for band, one in pairs], axis=1)  # (N, NUM_BANDS)
        ends = np.stack([band.searchsorted(one, "right") for band, one in pairs], axis=1)
        for key, signature, start, end in zip(keys, signatures, starts, ends, strict=True):
            if key in self._owners:
                yield _match(self._owners[key])
                continue
            met = np.flatnonzero(start < end)
            places = np.unique([place for band in met for place in order[band, start[band] : end[band]]])
            found = np.minimum(similarities(signature, self._matrix[places.astype(int)]), _MOST_ESTIMATED)
            if not places.size or found.max() < threshold:
                yield None
                continue
            best = int(np.argmax(found))
            owner = next(islice(self._owners.values(), int(places[best]), None))
            yield _match(owner, float(found[best]))

    @cached_property
    def _matrix(self) -> Signatures:
        import numpy as np

        return np.stack(self._signatures)

    @cached_property
    def _bands(self) -> tuple[Bands, NDArray[np.intp]]:
        """The keys of each band in order, and the texts that they are of; (NUM_BANDS, N) each."""
        import numpy as np

        keys = _band_keys(self._matrix)
        order = np.argsort(keys, axis=1, kind="stable")
        return np.take_along_axis(keys, order, axis=1), order


def _band_keys(signatures: Signatures) -> Bands:
    """A 64-bit hash of each band of hashes, (NUM_BANDS, N)."""
    import numpy as np

    factors = np.cumprod(np.full(HASHES_A_BAND, _FACTOR, dtype=np.uint64))  # modulo 2^64, as the sum
    bands = signatures.reshape(-1, NUM_BANDS, HASHES_A_BAND).astype(np.uint64)
    return np.ascontiguousarray((bands * factors).sum(axis=2).T)


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
        # By question: its rows with the keys of their documents, and their signatures one after the other.
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
        self, row_id: str, source: str, keys: Sequence[bytes], found: Signatures, threshold: float
    ) -> Match | None:
        """Notes a row by its signatures, unless a nearly equal one comes before, which is returned."""
        import numpy as np

        kept, hashes = self._kept[keys[0]]
        union = found[1:].min(axis=0)  # the least hashes of several texts are those of their union
        words = b"" if b"" in keys[1:] else b"".join(sorted(keys[1:]))
        if kept:
            before = np.frombuffer(hashes, dtype=np.uint32).reshape(-1, NUM_HASHES)
            similar = np.minimum(similarities(union, before), _MOST_ESTIMATED)
            similar[[one == words != b"" for _, one in kept]] = 1.0
            if (near := np.flatnonzero(similar >= threshold)).size:
                return _match(kept[near[0]][0], float(similar[near[0]]))
            del before  # a bytearray with a view of it does not grow
        kept.append(((row_id, source), words))
        hashes += union.tobytes()
        return None


def _match(owner: tuple[str, str], similar: float = 1.0) -> Match:
    return Match(id=owner[0], dataset=owner[1], similarity=round(similar, 3))
