"""Documents that are too long for one prompt, in parts that fit; every part is asked all questions.

Whole documents are kept together as far as they fit. A document that alone is too long is cut at the end of a
paragraph, else of a sentence, else between two words; never inside a word, so no number is ever cut. What no
part has room for is given back as unread, and the verdict lists it: nothing is cut silently.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from reward.claims.text import SENTENCE_END
from reward.types import Document, DocumentSpan

Fits = Callable[[Sequence[Document]], Awaitable[bool]]

_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_SPACE = re.compile(r"\s+")
_SPACED = re.compile(r"\s*\S*\s*")


@dataclass(frozen=True)
class Parts:
    """Documents in parts; each part is a prompt's documents."""

    parts: tuple[tuple[Document, ...], ...]
    unread: tuple[DocumentSpan, ...] = ()


async def split_documents(
    documents: Sequence[Document], *, fits: Fits, max_parts: int, max_chars: int
) -> Parts:
    """Splits documents into parts.

    `fits` tells whether documents fit into one prompt together with the questions, as no documents do, and is
    not asked about texts over `max_chars`.
    """
    parts: list[list[Document]] = [[]]
    unread: list[DocumentSpan] = []
    for document in documents:
        start = 0
        while True:
            if len(parts) > max_parts:
                unread.append(_span(document, start, len(document.text)))
                break
            rest = _piece(document, start, len(document.text))
            if len(rest.text) <= max_chars and await fits([*parts[-1], rest]):
                parts[-1].append(rest)
                break
            if parts[-1]:
                parts.append([])
                continue
            cut = await _longest(document, start, fits, max_chars)
            if cut > start:
                parts[-1].append(_piece(document, start, cut))
                parts.append([])
                start = _end(_SPACE, document.text, cut)
            else:  # one word, too long for any prompt
                cut, start = start, _end(_SPACED, document.text, start)
                unread.append(_span(document, cut, start))
            if start >= len(document.text):
                break
    return Parts(
        tuple(tuple(part) for part in parts if part), tuple(span for span in unread if span.start < span.end)
    )


async def _longest(document: Document, start: int, fits: Fits, max_chars: int) -> int:
    """The end of the longest piece from `start` that fits, at the best boundary in its second half."""
    ends = _word_ends(document.text, start, min(len(document.text), start + max_chars))
    low, high = 0, len(ends)  # the first `low` words fit, more than `high` do not
    while low < high:
        middle = (low + high + 1) // 2
        if await fits([_piece(document, start, ends[middle - 1])]):
            low = middle
        else:
            high = middle - 1
    if not low:
        return start
    end = ends[low - 1]
    half = start + (end - start) // 2
    for boundary in (_PARAGRAPH_END, SENTENCE_END):
        places = [match.end() for match in boundary.finditer(document.text, half, end)]
        if places:
            return places[-1]
    return end


def _word_ends(text: str, start: int, end: int) -> list[int]:
    """Where words end; without white space (as in Chinese), where sentences do."""
    ends = {match.start() for match in _SPACE.finditer(text, start, end)}
    ends |= {match.end() for match in SENTENCE_END.finditer(text, start, end)}
    if end == len(text):
        ends.add(end)
    return sorted(place for place in ends if place > start)


def _piece(document: Document, start: int, end: int) -> Document:
    is_whole = (start, end) == (0, len(document.text))
    return document if is_whole else document.model_copy(update={"text": document.text[start:end]})


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where what begins at `start` ends; `start` itself when nothing of the pattern does."""
    found = pattern.match(text, start)
    return found.end() if found else start


def _span(document: Document, start: int, end: int) -> DocumentSpan:
    return DocumentSpan(document=document.id, start=start, end=end)
