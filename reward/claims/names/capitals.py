"""Capitalised words, and whether they have their capitals from where they stand.

"## Baggage Rules" and "**Cabin Bags:**" name nothing if all their words are ordinary ones: common words,
those of a table, and those that stand written small in the documents. "**Paris Hotels**" still names Paris.

A month that is a name ("Theresa May") and an acronym keep their capitals in `Part.low`, so that no table of
small words holds them.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reward.claims.names import lexicon
from reward.claims.names.lexicon import fold, is_common, stem, words

_UPPER = "".join(c for c in map(chr, range(0x2000)) if c.isupper()).replace("-", "")
_CAPITAL = re.compile(
    rf"[{_UPPER}](?:(?:\.[{_UPPER}])+(?!\w)\.?|[\w]*(?:['\u2019`][^\W_]+)*(?:&[{_UPPER}]\w*)*)"
)
_BEGINS_CAPITAL = re.compile(rf"(?<!\w)[a-z]{{0,2}}[{_UPPER}]")
_SMALL_PREFIX = re.compile(r"(?:^|[^\w'\u2019])([a-z]{1,2})$")  # of "iPhone", "eBay"
_START = re.compile(
    r"(?:^|[.!?:\n|*#>\u2022(\[\"\u201c\u2018{}=/]|(?<!\w)'|[\u2014\u2013]|(?:^|\s)[-+])[\s*_\"\u201c\u2018'(\[#>+-]*$"
)
_MARKUP = re.compile(r"(?:[*_`]|<[A-Za-z][^<>]{0,16}>|\[)*$")
_LINK_END = re.compile(r"[^\[\]\n]{1,80}\]\(")
_BEFORE_BEGINNINGS = frozenset(".!?:|*#>\u2022([\"\u201c\u2018{}=/'\u2014\u2013-+_")  # and white space
_BEFORE = re.compile(r"(\w+)\W{1,2}$")
_AFTER = re.compile(r"\W{1,2}(\w+)")
_SURNAME = re.compile(r" ([A-Z][^\W\d_]+)(?![\w?])")
_DAY = re.compile(r",? ?\d")
_MONTHS = ("march", "april", "may", "june", "august")
_RULER_BEFORE = re.compile(
    r"\b(?:king|queen|pope|emperor|empress|tsar|czar|sultan|shah|prince|duke) (?:[^\W\d_]+ ){1,2}$",
    re.IGNORECASE,
)
_OF_RULER = re.compile(r"I(?:['\u2019]s\b| of [A-Z])")
_DEGREES = re.compile(r"[\d\u00b0]\s?[A-Z]$")
_PRONOUNS = words("pronouns")
_DOUBTFUL = _PRONOUNS | lexicon.ACRONYMS | frozenset(_MONTHS)
IsSmall = Callable[[str], bool]  # whether the documents write a word small
HEADING_MARKS = ("#", "**", "__")
_ORDINARY = words("ordinary")
_HEAD = re.compile(r"(?:^|\n)[ \t>]*#{1,6} [^\n]*$")
_BOLD = re.compile(r"(?:^|[\n.!?:;#>\u2022-]|\d\.)[ \t#>]*(?:[-*+\u2022][ ]+)?(?:\*\*|__)[^*_\n]*$")
_HEADING_REACH = 120  # characters
_new = tuple.__new__
LOOK_BACK = 24  # characters


class Part(NamedTuple):
    """A capitalised word."""

    start: int
    end: int
    text: str
    low: str  # folded


def num_capitalised(text: str) -> int:
    """About how many words of a text are capitalised, counted fast."""
    return len(_BEGINS_CAPITAL.findall(text))


def parts(text: str) -> Iterator[Part]:
    """The capitalised words of a text, without pronouns, from left to right."""
    for match in _CAPITAL.finditer(text):
        start, end = match.span()
        written = match[0]
        before = text[start - 1] if start else " "
        is_quoted = before in "'\u2019" and not text[max(0, start - 2) : start - 1].isalnum()
        if before != " " and (before.isalnum() or before in "_'\u2019") and not is_quoted:
            prefix = _SMALL_PREFIX.search(text[max(0, start - 3) : start])
            if prefix is None:
                continue  # a capital inside a word
            start -= len(prefix[1])
            written = prefix[1] + written
        low = fold(written)
        if low in _DOUBTFUL:
            acronym = low in lexicon.ACRONYMS and written.isupper() and not _is_shouted(text, start, end)
            named = low in _MONTHS and (_is_surname(text, start, end) or _is_first_name(text, start, end))
            if acronym or named:
                low = low.upper()  # so that it is no common word and no month
            elif low in _PRONOUNS and not (low == "i" and _is_regnal(text, start)):
                continue
        if low:
            yield _new(Part, (start, end, written, low))


def _is_regnal(text: str, start: int) -> bool:
    """Whether an "I" is the number of a ruler: "Queen Elizabeth I", "Charles I's army"."""
    before = text[max(0, start - 2 * LOOK_BACK) : start]
    name = before.rpartition(" ")[0].rpartition(" ")[2]
    is_behind_name = before.endswith(" ") and name.istitle() and not is_common(fold(name))
    return is_behind_name and bool(_RULER_BEFORE.search(before) or _OF_RULER.match(text, start))


def _is_surname(text: str, start: int, end: int) -> bool:
    """Whether a month follows a first name, and before no number: "Theresa May"."""
    before = _BEFORE.search(text[max(0, start - LOOK_BACK) : start])
    if before is None or text[start - 1] != " " or _DAY.match(text, end):
        return False
    low = fold(before[1])
    return before[1][0].isupper() and not is_common(low) and low not in lexicon.CALENDAR


def _is_first_name(text: str, start: int, end: int) -> bool:
    """Whether a month begins a sentence and a surname follows: "May Ellery", but not "May Day"."""
    surname = _SURNAME.match(text, end)
    if surname is None or not begins(text, start):
        return False
    low = fold(surname[1])
    return not is_common(low) and low not in lexicon.CALENDAR and low not in lexicon.NATIONS


def _is_shouted(text: str, start: int, end: int) -> bool:
    """Whether a neighbour is written in capitals, too, so that these say nothing of a word."""
    neighbours = _AFTER.match(text, end), _BEFORE.search(text[max(0, start - LOOK_BACK) : start])
    return any(one is not None and len(one[1]) > 1 and one[1].isupper() for one in neighbours)


def begins(text: str, start: int) -> bool:
    """Whether a sentence, line, heading, bracket or quotation begins at a place."""
    if start == 0:
        return True
    if text[start - 1] in "*_`>[":
        start = _before_markup(text, start)
    last = text[max(0, start - 2)]
    if text[start - 1] == " " and last not in _BEFORE_BEGINNINGS and not last.isspace():
        return False
    before = text[max(0, start - LOOK_BACK) : start]
    found = _START.search(before)
    if not found or (start - len(before) > 0 and found.start() == 0):
        return bool(found)
    if before[found.start()] == ".":
        ended = before[: found.start()]
        word = (ended.split() or [""])[-1]
        initial = len(word) == 1 and word.isupper() and not _DEGREES.search(ended)
        return not initial and fold(word) not in lexicon.ABBREVIATIONS
    return True


def _before_markup(text: str, start: int) -> int:
    """Where emphasis, a tag or a link of a word begins in the middle of a line; else the place itself."""
    marked = _MARKUP.search(text, max(0, start - LOOK_BACK), start)
    assert marked is not None
    if marked.end() - marked.start() == 1 and text[start - 1] == "[" and not _LINK_END.match(text, start):
        return start
    place = marked.start()
    return place if text[place - 1 : place] == " " else start


def is_ordinary(word: str, is_small: IsSmall) -> bool:
    """Whether a folded word is an everyday word, or the documents write it small."""
    single = stem(word)
    return (
        is_common(word)
        or word in lexicon.LINKS
        or word.isdigit()
        or not _ORDINARY.isdisjoint((word, single, word[:-2] if word.endswith("es") else single))
        or is_small(word)
    )


def in_heading(text: str, start: int) -> bool:
    """Whether a place is in a heading, or in a bold label that begins a line or a sentence."""
    before = text[max(0, start - _HEADING_REACH) : start]
    if not any(mark in before for mark in HEADING_MARKS):
        return False
    return bool(_HEAD.search(before) or _BOLD.search(before))
