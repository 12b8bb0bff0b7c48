"""Whether a small number in words counts what the answer, or a document, lists one by one.

"It has three layers: the crust, the mantle and the core." No document needs to say "three": whoever lists
three things may count them. So may whoever speaks of two that are known ("the two men", "two others"), or of
the passages ("The text names two reasons").
"""

import re
from functools import lru_cache

from reward.claims.numbers.model import Kind, Number
from reward.claims.text import sentence_span

_KNOWN = re.compile(r"\b(?:the|these|those|both|all|other|its|his|her|their)\s$", re.IGNORECASE)
_PAIR = 2
_MOST_KNOWN = 3  # "the two men", "the three of them"; "the five ships" says how many there are
_OTHERS = re.compile(r"\s(?:others?|more|of (?:them|these|those|which|whom))\b")
_OF_THE_TEXT = re.compile(
    r"\b(?:passages?|texts?|documents?|articles?|excerpts?|sources?|context|answer)\b[^.]*$", re.IGNORECASE
)
_ABSTRACT = re.compile(
    r"\s(?:different|separate|distinct|main|key|basic|common|major|primary|possible|notable|specific)\b"
    r"|\s(?:[a-z]+\s)?(?:steps|parts|ways|tips|points|reasons|items|things|methods|options|uses|types|kinds|sorts"
    r"|factors|categories|examples(?![^.]*\b(?:known|exist|surviv))|aspects|elements|components|stages|phases|approaches|answers|questions)\b"
)
_NEXT_OF_A_ROW = re.compile(r"(?:\b(?:an?|another)\s|(?:^|[.!?:;\n]\s*)(?:the\s)?)$", re.IGNORECASE)
_LAST = re.compile(r"\blast $")
_ROUNDS = (4, 8)  # "the last four" of a cup
_EVERY_ANSWER_RANKS = 3  # "a third reviewer", "the second phase"
_RANKED_FACT = re.compile(
    r" (?:win|victory|title|triumph|goal|week|weekend|half"
    r"|edition|floor|season|place|child|son|daughter|wife|husband|division|prize|spot"
    r"|position|of (?:its|their) kind)\b"
)
_WHOSE, _CAPITAL = re.compile(r"\b(?:his|her|its|their) $"), re.compile(r" [A-Z]")
_MOST_OF_A_ROW = 6  # "A fourth guest", "Sixth, wait."
_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)]|[a-z][.)])\s", re.MULTILINE)
_LAST_ITEM = re.compile(r",?\s(?:and|or|&)\s")
_COMMA = re.compile(r"[,;]\s")
_TWO_NAMES = re.compile(r"\b[A-Z]\w*(?: [A-Z]\w*){0,5} (?:and|or|&) (?:the |an? |in |of )*[A-Z]")
_LOOK_BACK, _LIST_REACH = 120, 300  # characters before a number, and behind its sentence
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_COLON = re.compile(r":\s")


def is_listed(number: Number, response: str, documents: tuple[str, ...], things: frozenset[str]) -> bool:
    """Whether the answer, or a document, lists as many things as a small count in words says.

    Args:
        number: A mention of the response.
        response: What is audited.
        documents: The texts of the documents.
        things: The first letters of what the number counts; a document's list must be of them.
    """
    if number.kind is Kind.ORDINAL:
        return False
    low, high = sentence_span(response, number.start, number.end)
    count = int(number.value)
    if _lists(response[low : high + _LIST_REACH], count) or len(_ITEM.findall(response)) == count:
        return True
    return any(_document_lists(text, things, count) for text in documents)


def may_be_known(number: Number, response: str) -> bool:
    """Whether a small count or rank in words speaks of known things, or of the text that holds it."""
    before = response[max(0, number.start - _LOOK_BACK) : number.start]
    if number.kind is Kind.ORDINAL:
        if _RANKED_FACT.match(response, number.end):
            return False
        if number.value > 1 and _WHOSE.search(before) and _CAPITAL.match(response, number.end):
            return False  # "her third Golden Quill"
        most = _MOST_OF_A_ROW if _NEXT_OF_A_ROW.search(before) else _EVERY_ANSWER_RANKS
        return number.value <= most
    if number.value <= _MOST_KNOWN and _KNOWN.search(before):
        return True
    if number.value in _ROUNDS and _LAST.search(before):
        return True
    if _OTHERS.match(response, number.end) or _ABSTRACT.match(response, number.end):
        return True
    low, _ = sentence_span(response, number.start, number.end)
    return _OF_THE_TEXT.search(response[low : number.start]) is not None


def _lists(text: str, count: int) -> bool:
    return any(_is_list(sentence, count) for sentence, _ in _sentences(text))


def _is_list(sentence: str, count: int) -> bool:
    """Whether a sentence lists so many things; of two only names, as "and" joins much else."""
    if count <= _PAIR:
        return count > 1 and _TWO_NAMES.search(sentence) is not None
    for last in _LAST_ITEM.finditer(sentence):
        before = _COLON.split(sentence[: last.start()])[-1]
        # The words before the first comma begin the sentence, or are the first of the things.
        if len(_COMMA.split(before)) in (count - 1, count):
            return True
    return False


def _document_lists(text: str, things: frozenset[str], count: int) -> bool:
    return any(
        any(f" {thing}" in low for thing in things) and _is_list(sentence, count)
        for sentence, low in _sentences(text)
    )


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[tuple[str, str], ...]:
    """The sentences of a text, also in small letters."""
    return tuple((sentence, sentence.casefold()) for sentence in _SENTENCE_END.split(text))
