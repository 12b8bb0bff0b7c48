"""Which numbers of a response must be checked.

All that stand in it, in digits and (by setting) in words, but for those that say nothing about the world: the
digits of names that the documents use, citations of the documents, and the response's own length.
"""

from __future__ import annotations

import re

from reward.judging.evidence import find_whole
from reward.numbers import Kind, Number, find_numbers
from reward.types import RagQuery

_PLACES = r"\d{1,3}(?:(?:,|[ \t](?:and|or|&))[ \t]?\d{1,3}|[-\u2013]\d{1,3})*"
_CITATION = re.compile(
    rf"(?:\b(?:document|doc|passage|source|reference)s?[ \t]{{0,2}}#?{_PLACES}|\[{_PLACES}\])(?!\w|[.,]\d)",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"\b(\d{1,6})[ -]words?\b", re.IGNORECASE)
_OPENING = re.compile(r"\s{0,9}[^\n]{1,200}:[ \t]{0,9}(?=\n)")
_LONGEST_NAME = 64  # characters
_MOST_NAMES = 256  # in one response; each is searched for in all documents


def response_numbers(response: str, query: RagQuery, *, words: bool = True) -> list[Number]:
    """The numbers of a response that must be checked, from left to right, composite ones whole.

    Left out are digits of names that stand in the query or its documents as they are ("COVID-19"), citations
    of its documents ("passage 2", "[1]") up to the number of documents, and the response's own length ("in 50
    words") where the query asks for it or an opening line with a colon says it. Any other digits must be
    checked, so that nothing is hidden by its looks.

    Args:
        response: What is audited.
        query: The query and its documents.
        words: Whether numbers in words must be checked, too.
    """
    found = find_numbers(response, words=words)
    others = _known_names(response, found, query)
    others |= _citations(response, len(query.documents)) | _lengths(response, query)
    return [number for number in found if not all(atom.start in others for atom in number.atoms)]


def _lengths(response: str, query: RagQuery) -> set[int]:
    """Starts of numbers of words that speak of the response itself."""
    asked = {length[1] for length in _LENGTH.finditer(query.query)}
    opening = _OPENING.match(response)
    end = opening.end() if opening else 0
    return {m.start() for m in _LENGTH.finditer(response) if m[1] in asked or m.start() < end}


def _known_names(response: str, numbers: list[Number], query: RagQuery) -> set[int]:
    """Starts of the digits of names that the query or a document holds, in any case."""
    named = [number for number in numbers if number.kind is Kind.IDENTIFIER]
    if not named:
        return set()
    texts = [query.query.casefold(), *(f"{d.title}\n{d.text}".casefold() for d in query.documents)]
    known: dict[str, bool] = {}
    for number in named:
        name = _name_around(response, number).casefold()
        if name and name not in known and len(known) < _MOST_NAMES:
            known[name] = any(find_whole(name, text) is not None for text in texts)
    return {n.start for n in named if known.get(_name_around(response, n).casefold(), False)}


def _citations(response: str, num_documents: int) -> set[int]:
    """Starts of the numbers that cite a document by its place."""
    starts = set()
    for citation in _CITATION.finditer(response):
        for digits in re.finditer(r"\d+", citation[0]):
            if 1 <= int(digits[0]) <= num_documents:
                starts.add(citation.start() + digits.start())
    return starts


def _name_around(text: str, number: Number) -> str:
    """The name that a number's digits belong to: "COVID-19", "T2" of "T2-weighted"; empty when too long."""
    start, end = _word_start(text, number.start), number.end
    if text[start - 1 : start] == "-":
        start = _word_start(text, start - 1)
    while end < len(text) and end - number.end <= _LONGEST_NAME and text[end].isalnum():
        end += 1
    return text[start:end] if end - start <= _LONGEST_NAME else ""


def _word_start(text: str, end: int) -> int:
    start = end
    while start > 0 and end - start <= _LONGEST_NAME and text[start - 1].isalnum():
        start -= 1
    return start
