"""Whether a document's sentence around a number speaks of the same as one of a response, by its words."""

import calendar
import re

from reward.claims.kind import Context, Place
from reward.claims.numbers.model import Kind, Number
from reward.claims.text import sentence_span

_WORD = re.compile(r"[^\W\d_]+")
_BESIDE_NUMBERS = {
    *("before", "after", "in", "on", "by", "since", "the", "a", "an"),
    *map(str.lower, calendar.month_name[1:]),
}
_MAY_DIFFER = re.compile(  # the words of a multiple or a rise, and small ones
    r"(?:doubl|tripl|trebl|quadrupl|quintupl|halv|increas|decreas|declin|drop|jump|climb|surg|soar|reduc|lower|rais"
    r"|boost|slash)\w*|\w+fold|cuts?"
    r"|percent|per|cent|r[io]se[ns]?|fell|fall|fallen|gr[eo]wn?|went|up|down|more|less|than|to|from|of"
    r"|has|have|had|was|were|at|its|their"
)


def is_meant(claimed: Number, writing: Number, place: Place[Number], context: Context | None) -> bool:
    """Whether the documents speak of the same where "tripled" and "rose by 200%" stand for each other.

    They do when their sentence has the words of the response's. "Rose by 200" says nothing of "tripled".
    """
    is_multiple = (writing.unit == "times") is not (claimed.unit == "times") and (
        writing.kind is Kind.PERCENT or claimed.kind is Kind.PERCENT
    )
    if is_multiple and Kind.COUNT in (place.mention.kind, claimed.kind):
        return False
    if not is_multiple or context is None:
        return True
    said = {word for word in _words(context()) if not _MAY_DIFFER.fullmatch(word)}
    return bool(said) and said <= {*_words(sentence_of(place))}


def is_of_sentence(said: str, place: Place[Number]) -> bool:
    """Whether the sentence of a document around a number has the words of another, in order."""
    words = _words(said)
    return bool(words) and words == _words(sentence_of(place))


def sentence_of(place: Place[Number]) -> str:
    """The sentence of a document around a number."""
    text = place.document.text
    low, high = sentence_span(text, place.mention.start, place.mention.end)
    return text[low:high]


def _words(text: str) -> list[str]:
    """The words of a sentence but those beside numbers; "to" tells a plan, and "new" another thing."""
    return [word for word in _WORD.findall(text.lower()) if word not in _BESIDE_NUMBERS]
