"""The words around a number that bound it, blur it, or say what it counts.

"Over 270", "5 or more", "5+"; "about 500", "or so"; "$40 per month"; "45 patients", "12 of the 40 samples",
"two nurses". "45 in all" and "rose 12 to 15" do not say what they count. A number of things is never taken
for a percentage, an amount of money or a rank.
"""

import re
from decimal import Decimal

from reward.claims.numbers.clock import MINUTES_A_DAY
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, TABLES, by_word, either

_WORDS = TABLES["bounds"]


def _phrases(pattern: str) -> list[str]:
    """All phrases that a pattern of the vocabulary matches."""
    for name, more in (("more", ""), ("less", ""), ("just", " ")):
        if (mark := f"{{{name}}}") in pattern:
            words = [word + more for word in _WORDS[name].split()] + [""] * bool(more)
            return [phrase for word in words for phrase in _phrases(pattern.replace(mark, word))]
    return [pattern]


_NAMES = {phrase: name for one, name in by_word(_WORDS["before"]).items() for phrase in _phrases(one.strip())}
_SIGNS = by_word(_WORDS["signs"])
_BEFORE = re.compile(
    rf"(?:{BEGIN}(?P<words>{either(_NAMES)})(?:{SPACE}(?:an?{SPACE}(?:further|additional){SPACE})?|(?<=er)-)|(?<![-=<>])(?P<sign>{either(_SIGNS)}){SPACE}?)$",
    re.IGNORECASE,
)
_LAST_WORDS = {"further", "additional", *(phrase.split()[-1].rstrip(".") for phrase in _NAMES)}
_LAST_SIGNS = frozenset(sign[-1] for sign in _SIGNS)
_AFTER = re.compile(
    rf"""
    (?P<plus>\+(?![\d=]|{SPACE}\d)) | -plus\b
  | {SPACE}(?:or|and){SPACE}
      (?: more|above|over|older|higher|greater|longer|up|upwards?|beyond|better|later
        | (?P<most>less|fewer|under|below|lower|younger|shorter|earlier) )
      {END} (?!{SPACE}(?:than|to)\b)
  | {SPACE}or{SPACE}(?P<so>so){END}
  | {SPACE}at{SPACE}(?:the{SPACE})?(?:very{SPACE})?(?:least|(?P<at_most>most)){END}
  | {SPACE}(?:minimum|(?P<maximum>maximum))(?=[.,;:)\n]|$)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEHIND_THINGS = re.compile(
    r" (?:(?:an?|per|each|every) )?[a-z]{3,} (?:or (?:more|(?P<fewer>less|fewer))(?! than)"
    r"|at (?:the )?(?:least|(?P<most>most)))\b"
)  # "three sources at most"
# No more is allowed, or true: "do not take more than 3".
_NOT = re.compile(
    r"(?:\b(?:not|never|cannot)|n['\u2019]t|\bno (?:\w+ ){1,2}(?:may|should|must|can|will|shall))"
    r"(?: \w+){0,2} $",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r" (?:before|prior to|ahead of|in advance)\b", re.IGNORECASE
)  # "no later than 90 days before"
_EXCEED_NOT = re.compile(r"(?:\b(?:not|never|cannot)|n['\u2019]t)(?: [\w-]+){0,8} $", re.IGNORECASE)
_EXTENDS = re.compile(r"\b(?:extend|spread|stretch|sprawl|turn)(?:s|ed|ing)?(?: out)?$", re.IGNORECASE)
_COVERED = re.compile(r" of (?:water|snow|ice|earth|mud|sand|rock|soil|rubble)\b")  # "under 250 mm of water"
_RACES = re.compile(
    r"\b(?:times?|w[oi]n(?:s|ning)?|beat(?:s|en|ing)?|victor\w*|raced?|races|titles?|gold|silver|bronze"
    r"|records?|champion\w*)\b"
    r"[^.;]*$",
    re.IGNORECASE,
)  # before the distance that it was over
# A change in the same clause: "tripled over 5 years", but not "fell for over 5 years".
_CHANGES = re.compile(
    r"\b(?:\w+fold|(?:increas|declin|doubl|tripl|quadrupl|improv|chang|travel|averag)\w*|lost|gained|grow\w*|grew|r[io]s(?:e[ns]?|ing)"
    r"|f[ae]ll\w*|drop\w*|climb\w*|shr[iau]nk\w*|times)\b[^.;:!?]*(?<!\bfor)(?<!\bof)(?<!\btook)(?<!\blasted)$",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"(?:\b(?:for|of|last(?:s|ed|ing)?|t(?:ake[sn]?|ook|aking)|is|was|were|are|be|been|spen[dt]s?|after|in|wait(?:s|ed)?"
    r"|children|kids|adults|persons?|those|anyone|everyone"
    r"|than|just|well|slightly|little|r[au]ns?|served?|work(?:s|ed)?|aged?|by|within|some|now|and|or|needs?|needed"
    r"|still|a|to|barely|only|ha[ds]|have|not|hardly|scarcely)|[-:(,;])$",
    re.IGNORECASE,
)  # before a length of time that is over another one
_CLIMBS = re.compile(
    r"\b(?:g[eo]ts?|climb(?:s|ed)?|r[io]ses?|went|flew|soar(?:s|ed)|pick(?:s|ed)|edged|crept|jumped"
    r"|moved)[ ]$",
    re.IGNORECASE,
)
_WARMER = re.compile(r"(?:warm|hott|cold|cool)er\b", re.IGNORECASE)
_DISPUTES = re.compile(
    r"\b(?:battl|fight|disput|argu|quarrel|feud|clash|lawsuit|row|wrangl|concern|contro|custody|debat|war)\w*$"
    r"|\bfought$|\b(?:battle|dispute|fight|feud|lawsuit|row) (?:with|against) [^.;]{1,60}$",
    re.IGNORECASE,
)  # "a battle over two embryos", "fought over three acres"
_REACH = 80
_SHORT = ("nearly", "almost", "casi", "fast", "knapp", "presque", "quasi", "bijna", "quase")
_JUST = ("just ", "slightly ", "poco ")
_SHORTLY = {"shortly_before": Form.LESS_THAN, "shortly_after": Form.MORE_THAN}  # a time of day
_MIDNIGHT, _END_OF_DAY = ((Decimal(0),),), ((Decimal(MINUTES_A_DAY),),)
_LONGEST_BEFORE = 28
_RATED = (Kind.MONEY, Kind.COUNT, Kind.QUANTITY, Kind.DURATION, Kind.PERCENT)
_RATE = re.compile(
    r"(?: of \w+"
    r"|(?: (?!(?:of|in|for|than|as|to|at|by|with|after|from)\b)[a-z]+){1,2}(?= (?:per|an?|each|every) )"
    r"|(?: (?!and|\d)\w+){3,5}(?= (?:each|every) ))?"
    r"[ \u00a0]?(?:(?:per|(?:an?|each|every|/)(?![ \u00a0]?\w+ of\b))[ \u00a0]?"
    rf"((?:square |cubic )?(?:{either(_WORDS['per'].split())}))s?"
    r"(?! (?:later|ago|before|after|earlier)\b)"
    r"|(?:(?<=%)|(?<=cent))[ -](year|month|quarter|week)[- ](?:on|over)[- ](?:year|month|quarter|week)"
    rf"|(hourly|daily|nightly|weekly|monthly|quarterly|yearly|annually)){END}",
    re.IGNORECASE,
)
_FOREIGN_TIMES = {word.lower(): unit for word, unit in by_word(TABLES["foreign_units"]).items()}
_FOREIGN_TIMES |= {"mes": "month", "an": "year", "ano": "year"}  # words that are no units elsewhere
_FOREIGN_RATES = by_word(TABLES["foreign_rates"])
_FOREIGN_RATE = re.compile(
    rf"(?: (?:HT|TTC|netto|brutto|brut|net|bruts|nets|brutos|netos))?"
    rf" (?:(?:par|pro|por|al|per|am|im|à l['\u2019]|a la) ?({either(_FOREIGN_TIMES)})"
    rf"|({either(_FOREIGN_RATES)})){END}(?! \d)",  # "im Jahr 2020"
    re.IGNORECASE,
)
# Of other words the rate is the word itself, without "ly".
_RATES = {
    "kilo": "kilogram",
    "kg": "kilogram",
    "head": "person",
    "ha": "hectare",
    "capita": "person",
    "daily": "day",
    "annually": "year",
}
_ZONE = re.compile(r" ?\(?(UTC?|GMT|Z|CES?T|BST|E[SD]?T|C[SD]T|M[SD]T|P[SD]?T|JST|IST)\b")
_TIME_OF_ZONE = re.compile(rf"\d(?: ?[ap]\.?m\.?)?{_ZONE.pattern}")
_BESIDE = 32
_LOCAL = re.compile(r" local time\b")
_ZONES = {"UTC": "GMT", "UT": "GMT", "Z": "GMT"}
_COUNTED = (Kind.COUNT, Kind.ORDINAL)
_OF = (
    r"(?!of \w+ing\b)(?:of (?:them |which |whom |the |its |his |her |their |our |all |these |those |\d+ )*)?"
)
_THINGS = re.compile(
    rf"[ \u00a0-]{_OF}(?:(?:are|were) (?=[a-z]+ [a-z]{{3,}}s\b))?([a-z]{{3,}})(?: ([a-z]{{3,}}))?"
)
_NO_THINGS = frozenset(TABLES["things"]["none"].split())
_STEM = 4  # characters that words of one family share


def bounded(text: str, number: Number, low: int) -> Number:
    """The number with its bound or approximator; the words for it begin at `low` or later."""
    if number.kind is Kind.IDENTIFIER:
        return number
    number = _after(text, number)
    for _ in range(2):  # "at least about 50"
        match = _before(text, number.start, low)
        if match is None or _is_no_bound(text, match, number, low):
            break
        name = _SIGNS[match["sign"]] if match["sign"] else _NAMES[" ".join(match["words"].lower().split())]
        if name == "at_least" and number.kind is not Kind.MONEY and match[0].lower().startswith("start"):
            break  # a show "starts at 9"
        if number.kind is Kind.COUNT and match[0].lower().startswith("within"):
            break  # "within 49 words" is the answer's own length, "within 28 days" a bound
        if number.dimension != "temperature" and _WARMER.match(match[0].lstrip()):
            break  # "warmer than 2015"
        if name in _SHORTLY:
            if number.kind is not Kind.TIME:
                break
            name = _SHORTLY[name]
            if number.readings == _MIDNIGHT and name is Form.LESS_THAN:
                number = changed(number, readings=_END_OF_DAY)
        if name == "about":
            is_short = number.is_short or (match["words"] or "").lower() in _SHORT
            number = changed(number, approximate=True, is_short=is_short, start=match.start())
        elif number.form is Form.EXACT:
            denial = _EXCEED_NOT if match[0].lower().startswith("exceed") else _NOT
            near = max(0, match.start() - _REACH)
            is_denied = name == "more_than" and denial.search(text, near, match.start())
            form = Form.AT_MOST if is_denied else Form(name)
            if (
                number.kind is Kind.DURATION
                and "later" in match[0].lower()
                and _AHEAD.match(text, number.end)
            ):
                form = Form.AT_LEAST
            is_just = (match["words"] or "").lower().startswith(_JUST)
            number = changed(number, form=form, is_short=number.is_short or is_just, start=match.start())
    if number.is_bound and number.kind is Kind.QUANTITY:
        return changed(number, readings=number.readings[:1])  # "over 400 m below sea level": not -400 m
    return number


def _before(text: str, start: int, low: int) -> re.Match[str] | None:
    """The bound before a place; the last word is looked at first, for the sake of speed."""
    if start <= low:
        return None
    words = text[max(low, start - 16) : start].rsplit(None, 1)
    is_word = bool(words) and words[-1].casefold().lstrip("(").rstrip(".-") in _LAST_WORDS
    if not is_word and _LAST_SIGNS.isdisjoint(text[max(low, start - 2) : start]):
        return None
    return _BEFORE.search(text, max(low, start - _LONGEST_BEFORE), start)


def _is_no_bound(text: str, match: re.Match[str], number: Number, low: int) -> bool:
    """Whether "over" or "up to" says where or in what time, or is between two numbers.

    As in "extends over 582 km²", "tripled over 5 years", a blood pressure of "120 over 80" and, of "up to",
    "climbed up to 5 km".
    """
    words = match[0].strip().casefold()
    if words == "up to":
        return _CLIMBS.search(text, max(0, match.start() - _REACH), match.start()) is not None
    if words in ("under", "below") and number.dimension == "length" and _COVERED.match(text, number.end):
        return True
    if words != "over":
        return False
    if 0 < low == match.start() - 1 and text[low - 1].isdigit():
        return True
    before = text[max(0, match.start() - _REACH) : match.start()].rstrip()
    if number.kind is Kind.DURATION:  # "tracked them over two years"
        if not before and number.end == len(text):
            return False  # the whole answer is "over two years"
        return _CHANGES.search(before) is not None or _LASTS.search(before) is None
    if number.dimension == "length" and _RACES.search(before):
        return True
    return _EXTENDS.search(before) is not None or _DISPUTES.search(before) is not None


def _after(text: str, number: Number) -> Number:
    if (
        number.form is not Form.EXACT
        or number.kind is Kind.RATIO
        or text[number.end : number.end + 1] not in "+- \u00a0"
    ):
        return number
    match = _AFTER.match(text, number.end) or _BEHIND_THINGS.match(text, number.end)
    if match is None:
        return number
    if match.re is _BEHIND_THINGS:  # they are read behind the number, too
        return changed(number, form=Form.AT_MOST if match["most"] or match["fewer"] else Form.AT_LEAST)
    if match["so"]:
        return changed(number, approximate=True, end=match.end())
    is_most = match["most"] or match["at_most"] or match["maximum"]
    form = Form.AT_MOST if is_most else Form.AT_LEAST
    return changed(number, form=form, end=match.end(), is_plus=match["plus"] is not None)


def rate_behind(text: str, number: Number) -> str:
    """What an amount is for ("month" of "$40 per month"), or the zone of a time; empty without it."""
    if number.kind is Kind.TIME:
        if _LOCAL.match(text, number.end):  # of no zone, where the same time is beside it in one
            beside = text[max(0, number.start - _BESIDE) : number.end + _BESIDE]
            return "local" if _TIME_OF_ZONE.search(beside) else ""
        zone = _ZONE.match(text, number.end)
        return _ZONES.get(zone[1], zone[1]) if zone else ""
    behind = _RATE.match(text, number.end) if number.kind in _RATED else None
    if behind is None and number.kind in _RATED and (foreign := _FOREIGN_RATE.match(text, number.end)):
        return _FOREIGN_TIMES[foreign[1].lower()] if foreign[1] else _FOREIGN_RATES[foreign[2].lower()]
    if behind is None or (behind[3] and number.kind is Kind.COUNT):  # "two weekly papers"
        return ""
    word = (behind[1] or behind[2] or behind[3]).lower()
    return _RATES.get(word, word.removesuffix("ly")).replace("meter", "metre").replace("liter", "litre")


def things_behind(text: str, number: Number) -> frozenset[str]:
    """The first letters of the one or two words that say what a number counts; empty when none do."""
    behind = _THINGS.match(text, number.end) if number.kind in _COUNTED else None
    if behind is None or behind[1] in _NO_THINGS or text[max(0, number.start - 5) : number.start] == "aged ":
        return frozenset()
    return frozenset(word[:_STEM] for word in behind.groups() if word and word not in _NO_THINGS)
