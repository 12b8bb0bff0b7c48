"""What is kept of a row to find it again: digests of its texts, and MinHash signatures of nearly equal ones.

Texts are compared by their words in lower case (Unicode NFKC), without punctuation. Nearly equal means: by an
estimate from 128 minimal hashes, the sets of pieces have a Jaccard similarity of at least a threshold. Pieces
are five words of a document and five characters of a question, which is too short for words. The hashes are
Rensa's (https://github.com/beowolx/rensa, MIT); only the signature of a text is kept, never the text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward.types import RagQuery

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


@dataclass(frozen=True)
class TextKeys:
    """What names the texts of a row, exactly."""

    question: bytes  # 64 bits of a digest of the question's words
    documents: tuple[bytes, ...]  # the same of each document; empty for one too short to tell from others


def words_of(text: str) -> list[str]:
    """The words by which texts are compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def fingerprint(query: RagQuery) -> tuple[TextKeys, Signatures]:
    """Returns the keys of a query's texts and their signatures (1 + D, NUM_HASHES): question, then documents.

    Raises:
        ModuleNotFoundError: Rensa or NumPy is not installed.
    """
    import numpy as np
    from rensa import RMinHash

    question = words_of(query.query)
    documents = [words_of(document.text) for document in query.documents]
    keys = tuple(digest(words) if len(words) >= MIN_DOCUMENT_WORDS else b"" for words in documents)
    pieces = [_pieces(" ".join(question), _CHARS_A_PIECE, "")]
    pieces += [_pieces(words, _WORDS_A_PIECE, " ") for words in documents]
    found = RMinHash.digests_from_token_sets(pieces, NUM_HASHES, _SEED)
    return TextKeys(digest(question), keys), np.array(found, dtype=np.uint32)


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
