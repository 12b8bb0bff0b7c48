"""Dates with the months of German, French, Spanish, Italian, Portuguese and Dutch: "21. Dezember 2019",
"le 1er août 1937", "21 de diciembre de 2019", "3 maart", "décembre 2019".

German months need their capital, and a point behind the day where their name is an English one, too. The
others are written small ("3 mars", not "3 Mars bars"), and Spanish and Portuguese ones need their "de".
"""

from __future__ import annotations

import re

from reward.claims.numbers.digits import SPACE

_GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
_SMALL = (  # without the names that English or another of these languages writes the same
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
)
_WITH_DE = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
_ENGLISH = frozenset(
    ("April", "August", "September", "November", "april", "september", "november", "december")
)


def _numbered(months: str) -> dict[str, int]:
    return {month: place for place, month in enumerate(months.split(), start=1)}


_OF_GERMAN = _numbered(_GERMAN) | {"Jänner": 1}
_OF_SMALL = {name: n for months in _SMALL for name, n in _numbered(months).items()}
_OF_DE = {name: n for months in _WITH_DE for name, n in _numbered(months).items()} | {"setiembre": 9}
_MONTH_OF = _OF_SMALL | _OF_DE | _OF_GERMAN


def _any(names: set[str]) -> str:
    return "(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")(?![^\W_])"


_YEAR = r"(?P<year>[12]\d{3}(?![\d%]|[.,:/]\d|-\d))"
FOREIGN_DAY_MONTH = re.compile(
    rf"""(?P<day>\d{{1,2}})
    (?: \.{SPACE}?(?={_any({*_OF_GERMAN})})
      | (?:er|[\u00ba\u00b0])?{SPACE}(?={_any({*_OF_SMALL, *_OF_GERMAN} - _ENGLISH - {"Mai"})})
      | [\u00ba\u00b0]?{SPACE}de{SPACE}(?={_any({*_OF_DE})}) )
    (?P<month>{_any({*_MONTH_OF})}) (?:{SPACE}(?:del?{SPACE})?{_YEAR})?""",
    re.VERBOSE,
)
FOREIGN_MONTH_BEFORE = re.compile(
    rf"(?<![^\W_])(?P<month>{_any({*_MONTH_OF} - _ENGLISH)})(?:{SPACE}del?)?{SPACE}$"
)


# What can stand right behind the day, and what a month, or "de" before one, can begin and end with.
_MARKS = frozenset(".e\u00ba\u00b0")
_SPACES = "\t\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f "
_INITIALS = frozenset({"d", *(name[0] for name in _MONTH_OF)})
_ENDS = frozenset({"de", "el", *(name[-2:] for name in _MONTH_OF)})


def may_begin_foreign_month(text: str, end: int) -> bool:
    """Whether a month of another language can stand behind digits; a quick look."""
    after = text[end : end + 1]
    return after in _MARKS or (after in _SPACES and text[end + 1 : end + 2] in _INITIALS)


def may_end_foreign_month(text: str, at: int) -> bool:
    """Whether such a month can stand before a year; a quick look."""
    return at > 3 and text[at - 1] in " \u00a0\u202f-" and text[at - 3 : at - 1] in _ENDS


def month_of(name: str) -> int:
    """The number of a month by its name in another language, written as that does; 0 for none."""
    return _MONTH_OF.get(name, 0)
