"""Digits that count nothing: of names and codes, telephone numbers, and tokens too absurd to be numbers.

An identifier is found whole ("COVID-19", "v1.2.3", "555-123-4567"), so that coverage sees it, and its
unit is its text; two are equal when their texts are. Of a telephone number only the digits and the plus
count.
"""

import re
from decimal import Decimal

from reward.claims.numbers.digits import MAX_DIGITS
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.units import SIGNS
from reward.claims.numbers.vocabulary import BEGIN, END, TABLES

_HEAD = re.compile(r"(?<![^\W])[^\W_][\w-]*$|[^\W\d_][\w-]*$")
_LONGEST_HEAD = 40
UNWRITTEN = Decimal("1E-999")  # the value of what has none: smaller than any that a text can write
_PREFIXES = frozenset(TABLES["names"]["prefixes"].split())
_BODY = re.compile(r"\d\w*+(?>(?:[.:]\d\w*+|-\d\w*+)*)")
_PHONE = re.compile(
    r"""
    \d{3}\)?[ .-]?\d{3}[ .-]\d{4}(?![\d-]|[.,]\d)
  | \d{1,3}(?:[ .-]\(?\d{2,4}\)?){2,5}(?![\d-]|[.,]\d)
    """,
    re.VERBOSE,
)
# With the leading nought of a telephone number, or all digits of an ISBN.
_WITH_NOUGHT = re.compile(r"0\d{1,5}\)?(?:[ .-]\d{2,5}){1,5}(?![\d-]|[.,]\d)|0\d{8,12}(?![\w-]|[.,]\d)")
_BOOK = re.compile(r"\d{9}(?:\d{4}|[\dXx])(?![\w-]|[.,]\d)")
_BOOK_BEFORE = re.compile(r"\bISBN(?:-1[03])?:? $")
_INTERNATIONAL = re.compile(r"\d{1,3}(?:[ .-]\(?\d{1,9}\)?){2,6}(?![\d-]|[.,]\d)")
_CODE = re.compile(
    rf"""
    0[xX][0-9a-fA-F]+(?!\w)
  | 401\(?k\)?(?!\w) | \d{{3}}\([a-z]\)(?:\(\d\))?
  | \d+_[\d_.]*\w*
  | \d[\d.,]{{0,400}}+(?:[eE][-+\u2212]?\d{{4,}}|\^\(?[-+\u2212]?\d{{4,}}|(?<=10)[⁻⁺]?[⁰¹²³⁴-⁹]{{4,}})\w*
  | \d[\d.,]{{0,400}}+[ ]?[\u00d7xX*·][ ]?10(?:\^\(?[-+\u2212]?\d{{4,}}|[⁻⁺]?[⁰¹²³⁴-⁹]{{4,}})\w*
  | \d{{5}}-\d{{4}}(?![\w-])
  | \d+(?:-\d+){{2,}}{END}
  | \d+(?:/\d+){{2,}}
  | \d+(?:\.\d+){{2,}}(?:-?[a-z]+\d*)?
  | \d+(?:[A-Za-z]+\d)\w*+(?:-\w+)?
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(
    r"\d{1,3}(?:\.\d{3})+(?:,\d+)?(?!\d|[.,]\d)|\d+[hH]\d{2}(?!\w)|\d+[xX\u00d7]\d|\d+[eE][-+]?\d{1,3}(?![\w.]\d|\w)"
)
_PARTS = re.compile(r"\d+(?:h|hr|hrs|m|min|ft|st|lb|d|pm|am|e|k|m|x)(?=\d)", re.IGNORECASE)
_VERSION = re.compile(rf"{BEGIN}(?:version|release|firmware) \Z", re.IGNORECASE)
_DOTTED = re.compile(r"\d+(?:\.\d+)+(?![\w.]*\d)")
_OR_OTHERS = re.compile(
    rf" (?:or|and) (?:(?P<later>later|newer|above|higher|up|upwards?)|earlier|older|below|lower){END}"
)
_NAMED = re.compile(r"[a-z,;] (?:[A-Z][a-z]+|[a-z]{1,5}[A-Z]\w*) $|(?:\b[Nn]o\. ?|\b[Nn]umber |#)$")
_LENGTHS_OF_PHONES = range(9, 14)
_MARK = re.compile(rf"[A-Z]{{1,3}}\d*{END}")


def name_at(text: str, at: int, low: int) -> Number | None:
    """The name whose digits begin at `at`: they follow a letter, or letters and a hyphen or an underscore."""
    if not text[at].isascii() or not _follows_a_letter(text, at, low):
        return None
    head = _HEAD.search(text, max(low, at - _LONGEST_HEAD), at)
    word = head[0].rstrip("-_") if head else ""
    is_prefix = word.casefold() in _PREFIXES or word in SIGNS
    if head is None or is_prefix:
        return None
    before, letter = text[head.start() - 1 : head.start()], text[head.start() : at]
    if (letter in ("x", "X") and before.isdigit()) or (letter in ("n", "t", "r") and before == "\\"):
        return None  # the times sign of "9x13", or an escaped line end of JSON
    body = _BODY.match(text, at)
    assert body is not None, f"no digit at {at}"
    return identifier(text, head.start(), body.end())


def code_at(text: str, at: int, low: int) -> Number | None:
    """A code, a telephone number or an absurd token that begins at `at`."""
    before = text[at - 1 : at] if at > low else ""
    if (
        before == "+"
        and (phone := _INTERNATIONAL.match(text, at))
        and 8 <= sum(map(str.isdigit, phone[0])) <= 15
    ):
        return identifier(text, at - 1, phone.end(), unit=re.sub(r"\D", "", phone[0]))
    if before in ("(", "+") or text[at + 3 : at + 4] in (*"-. ",):
        phone = _PHONE.match(text, at)
        if phone and _is_phone(phone[0], before):
            start = at - 1 if before == "+" or (before == "(" and ")" in phone[0]) else at
            return identifier(text, start, phone.end(), unit=re.sub(r"\D", "", phone[0]))
    if text[at] == "0" and (nought := _WITH_NOUGHT.match(text, at)):
        digits = re.sub(r"\D", "", nought[0])
        is_closed = ")" in nought[0]
        if len(digits) in _LENGTHS_OF_PHONES and (before == "(" or not is_closed):
            return identifier(text, at - is_closed, nought.end(), unit=digits)
    if (book := _BOOK.match(text, at)) and _BOOK_BEFORE.search(text, max(low, at - 10), at):
        return identifier(text, at, book.end(), unit=book[0].lower())
    version = _DOTTED.match(text, at)
    others = _OR_OTHERS.match(text, version.end()) if version else None
    if version and (others or _VERSION.search(text, max(low, at - 9), at)):
        form = Form.EXACT if others is None else Form.AT_LEAST if others["later"] else Form.AT_MOST
        return changed(identifier(text, at, version.end()), form=form)  # 3.1 is not version 3.10
    code = _CODE.match(text, at)
    if code is None:
        return None
    is_hexadecimal = code[0].startswith(("0x", "0X"))
    is_number = not is_hexadecimal and (_GROUPED.match(text, at) or _PARTS.match(code[0]))
    return None if is_number else identifier(text, at, code.end())


def mark_at(text: str, at: int) -> int | None:
    """Where capitals end that stand at once behind a number and make a name of it ("3D", "747B")."""
    if not "A" <= text[at : at + 1] <= "Z":
        return None
    match = _MARK.match(text, at)
    return match.end() if match else None


def is_in_name(text: str, number: Number) -> bool:
    """Whether a bare number ends a name ("Windows 10") or is a rank ("No. 4"), so that it is no ten weeks."""
    if number.kind is not Kind.COUNT or text[number.start - 1 : number.start] not in (" ", ".", "#"):
        return False
    return _NAMED.search(text, max(0, number.start - _LONGEST_HEAD), number.start) is not None


def identifier(text: str, start: int, end: int, *, unit: str = "", value: Decimal | None = None) -> Number:
    """A part of a text that is known by its letters and digits; its value is theirs, if not given."""
    digits = re.sub(r"\D", "", text[start : min(end, start + 2 * MAX_DIGITS)])
    if value is None:
        value = Decimal(digits) if 0 < len(digits) <= MAX_DIGITS else UNWRITTEN
    return Number(((value,),), Kind.IDENTIFIER, unit or text[start:end].casefold(), start=start, end=end)


def _follows_a_letter(text: str, at: int, low: int) -> bool:
    """Without a hyphen only in scripts with capitals: Chinese writes digits behind a word without a space."""
    before = text[max(low, at - 2) : at]
    if before[-1:] in ("-", "_"):
        return before[0].isalpha()
    if before[-1:] == "T" and text[max(0, at - 2)].isdigit():
        return False  # "2021-05-03T10:00"
    return before[-1:].isupper() or before[-1:].islower()


def _is_phone(token: str, before: str) -> bool:
    """International ones need their plus, the others the 3-3-4 grouping with at least one separator."""
    digits = re.sub(r"\D", "", token)
    if before == "+":
        return 8 <= len(digits) <= 15
    parts = re.split(r"\D+", token)
    return [len(p) for p in parts] == [3, 3, 4] and (before != "(" or ")" in token) and len(digits) == 10
