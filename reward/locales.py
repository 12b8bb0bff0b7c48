"""How numbers and dates are usually written in a language, or in one of its countries."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

AUTO = "auto"  # no locale: the texts show how they write

# Of the Unicode locale data (CLDR): languages with a decimal comma, those with a point, where they differ.
_COMMA_IN = """
af az be bg bs ca cs da de el es et eu fi fr gl hr hu hy id is it ka kk lt lv mk nb nl nn no pl pt ro ru sk sl
sq sr sv tr uk uz vi
"""
_POINT_IN = "am ar bn cy en fa ga gu he hi ja kn ko ml mr ms my ne pa sw ta te th tl ur zh"
_SWAPPED_IN = "de-ch de-li en-za es-cu es-do es-gt es-hn es-mx es-ni es-pa es-pe es-pr es-sv es-us it-ch"
_MONTH_FIRST_IN = "en-ph en-us es-pa es-pr"
# Of them nothing is known about dates: they differ within, or put the year first.
_UNDECIDED_IN = "en en-ca en-za eu fa fr-ca hu ja ko lt zh"
_COMMA, _POINT, _SWAPPED, _MONTH_FIRST, _UNDECIDED = (
    frozenset(names.split()) for names in (_COMMA_IN, _POINT_IN, _SWAPPED_IN, _MONTH_FIRST_IN, _UNDECIDED_IN)
)
_LOCALE = re.compile(r"([a-z]{2})(?:[-_]([a-z]{2}))?", re.IGNORECASE)


class DateOrder(StrEnum):
    """Which part of "5/3/2021" is which."""

    DAY_FIRST = "day_first"
    MONTH_FIRST = "month_first"


@dataclass(frozen=True)
class Usual:
    """What a language or a locale usually writes; None and "" where it does not say."""

    decimal: str | None = None
    date_order: DateOrder | None = None
    language: str = ""


@lru_cache(maxsize=64)
def usual_of(locale: str) -> Usual:
    """What a language or a locale usually writes.

    Raises:
        ValueError: It is unknown.
    """
    match = _LOCALE.fullmatch(locale)
    language = match[1].lower() if match else ""
    if match is None or language not in _COMMA | _POINT:
        raise ValueError(
            f'locale: {locale!r} is unknown; set "auto", or a language and country such as "de-DE"'
        )
    name = f"{language}-{match[2].lower()}" if match[2] else language
    has_comma = (language in _COMMA) is not (name in _SWAPPED)
    order: DateOrder | None = DateOrder.DAY_FIRST
    if name in _MONTH_FIRST:
        order = DateOrder.MONTH_FIRST
    elif name in _UNDECIDED or (language in _UNDECIDED and language != "en"):
        order = None
    return Usual("," if has_comma else ".", order, language)
