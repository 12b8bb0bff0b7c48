"""Places in plain text: words, the sentence around a place, spans around a place, and whole quotations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import accumulate, compress
from operator import add


def _spaced(characters: Iterable[str]) -> dict[int, str]:
    """A space for each of some characters that is no letter, as `str.translate` takes it."""
    return {ord(c): " " for c in set(characters) if not c.isalnum() or c.isdecimal()}


_SPACED = _spaced(map(chr, range(128)))
# It begins with one set of characters, which makes the search for it fast.
SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f](?:(?<=[\n\u3002\uff01\uff1f])|[\"')\]\u201d]?(?=\s))")

# Before a point that ends no sentence: of an abbreviation, and of the day in a German date.
_ABBREVIATIONS = (
    *("i.e", "e.g", "d.h", "d. h", "z.B", "z. B", " approx", " ca", " vs", " bzw", " incl", " resp"),
    *(" Mr", " Mrs", " Ms", " Dr", " Prof", " Nr"),
)
_GERMAN_MONTH = re.compile(r"\. (?:Jan|Feb|M\u00e4r|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z\u00e4]*\b")
_LONGEST_BEFORE = 7
_LONG_WORD = re.compile(r"\w{3,}")
_BEYOND_ASCII = re.compile(r"([^\x00-\x7f]+)")


def sentence_span(text: str, start: int, end: int, *, reach: int = 300) -> tuple[int, int]:
    """The bounds of the sentence that holds `text[start:end]`, without white space at its ends.

    Args:
        text: The text.
        start: Where the held part begins.
        end: Where the held part ends.
        reach: Most characters to take on each side; a longer sentence is cut there.
    """
    starts, ends = _boundaries(text)
    low, high = start - reach if start > reach else 0, end + reach
    before = bisect_right(ends, start) - 1
    is_boundary = before >= 0 and ends[before] == start
    if is_boundary and text[start : start + 1].isspace() and text[start - 1] != "\n":
        before -= 1  # the white space that makes a boundary of a point is inside the held part
    if before >= 0 and starts[before] >= low:
        low = ends[before]
    after = bisect_left(starts, end)
    if after < len(ends) and ends[after] <= high:
        high = ends[after]
    elif high > len(text):
        high = len(text)
    while low < start and text[low].isspace():
        low += 1
    while high > end and text[high - 1].isspace():
        high -= 1
    return low, high


@lru_cache(maxsize=1024)  # one sentence makes several claims, and one place of a document supports many
def content_words(text: str) -> frozenset[str]:
    """The words of a short text that have three letters or more, in small letters."""
    return frozenset(_LONG_WORD.findall(text.lower()))


@lru_cache(maxsize=256)
def _boundaries(text: str) -> tuple[list[int], list[int]]:
    """Where the ends of sentences begin, and where they end."""
    found = [match.span() for match in SENTENCE_END.finditer(text)]
    found = [span for span in found if not _is_within(text, span[0])]
    return [start for start, _ in found], [end for _, end in found]


def _is_within(text: str, point: int) -> bool:
    """Whether what looks like the end of a sentence is the point of an abbreviation or a German date."""
    before = text[max(0, point - _LONGEST_BEFORE) : point]
    if before[-1:].isdigit():
        return _GERMAN_MONTH.match(text, point) is not None
    return text[point] == "." and f" {before}".endswith(_ABBREVIATIONS)


def lowered(text: str) -> str:
    """A text in lower case, each character at its place."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return low if text.isascii() else low.replace("\u017f", "s")  # the long s


class Words:
    """The words of a text in lower case, of letters alone, and where each is."""

    def __init__(self, low: str) -> None:
        self._spaced = _words_alone(low)
        self.all = frozenset(self._spaced.split())

    def within(self, start: int, end: int) -> list[str]:
        """The words of a part of the text, which cuts none."""
        return self._spaced[start:end].split()

    def places(self, wanted: frozenset[str]) -> list[int]:
        """Where the wanted words begin, from left to right."""
        if wanted.isdisjoint(self.all):
            return []
        return list(compress(self._starts, map(wanted.__contains__, self._words)))

    @cached_property
    def _words(self) -> list[str]:
        """All of them, with an empty one for each space too many: so their lengths lead to their places."""
        return self._spaced.split(" ")

    @cached_property
    def _starts(self) -> list[int]:
        return list(map(add, accumulate(map(len, self._words), initial=0), range(len(self._words))))


def _words_alone(low: str) -> str:
    """A text with a space for each character that is no letter."""
    if low.isascii():
        return low.translate(_SPACED)
    others = _spaced(low)
    parts = _BEYOND_ASCII.split(low)  # `translate` is many times as fast where all is ASCII
    parts[::2] = [part.translate(_SPACED) for part in parts[::2]]
    parts[1::2] = [part.translate(others) for part in parts[1::2]]
    return "".join(parts)


@lru_cache(maxsize=16)  # the readers of a response look for other words of it one after the other
def words_in(low: str) -> Words:
    """The words of a text that is in lower case."""
    return Words(low)


class Spans:
    """Half-open spans of one text, `text[start:end]`, ready for the question whether one holds a place."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._furthest = list(accumulate((end for _, end in ordered), max))

    def hold(self, start: int, end: int) -> bool:
        """Whether one of the spans holds all of `text[start:end]`."""
        before = bisect_right(self._starts, start)
        return before > 0 and self._furthest[before - 1] >= end


def holds_whole(text: str, words: str) -> bool:
    """Whether a text holds some words (not empty), of which no word and no number is cut at its ends."""
    start = text.find(words)
    while start >= 0:
        if is_whole(text, start, start + len(words)):
            return True
        start = text.find(words, start + len(words))
    return False


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` cuts no word and no number at its ends."""
    before, first = text[max(0, start - 2) : start], text[start]
    last, after = text[end - 1], text[end : end + 2]
    cuts_word = (first.isalnum() and before[-1:].isalnum()) or (last.isalnum() and after[:1].isalnum())
    inside_first = first.isdigit() and (
        before[-1:] == "-" or (before[:1].isdigit() and before[1:] in (".", ","))
    )
    inside_last = last.isdigit() and after[:1] in (".", ",") and after[1:].isdigit()
    return not (cuts_word or inside_first or inside_last)
