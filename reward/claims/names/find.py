"""Where names stand in a text, by rules on capitals.

A name is a run of capitalised words, with what links them ("of", "de", "van"). A word that is capitalised
because a sentence, a heading or a quotation begins is a name only if it is no common English word, so "Rose
sang." holds no name that is found. Months and weekdays belong to dates, but for "Theresa May".
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import dropwhile
from operator import attrgetter

from reward.claims.names import lexicon
from reward.claims.names.capitals import (
    HEADING_MARKS,
    LOOK_BACK,
    IsSmall,
    Part,
    begins,
    in_heading,
    is_ordinary,
    parts,
)
from reward.claims.names.german import is_noun
from reward.claims.names.lexicon import is_common, is_content, is_plural, looks_common, words
from reward.claims.names.model import KEPT_DOTTED, Name, name_of, tokens_of
from reward.claims.names.openings import opens_foreign
from reward.claims.names.places import place_behind
from reward.claims.names.titles import find_titles
from reward.claims.text import Spans

_PARTICLES = (
    "of the|of|de la|de los|de|du|des|la|le|del|della|di|da|do|dos|van der|van den|van|von|der|den|ten"
)
_OF_PLACES = "upon|under|on|by|next|am|an der|sur|sous|le|la|les|de|du|en|in|super"  # "Stratford-upon-Avon"
_LINK = re.compile(
    rf"(?: (?:{_PARTICLES}|al|bin|ibn|am|sur) |-(?:{_OF_PLACES}|the)-|-|\u2010|\u2011| ?& |(?<=\.) ?)"
)
_SMALL_BEHIND = re.compile(r"(?:[*_`]{1,3}|</\w{1,8}>|\)|\])?[.,]?[ ]?(?=[a-z])")
_GOES_ON = re.compile(r"\*\* [a-z]")  # a sentence, behind its bold first words
_NEXT = re.compile(r" ([a-z]{2,10}(?:n't)?)(?![\w'])")
_UNIT_BEFORE = re.compile(r"(?:\d|\u00b0|degrees?|in|or|zero) ?$", re.I)
_DIGIT_BEFORE = re.compile(r"\d[ \u00a0]?$")
_LAST_WORD = re.compile(r"\W")
_MARK = re.compile(r"[\"*'\u201c\u201e\u2018]")
_AMOUNT = re.compile(r"[A-Z]{3}[ \u00a0]?\d")  # "EUR 4,800"
_SIGN_BEHIND = re.compile(r"\. ?\d")
_BEGIN = attrgetter("start")
_LONGEST_RUN = 12  # words
_LONGEST_GAP = 10  # characters between two words: ". van der "
_SECOND_HALF = re.compile(r"-([a-z]{2,5})(?![\w-])")  # of a given name: "Kim Soo-jin", "Jean-luc Morel"
_ASIDE = re.compile(  # within a sentence
    r"(?:[a-z0-9,] (?:[(\[{\"\u201c\u2018]|[\u2014\u2013] )|\\[a-z]{1,10}\{|[a-z]: )[*_`]*$"
)
_ASIDE_REACH = 16


def find_names(text: str, is_small: IsSmall = lambda word: False) -> list[Name]:
    """All names of a text, from left to right; `is_small` tells whether documents write a word small."""
    titles = list(find_titles(text)) if _MARK.search(text) else []
    taken = Spans((title.start, title.end) for title in titles)
    has_headings = any(mark in text for mark in HEADING_MARKS)
    found: list[Name] = []
    for run in map(partial(_without_sign, text), _runs(text)):
        if not run or (titles and taken.hold(run[0].start, run[-1].end)):
            continue
        if len(run) == 2 and run[0].low in ("not", "no") and is_common(run[1].low):
            continue  # "Not Allowed"
        is_headed = has_headings and in_heading(text, run[0].start) and not _GOES_ON.match(text, run[-1].end)
        if is_headed and all(is_ordinary(part.low, is_small) for part in run):
            continue
        name = _name(text, run)
        if name and not (len(run) == 1 and _is_begun(text, run[0], is_small)):
            place = place_behind(text, name.end)
            found.append(name._replace(place=place) if place else name)
    if not titles:
        return found
    outside = [name for name in found if not taken.hold(name.start, name.start + 1)]
    return sorted(outside + titles, key=_BEGIN)


_EPITHETS = words("epithets")
_UNIT_SIGNS = words("unit_signs")
_DEEDS = words("deeds")
_VERBS_TOO = words("verbs_too")
_BEFORE_OBJECTS = words("before_objects")
_SURNAMES_TOO = words("surnames_too") | lexicon.GIVEN_NAMES
_DOERS = lexicon.CITIES | words("also_words") | _SURNAMES_TOO  # names where they do what only a name does
_PERSONS = words("persons")
_SYLLABLES = ("won", "sun", "young", "soon", "kook")  # common words that end Korean given names
_APPOSED = re.compile(r", (?:who|whose|whom)\b|, (?:an?|the) ((?:[\w-]+ ?){1,4})")
_SHORT_DAYS = ("sun", "jan", "mar")  # at the end of a name: "Bressay Sun"
_OWNERS = ("king", "queen")  # of colleges, inns and roads
_FIRST_NAMES = ("jan",)  # before a surname: "Jan Maes"
_KEPT = lexicon.PREFIXES | lexicon.GIVEN_NAMES
_EMPTY = words("empty")  # no name begins with one of these
_SILENT = _EMPTY | lexicon.CALENDAR


def _runs(text: str) -> Iterator[list[Part]]:
    """Capitalised words that stand together as one name."""
    run: list[Part] = []
    for part in parts(text):
        if run and (len(run) == _LONGEST_RUN or not _continues(text, run[-1], part)):
            yield run
            run = []
        run.append(part)
    if run:
        yield run


def _without_sign(text: str, run: list[Part]) -> list[Part]:
    """A run without the "No" of "Symphony No. 5", and without a unit, which numbers have."""
    if (
        len(run) > 1
        and _is_unit_sign(run[0])
        and _DIGIT_BEFORE.search(text, max(0, run[0].start - 2), run[0].start)
    ):
        run = run[1:]  # "16 GB RAM", "12 V DC"
    return run[:-1] if run[-1].low == "no" and _SIGN_BEHIND.match(text, run[-1].end) else run


def _is_unit_sign(part: Part) -> bool:
    return part.text in _UNIT_SIGNS or (len(part.text) == 1 and part.text in "VWA")


def _continues(text: str, before: Part, part: Part) -> bool:
    if part.start - before.end > _LONGEST_GAP or (
        before.low in lexicon.CALENDAR and before.low not in _FIRST_NAMES
    ):
        return False
    if part.low in lexicon.CALENDAR and part.low not in _SHORT_DAYS:
        return False
    if _AMOUNT.match(text, part.start):
        return False
    gap = text[before.end : part.start]
    if "\n" in gap:
        return False
    if before.text[-1] == "s" and before.text.endswith(("'s", "\u2019s")):
        return gap == " " and before.low in _OWNERS  # "King's College"
    if gap == " ":  # "J.R.R. Tolkien", but not "in the U.S. Then"
        return before.text[-1] != "." or not is_common(part.low) or _are_initials(before, part)
    if gap == ". ":
        return (len(before.low) == 1 or before.low in lexicon.ABBREVIATIONS) and not is_common(part.low)
    if gap == " the ":  # "Henry the Eighth"
        return (part.low in lexicon.RULERS or part.low in _EPITHETS) and not is_common(before.low)
    if gap in (" for ", " and "):
        is_joint = (before.low, gap.strip(), part.low) in lexicon.JOINTS
        return is_joint or (gap == " for " and before.low in lexicon.OF_HEADS)
    if gap.startswith(".") and len(before.low) == 1:  # "K. van der Linde"
        gap = gap[1:]
    return bool(_LINK.fullmatch(gap))


def _are_initials(part: Part, behind: Part) -> bool:
    """Whether a dotted word is the initials of the surname behind it: "J.R. Rowling", "H.C. Wells"."""
    is_dotted = part.text.count(".") == len(part.low) <= 3
    return is_dotted and part.low.lower() not in KEPT_DOTTED and behind.low not in _EMPTY


def _name(text: str, run: list[Part]) -> Name | None:
    """The name that a run is, or holds."""
    if len(run) > 1 and opens_foreign(text, run[0], is_alone=False):
        run = run[1:]
    # "Mittwoch des Monats" is no name of two words.
    is_alone = len(run) == 1 or text[run[0].end : run[1].start] in (" des ", " der ")
    run = list(dropwhile(lambda part: is_noun(text, part.start, part.low, is_alone=is_alone), run))
    if not run:
        return None
    whole = run
    if len(run) == 1:
        one = run[0]
        if opens_foreign(text, one):
            return None
        if one.low in _SURNAMES_TOO and _is_apposed(text, one):
            return name_of(text, one.start, one.end)
        behind = _behind(text, one.end)
        # "Polish the brass", "Dabbing the paint on"
        is_verb = (one.low in _VERBS_TOO or lexicon.is_in_ing(one.low)) and behind in _BEFORE_OBJECTS
        if one.low in _SILENT or _only_begins(text, run) or (is_verb and begins(text, one.start)):
            return name_of(text, one.start, one.end) if _does(text, one) else None
    else:
        is_person = run[0].low in _FIRST_NAMES
        whole = [part for part in run if part.low not in lexicon.CALENDAR or (is_person and part is run[0])]
        run = whole[_num_empty(text, whole) :]
    if len(run) == 1 and (
        run[0].text in _UNIT_SIGNS or (run[0].low in lexicon.UNITS and _is_unit(text, run[0]))
    ):
        return None
    if not run or all(is_common(part.low) for part in run):
        run = _common_name(text, whole)
    if not run or all(part.low in lexicon.TITLES or len(part.low) == 1 for part in run):
        return None
    end = _end_of_given(text, run, is_long=len(whole) > 1)
    if end > run[-1].end and len(whole) > 1:
        run = whole  # "Park Dong-hyuk"
    return name_of(text, run[0].start, end, _said_before(text, whole, run[0].start))


def _end_of_given(text: str, run: list[Part], *, is_long: bool) -> int:
    """The end of a run, with the half of a given name that a hyphen joins to it in small letters."""
    half = _SECOND_HALF.match(text, run[-1].end)
    if half is None or half[1].endswith("ed"):
        return run[-1].end
    is_given = not is_common(half[1]) or (is_long and half[1] in _SYLLABLES)
    return half.end() if is_given else run[-1].end


def _is_begun(text: str, part: Part, is_small: IsSmall) -> bool:
    """Whether a word has its capital from where it is, and is one that the documents write small."""
    return begins(text, part.start) and is_small(part.low) and not _does(text, part)


def _does(text: str, part: Part) -> bool:
    """Whether a word does what only a name does: "Reading won the cup"."""
    return part.low in _DOERS and _behind(text, part.end) in _DEEDS


def _num_empty(text: str, whole: list[Part]) -> int:
    """How many words at the beginning of a run are no part of a name."""
    first = 0
    if (
        whole[0].low in lexicon.PHRASES
        and tokens_of(text, whole[0].start, whole[-1].end)[0].end > whole[0].end
    ):
        return 0  # "Chief Financial Officer Ann Lee" is the CFO
    while first < len(whole) and (whole[first].low in _EMPTY or _only_begins(text, whole[first : first + 2])):
        first += 1
    return first


def _said_before(text: str, whole: list[Part], start: int) -> tuple[str, ...]:
    """What may be a title before a name that has begun a sentence, or is written small: "president Obama"."""
    if whole[0].start < start:
        return tuple(part.low for part in whole if part.start < start)
    if start < 2 or text[start - 1] not in " -" or not text[start - 2].islower():
        return ()
    word = text[max(0, start - LOOK_BACK) : start - 1].rpartition(" ")[2]
    return (word if word.isalpha() else _LAST_WORD.split(word)[-1],)


def _is_unit(text: str, part: Part) -> bool:
    """Whether a word is a scale: "180 degrees Celsius", "the Richter scale"."""
    if text.startswith((" scale", "-scale", " magnitude"), part.end):
        return True
    return bool(_UNIT_BEFORE.search(text[max(0, part.start - 10) : part.start]))


def _only_begins(text: str, run: list[Part]) -> bool:
    """Whether the first word of a run has its capital from where it is, and is no name."""
    first = run[0]
    is_kept = len(run) > 1 and (first.low in _KEPT or _are_initials(first, run[1]))
    if is_kept and run[1].start == first.end + 1:
        return False  # "South Korea", "Mark Smith", "J.R. Smith"
    if not is_common(first.low):
        is_acronym = first.text.isupper() and 2 <= len(first.low) <= 5
        do = is_plural(first.low) and _behind(text, first.end) in lexicon.PLURAL_VERBS  # "Evacuees were"
        if len(run) > 1 or is_acronym or not (do or looks_common(first.low)):
            return False
    return begins(text, first.start)


def _is_apposed(text: str, part: Part) -> bool:
    """Whether what follows a word makes it a surname: "Brown, a student of the academy, painted"."""
    if text[part.end : part.end + 1] != ",":
        return False
    apposed = _APPOSED.match(text, part.end)
    if apposed is None or not begins(text, part.start):
        return False
    return apposed[1] is None or not _PERSONS.isdisjoint(apposed[1].lower().split())


def _behind(text: str, end: int) -> str:
    """The word behind a place, if only a space is between."""
    behind = _NEXT.match(text, end)
    return behind[1] if behind else ""


def _common_name(text: str, whole: list[Part]) -> list[Part]:
    """The name that common words make ("White House"); none in a heading or a citation."""

    def cannot_begin(part: Part) -> bool:
        return part.low in _EMPTY or (not is_content(part.low) and begins(text, part.start))

    run = list(dropwhile(cannot_begin, whole))
    if all(part.text.isupper() and len(part.text) > 1 for part in run):
        return []  # none, or shouted
    if len(run) == 1 and (run[0].low in lexicon.CITED or begins(text, run[0].start)):
        return []
    return run if _in_prose(text, run) else []


def _in_prose(text: str, run: list[Part]) -> bool:
    """Whether a word beside a run is written small, so that its capitals are not those of a heading."""
    line = text.rfind("\n", 0, run[0].start) + 1
    before = text[max(line, run[0].start - 40) : run[0].start].split()[-5 if len(run) > 1 else -3 :]
    behind = _SMALL_BEHIND.match(text, run[-1].end)
    is_aside = len(run) > 1 and _ASIDE.search(text, max(line, run[0].start - _ASIDE_REACH), run[0].start)
    if not behind and not is_aside and begins(text, run[0].start):
        return False  # "Key Point: Be patient."
    return bool(behind) or any(word[:1].islower() and word not in lexicon.LINKS for word in before)
