"""Whether a document's sentence around a number speaks of the same as one of a response, by its words."""

import calendar
import re

from reward.claims.kind import Context, Place
from reward.claims.numbers.model import Kind, Number
from reward.claims.text import sentence_span

_WORDS = re.compile(r"[^\W\d_]{4,}")
_BESIDE_NUMBERS = {"before", "after", *map(str.lower, calendar.month_name[1:])}
_MULTIPLE = re.compile(
    r"(?:doubl|tripl|trebl|quadrupl|quintupl|halv)\w*|\w+fold|percent|cent|r[io]se[ns]?|fell|fallen"
)


def is_meant(claimed: Number, writing: Number, place: Place[Number], context: Context | None) -> bool:
    """Whether the documents speak of the same where "tripled" and "rose by 200%" stand for each other."""
    is_multiple = (writing.unit == "times") is not (claimed.unit == "times") and (
        writing.kind is Kind.PERCENT or claimed.kind is Kind.PERCENT
    )
    if not is_multiple or context is None:
        return True
    shared = {*_long_words(context())} & {*_long_words(sentence_of(place))}
    return any(not _MULTIPLE.fullmatch(word) for word in shared)


def is_of_sentence(said: str, place: Place[Number]) -> bool:
    """Whether the sentence of a document around a number has the longer words of another, in order."""
    words = _long_words(said)
    return bool(words) and words == _long_words(sentence_of(place))


def sentence_of(place: Place[Number]) -> str:
    """The sentence of a document around a number."""
    text = place.document.text
    low, high = sentence_span(text, place.mention.start, place.mention.end)
    return text[low:high]


def _long_words(text: str) -> list[str]:
    words = _WORDS.findall(text.lower())
    return [word for word in words if word not in _BESIDE_NUMBERS]
