"""Which numbers of a response must be checked.

All that stand in it, in digits and (by setting) in words, but for those that say nothing about the world: the
digits of names that the documents use, citations of the documents, and the response's own length.
"""

import re
import unicodedata
from functools import lru_cache

from reward.claims.numbers.conventions import ENGLISH, conventions_of_response, needs_conventions
from reward.claims.numbers.measure import is_measured
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.plain import plain_text
from reward.claims.numbers.roman import writings
from reward.claims.numbers.unread import all_numbers
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.text import holds_whole
from reward.locales import AUTO
from reward.types import RagQuery

_PLACES = r"\d{1,3}(?:(?:,|[ \t](?:and|or|&))[ \t]?\d{1,3}|[-\u2013]\d{1,3})*"
_CITATION = re.compile(
    rf"(?:\b(?:document|doc|passage|source|reference)s?[ \t]{{0,2}}#?{_PLACES}|\[{_PLACES}\])(?!\w|[.,]\d)",
    re.IGNORECASE,
)
_CITED = ("doc", "passage", "source", "reference")
_BEHIND_FOOTNOTES = frozenset(".,;:!?)]\"'\u2019\u201d\u3002\uff0c")  # or a letter: a footnote is attached
_DIGITS = re.compile(r"\d+")
_WORDS_BEFORE = re.compile(r"(?:[^\W_]*-)?[^\W_]*$")
_WORD_BEHIND = re.compile(r"[^\W_]{0,65}")
_COUNTED = re.compile(r"[*_]* (?:[a-z]+ )?(?:(?!is\b|was\b|has\b|does\b)[a-z]+s|children|people|men|women)\b")
_CITES = re.compile(
    r"(?:[.,;:!?)\]\"]|\b(?:to|by|in|from|per|see|and|or|of|that|documents?|passages?|sources?)) ?[*_]*$",
    re.IGNORECASE,
)
_NEAR = 16  # characters
_LENGTH = re.compile(r"\b(\d{1,6})[ -]words?\b", re.IGNORECASE)
_OPENING = re.compile(r"\s{0,9}[^\n]{1,200}:[ \t]{0,9}(?=\n)")
_FORMULAS = TABLES["formulas"]
_LONGEST_NAME = 64  # characters
_MOST_NAMES = 256  # in one response; each is searched for in all documents


@lru_cache(maxsize=8)  # numbers and dates are two kinds that read one response
def response_numbers(
    response: str, query: RagQuery, *, words: bool = True, locale: str = AUTO
) -> tuple[Number, ...]:
    """The numbers of a response that must be checked, from left to right, composite ones whole.

    Left out are digits of names that stand in the query or its documents as they are ("COVID-19"), citations
    of its documents ("passage 2", "[1]") up to the number of documents, where they are no amounts, and the
    response's own length ("in 50 words") where the query asks for it or an opening line with a colon says it.
    Any other digits must be checked, so that nothing is hidden by its looks.

    Args:
        response: What is audited.
        query: The query and its documents.
        words: Whether numbers in words must be checked, too.
        locale: How the response writes "1.500", where it does not show that itself; see `conventions`.
    """
    conventions = ENGLISH
    if needs_conventions(plain_text(response).text):
        texts = [document.text for document in query.documents]
        conventions = conventions_of_response(response, query.query, texts, locale=locale)
    found = all_numbers(response, enumerators=False, words=words, conventions=conventions)
    if not found:
        return ()
    others = _known_names(response, found, query) | _lengths(response, query)
    cited = _Citations(response, len(query.documents))
    return tuple(n for n in found if not all(atom.start in others or atom in cited for atom in n.atoms))


def _lengths(response: str, query: RagQuery) -> set[int]:
    """Starts of numbers of words that speak of the response itself."""
    if "word" not in response.lower():
        return set()
    asked = {length[1] for length in _LENGTH.finditer(query.query)}
    opening = _OPENING.match(response)
    end = opening.end() if opening else 0
    return {m.start() for m in _LENGTH.finditer(response) if m[1] in asked or m.start() < end}


def _known_names(response: str, numbers: list[Number], query: RagQuery) -> set[int]:
    """Starts of the digits of names that the query or a document holds, in any case."""
    named = [one for one in numbers if one.kind is Kind.IDENTIFIER and not one.is_bound]
    texts = [query.query, *(f"{d.title}\n{d.text}" for d in query.documents)] if named else []
    folded = [_folded(text) for text in texts]
    known: dict[str, bool] = {"": False}
    starts = set()
    for number in named:
        name = _folded(_name_around(response, number))
        if name not in known and len(known) <= _MOST_NAMES:
            spelt = _FORMULAS[name].split("|") if name in _FORMULAS else ()
            same = (name, *spelt, *writings(number.unit))  # "World War II" is the "Second World War"
            known[name] = any(holds_whole(text, one) for one in same for text in folded)
        if known.get(name, False):
            starts.add(number.start)
    return starts


def _folded(text: str) -> str:
    """The text without regard to case, raised and lowered digits ("H₂O"), and which hyphen is written."""
    return unicodedata.normalize("NFKC", text).replace("\u2010", "-").casefold()


class _Citations:
    """The numbers of a response that cite its documents by their places, and say nothing else.

    A raised or circled digit cites, too, where it is attached to a word. "[2] million", "$[2]", "source 3 km"
    and "it drew ② people" are amounts, and a raised digit behind another one may be a power.
    """

    def __init__(self, response: str, num_documents: int) -> None:
        self._response, self._num_documents = response, num_documents
        self._run_of_start: dict[int, int] = {}  # of a document's number: which run of them it is part of
        self._run_of_end: dict[int, int] = {}
        run = 0
        folded = response.casefold()
        may_cite = "[" in response or any(word in folded for word in _CITED)
        for citation in _CITATION.finditer(response) if may_cite else ():
            if citation[0].startswith("[") and self._is_amount(*citation.span()):
                continue
            run += 1
            for digits in _DIGITS.finditer(response, *citation.span()):
                if 1 <= int(digits[0]) <= num_documents:
                    self._run_of_start[digits.start()] = self._run_of_end[digits.end()] = run
                else:
                    run += 1

    def __contains__(self, atom: Number) -> bool:
        """Whether an atom, which may take in a comma ("[1,2]"), ends with the numbers of documents."""
        run = self._run_of_start.get(atom.start)
        return self._is_footnote(atom) if run is None else run == self._run_of_end.get(atom.end)

    def _is_amount(self, start: int, end: int) -> bool:
        """Whether what is in brackets is measured, or counts what follows: "she has [7] children"."""
        text = self._response
        counts = _COUNTED.match(text, end) and not _CITES.search(text, max(0, start - _NEAR), start)
        return bool(counts) or is_measured(text, start, end)

    def _is_footnote(self, atom: Number) -> bool:
        if atom.kind is not Kind.IDENTIFIER or not 1 <= atom.value <= self._num_documents:
            return False
        text = self._response
        if any(char.isalpha() or char.isdecimal() for char in text[atom.start : atom.end]):
            return False
        before = text[max(0, atom.start - 1) : atom.start]
        is_attached = before.isalpha() or before in _BEHIND_FOOTNOTES
        return is_attached and not is_measured(text, atom.start, atom.end)


def _name_around(text: str, number: Number) -> str:
    """The name that a number's digits belong to: "COVID-19", "T2" of "T2-weighted"; empty when too long."""
    near = max(0, number.start - _LONGEST_NAME - 1)
    before, behind = _WORDS_BEFORE.search(text, near, number.start), _WORD_BEHIND.match(text, number.end)
    start = before.start() if before else number.start
    name = text[start : behind.end() if behind else number.end]
    return name if len(name) <= _LONGEST_NAME else ""
