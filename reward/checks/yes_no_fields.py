"""Yes-or-no fields of structured documents: `"OutdoorSeating": false`, `"WiFi": "no"`, `{"garage": true}`.

An answer that names such a field says yes or no of it: "offers outdoor seating", "no WiFi". The field
decides. `null` means that the data do not know, so both are NOT_IN_DOCUMENTS. Where running text of the
documents uses the field's words too, such as a review that praises the patio, nothing is decided.

The words of a field are those of its key: "RestaurantsTakeOut" is found as "take out", "take-out", "takeout".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reward.checks.check import Check, Found, OwnClaim
from reward.claims.text import sentence_span
from reward.types import ClaimState, Document, Span

_VALUES = {"true": True, "yes": True, "free": True, "paid": True, "false": False, "no": False, "none": False}
_STRING = r'"(?>(?:[^"\\]|\\.)*)"'
# A key with a value of its own; else a bracket, or a string, whose own brackets and quotes are passed over.
_TOKEN = re.compile(
    r'"(?P<key>\w{1,64})"\s*:\s*(?:(?P<open>\{)|"?(?P<value>true|false|null|yes|no|none|free|paid)"?'
    r"(?=\s*[,}]))"
    rf"|(?P<bare>\{{)|(?P<close>\}})|(?P<string>{_STRING})",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SUBJECTS = ("restaurants", "business")  # first words of keys, which answers leave out
_PARKING = re.compile(r"\bpark(?:ing|ed)?\b", re.IGNORECASE)
_PARKING_REACH = 60  # characters between "parking" and the kind of it
_REACH = 250  # characters of a sentence on each side of a field's words
_UNSURE = re.compile(
    r"\b(?:unclear|unknown|unspecified|whether|if)\b|(?:\b(?:no|not|without)|n['\u2019]t)\b[\w\s,'-]{0,60}"
    r"\b(?:mention\w*|information|specif\w+|details?|stated?|indicat\w+)\b",
    re.IGNORECASE,
)
# Where what was denied before is denied no more.
_NEW_CLAUSE = re.compile(
    r";|:|\b(?:but|although|though|while|however|whereas|instead(?! of))\b|(?:,|\band) (?:it|its|they"
    r"|their|there|the|a|an|customers|guests|offers?|has|have|accepts?|provides?|features?|does)\b",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:no|not|none|nor|neither|without|lack(?:s|ing)?|never|cannot|rather than|instead of)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_NOT = r"(?:(?: currently)? (?:not|un\w+)\b|n['\u2019]t\b)"
# "WiFi is not available", "WiFi and takeout are not available", "WiFi: no"; not "takeout, and WiFi is not".
_DENIED_AFTER = re.compile(
    rf"(?:(?!\band\b)[\w\s-]){{0,30}}?\b(?:is|was){_NOT}|[\w\s,/-]{{0,60}}?\b(?:are|were){_NOT}"
    r"|: (?:no|false)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Field:
    """One field; `document.text[start:end]` is its value."""

    key: str
    parent: str
    value: bool | None
    document: Document
    start: int
    end: int


class YesNoFieldsCheck(Check):
    """Does the answer say yes of what is yes, and no of what is no?"""

    def claims(self) -> Iterator[OwnClaim]:
        """The first mention of each field that says yes, and the first that says no."""
        found = [fields_of(document) for document in self.query.documents]
        fields = [field for one, _ in found for field in one]
        prose = "\n".join(text for _, text in found)
        for field in _decided(fields):
            if next(_mentions(field, prose), None) is not None:
                continue
            said: set[bool] = set()
            for span in _mentions(field, self.response):
                says = _says(self.response, span)
                if says is not None and says not in said:
                    said.add(says)
                    yield OwnClaim(span, _held_against(field, says))


def fields_of(document: Document) -> tuple[list[Field], str]:
    """The yes-or-no fields of one document, and its other strings; nothing unless it begins as JSON."""
    if document.text[:1] not in ("{", "["):
        return [], document.text
    fields, strings, parents = [], [], []
    for token in _TOKEN.finditer(document.text):
        if token["open"] or token["bare"]:
            parents.append(token["key"] or "")
        elif token["close"] and parents:
            parents.pop()
        elif token["value"]:
            value = _VALUES.get(token["value"].lower())
            parent = parents[-1] if parents else ""
            fields.append(Field(token["key"], parent, value, document, *token.span("value")))
        elif token["string"]:
            strings.append(token["string"])
    return fields, "\n".join(strings)


def _decided(fields: Sequence[Field]) -> list[Field]:
    """One field for each name, where all of that name have one value."""
    by_name: dict[tuple[str, str], list[Field]] = {}
    for field in fields:
        by_name.setdefault((field.parent, field.key), []).append(field)
    return [same[0] for same in by_name.values() if len({field.value for field in same}) == 1]


def _mentions(field: Field, text: str) -> Iterator[Span]:
    """Where a text uses the words of a field; kinds of parking only near "parking"."""
    words = [word.lower() for word in _WORD.findall(field.key)]
    if len(words) > 1 and words[0] in _SUBJECTS:
        del words[0]
    pattern = r"[\s-]?".join(map(re.escape, words)).removesuffix("s")
    is_parking = field.parent.lower().endswith("parking")
    for match in re.finditer(rf"\b{pattern}s?\b", text, re.IGNORECASE):
        low, high = max(0, match.start() - _PARKING_REACH), match.end() + _PARKING_REACH
        if not is_parking or _PARKING.search(text, low, high):
            yield Span(start=match.start(), end=match.end())


def _says(response: str, span: Span) -> bool | None:
    """Whether the sentence says yes or no of what it names; None where it says neither."""
    low, high = sentence_span(response, span.start, span.end, reach=_REACH)
    if _UNSURE.search(response, low, high):
        return None
    before = _NEW_CLAUSE.split(response[low : span.start])[-1]
    is_denied = _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(response, span.end, high)
    return not is_denied


def _held_against(field: Field, says: bool) -> Found:
    place = (field.document, field.start, field.end)
    if field.value is None:
        return Found(ClaimState.NOT_IN_DOCUMENTS, *place)
    if field.value is says:
        return Found(ClaimState.SUPPORTED, *place)
    return Found(ClaimState.CONTRADICTED, *place, instead="yes" if field.value else "no")
