"""A text in the letters that its reader sees, so that no spelling hides a name or a number from the audit.

Folded are letters that Unicode calls another form of plain ones (NFKC: mathematical, full width, in circles),
small capitals, letters that look like Latin ones in a word or a text that is otherwise Latin, characters that
cannot be seen, marks above letters that have no such mark, and emphasis in the middle of a word. So each
spelling of "Boris" is "Boris". Other scripts stay as they are. Behind an elision a name is a word of its own:
"d'Italie" is read as "d' Italie".
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from itertools import chain, pairwise
from typing import NamedTuple

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt).
UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
REVERSING = "\u202d\u202e"  # they show text in another order than it is written in
_FORMS = (  # of letters: raised, letterlike, Roman numerals, in circles and squares, mathematical, full width
    *(range(0x2B0, 0x2B9), range(0x2E0, 0x2E5), range(0x1D2C, 0x1D6B), range(0x1D78, 0x1D79)),
    *(range(0x1D9B, 0x1DC0), range(0x2100, 0x2150), range(0x2160, 0x2180), range(0x249C, 0x24EA)),
    *(range(0xFB00, 0xFB07), range(0xFF21, 0xFF3B), range(0xFF41, 0xFF5B), range(0x1D400, 0x1D800)),
    *(range(0x1F110, 0x1F12A), range(0x1F130, 0x1F14A), (0x1C5, 0x1C8, 0x1CB, 0x1F2)),
)
_SIGNS = "\u2116\u2120\u2121\u2122\u213b"  # of several letters: "No", "TM"
_NAMED = (range(0x250, 0x2B0), range(0x1D00, 0x1D2C), range(0xA730, 0xA732), range(0x1F150, 0x1F18A))
_NAME = re.compile(
    r"(?:LATIN LETTER SMALL CAPITAL|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER) ([A-Z])"
)
_OTHERS = {"\u0131": "i", "\u0251": "a", "\u0261": "g", "\U0001f51f": "10"}
_LIKE_LATIN = (  # in any word: Cyrillic in small and in capital letters, Greek
    (
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u04cf",
        "aeopcyxsijhdqwl",
    ),
    (
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408",
        "ABEKMHOPCTYXSIJ",
    ),
    (
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
        "ABEZHIKMNOPTYXo",
    ),
)
_LIKE_LATIN_BESIDE_IT = (
    ("\u043a\u043f\u0433\u0442\u043c\u043d\u0432", "knrtmhb"),
    ("\u03bd\u03b9\u03c5", "viu"),
)
_LOOKALIKES = {a: b for one in (*_LIKE_LATIN, *_LIKE_LATIN_BESIDE_IT) for a, b in zip(*one, strict=True)}
_ALIKE = str.maketrans(_LOOKALIKES)
_ALIKE_WHOLE = frozenset("".join(letters for letters, _ in _LIKE_LATIN))
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_OTHER_SCRIPT = re.compile("[\u0370-\u03ff\u0400-\u052f]")
_MARKED = re.compile(r"[^\W_][\u0300-\u036f]+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MARK = re.compile(r"[\u0300-\u036f]")
_UNSEEN_RUN = re.compile(rf"[{UNSEEN}\u20d0-\u20ff]+".replace(r"\u202e", r"\u202c"))  # but REVERSING
_SPELLED = re.compile(r"(?<![\w-])(?:[a-z]-){2,}[a-z](?![\w-])")
_MAYBE_SPELLED = re.compile("-[a-z]-")  # which is found sooner
_EMPHASIS = re.compile(  # that begins or ends in the middle of a word
    r"(?:(?<=\w)(?P<b>\*\*|`)(?P<end>\w+)(?P=b))|(?:(?P<a>\*\*|`)(?P<start>\w+)(?P=a)(?=\w))"
    r"|(?:(?<=[^\W\d_])\*(?P<italic_end>[^\W\d_]+)\*)|(?:\*(?P<italic_start>[^\W\d_]+)\*(?=[^\W\d_]))"
)
_ELIDED = re.compile(  # "d'Italie": a name of its own, as its capital says
    "(?<![A-Za-z\u00c0-\u00ff])(?:[a-z\u00e0-\u00ff]{1,6}|(?<![a-z] )[DL])['\u2019](?=[A-Z\u00c0-\u00de])"
)
_EDGES = re.compile(r"_(?:(?<!\w_)_*(?=[^\W_])|(?<=[^\W_]_)_*(?!\w))")
_Become = Callable[[re.Match[str]], str]


class _Piece(NamedTuple):
    """A part of a text, which was copied or became another one."""

    at: int  # in the new text
    start: int
    end: int
    copied: bool


class _Step(NamedTuple):
    """How a text became another one."""

    starts: Sequence[int]  # of the pieces in the new text
    pieces: Sequence[_Piece]

    def start(self, place: int) -> int:
        piece = self.pieces[bisect_right(self.starts, place) - 1]
        start = piece.start + place - piece.at
        return start if piece.copied else min(start, piece.end - 1)

    def end(self, place: int) -> int:
        index = bisect_right(self.starts, place - 1) - 1
        piece = self.pieces[index]
        is_last = index + 1 < len(self.starts) and self.starts[index + 1] == place
        return piece.end if is_last else min(piece.start + place - piece.at, piece.end)


@dataclass(frozen=True)
class Seen:
    """A text as it is seen, and how it became so."""

    text: str
    steps: tuple[_Step, ...] = ()

    def start(self, place: int) -> int:
        """Where the character at a place begins in the written text."""
        return reduce(lambda at, step: step.start(at), reversed(self.steps), place)

    def end(self, place: int) -> int:
        """Where the character before a place ends in the written text; `place` is at least 1."""
        return reduce(lambda at, step: step.end(at), reversed(self.steps), place)


@lru_cache(maxsize=64)  # texts of half a megabyte, at most
def seen(text: str) -> Seen:
    """A text as it is seen; in time linear in its length."""
    found = Seen(text)
    if not text.isascii():
        if not _odd_letters().isdisjoint(_BEYOND_ASCII.findall(text)):
            found = _replaced(found, _pattern(), _plain)
            found = replace(found, text=_alike(found.text))
        found = _replaced(found, _UNSEEN_RUN, lambda _: "")
        if _MARK.search(text):
            found = _replaced(found, _MARKED, _composed)
    if "*" in text or "`" in text:
        found = _replaced(found, _EMPHASIS, _unmarked)
    if _MAYBE_SPELLED.search(text):
        found = _replaced(found, _SPELLED, lambda word: word[0].replace("-", ""))
    if "_" in text:
        found = _replaced(found, _EDGES, lambda _: "")
    if "'" in text or "\u2019" in text:
        found = _replaced(found, _ELIDED, lambda word: f"{word[0]} ")
    return found


def _replaced(before: Seen, pattern: re.Pattern[str], become: _Become) -> Seen:
    """A text with all that a pattern finds replaced."""
    pieces, parts, end, length = list[_Piece](), list[str](), 0, 0
    for found in pattern.finditer(before.text):
        kept, new = before.text[end : found.start()], become(found)
        pieces.append(_Piece(length, end, found.start(), copied=True))
        pieces.append(_Piece(length + len(kept), *found.span(), copied=False))
        parts += [kept, new]
        end, length = found.end(), length + len(kept) + len(new)
    if not pieces:
        return before
    pieces.append(_Piece(length, end, len(before.text), copied=True))
    pieces = [*(one for one, after in pairwise(pieces) if one.at < after.at), pieces[-1]]
    step = _Step([piece.at for piece in pieces], pieces)
    return Seen("".join([*parts, before.text[end:]]), (*before.steps, step))


def _plain(letter: re.Match[str]) -> str:
    """The plain letters of one; a small capital inside of a word is a small letter."""
    plain, before = _letters()[letter[0]], letter.string[letter.start() - 1 : letter.start()]
    return plain.lower() if letter[0] in _small_capitals() and before.isalpha() else plain


def _composed(marked: re.Match[str]) -> str:
    """A letter with its mark as one character, or without a mark that it never has."""
    whole = unicodedata.normalize("NFC", marked[0])
    return whole if len(whole) == 1 else "".join(c for c in whole if not unicodedata.combining(c))


def _unmarked(found: re.Match[str]) -> str:
    return str(found["end"] or found["start"] or found["italic_end"] or found["italic_start"])


def _alike(text: str) -> str:
    """A text with Latin letters for those of other scripts that look like them, in words that mix both.

    Words of such letters alone are folded where the text has no others of those scripts.
    """
    others = frozenset(_OTHER_SCRIPT.findall(text))
    if not others:
        return text
    is_latin = others <= _ALIKE_WHOLE and _LATIN.search(text) is not None

    def folded(word: re.Match[str]) -> str:
        letters = _OTHER_SCRIPT.findall(word[0])
        mixes = len(letters) < len(word[0]) and all(letter in _LOOKALIKES for letter in letters)
        return word[0].translate(_ALIKE) if letters and (mixes or is_latin) else word[0]

    return _WORD.sub(folded, text)


@cache
def _letters() -> dict[str, str]:
    """Plain letters for other forms of them."""
    forms = {chr(c): unicodedata.normalize("NFKC", chr(c)) for c in chain(*_FORMS)}
    found = {char: plain for char, plain in forms.items() if plain != char and plain.strip("()").isalpha()}
    found = {char: plain for char, plain in found.items() if char not in _SIGNS}
    return found | _small_capitals() | _OTHERS


@cache
def _small_capitals() -> dict[str, str]:
    names = {chr(c): _NAME.fullmatch(unicodedata.name(chr(c), "")) for c in chain(*_NAMED)}
    return {char: name[1] for char, name in names.items() if name}


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"[{''.join(_letters())}]")


@cache
def _odd_letters() -> frozenset[str]:
    return frozenset(_letters()) | frozenset(_LOOKALIKES)
