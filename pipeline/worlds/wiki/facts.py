"""Facts that a paragraph says: its triples, where the words around the object say so, and what rules find.

A triple of the data set may say what its paragraph does not, or name a word of the paragraph that says
something else ("Lima" as the place of birth of one who studied there). So a triple counts only where the text
has the relation's own cue beside the object: "born ... in Lima", "directed by Sam Wood". The rules are the
same cues with a pattern in place of the object, on a paragraph's opening, where the subject is not in doubt.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.worlds.wiki.relations import FULL_DATE, MONTH, RELATIONS

_OPENING = 260  # characters
_OPEN_DATE = rf"(?:{FULL_DATE}|{MONTH} \d{{4}}|\d{{4}})"
_NAME = r"(?:[A-Z][\w.'-]+ ){1,3}[A-Z][\w'-]+"
_DASH = r"[\u2013-]"
_FREE = r"[^()\u2013]"  # within one half of a person's bracket
_WORKS = (
    "film|song|album|single|novel|movie|comedy|drama|play|musical|documentary|thriller|western"
    "|serial|book|opera"
)
# What the text must hold, with the object in place of {o}. Nothing here crosses the end of a sentence.
_CUES: dict[str, tuple[str, ...]] = {
    "date of birth": (rf"\({_FREE}{{0,40}}{{o}}", r"\bborn\b[^.;()\u2013]{0,60}{o}"),
    "date of death": (rf"\u2013{_FREE}{{0,40}}{{o}}[^()]{{0,40}}\)", r"\bdied\b[^.;()\u2013]{0,60}{o}"),
    "publication date": (
        r"\breleased\b[^.;]{0,80}{o}",
        r"\bpublished\b[^.;]{0,40}{o}",
        r"\bpremiered\b[^.;]{0,60}{o}",
    ),
    "inception": (r"\b(?:founded|established|formed|launched|opened)\b[^.;]{0,40}{o}",),
    "director": (r"\bdirected(?: and \w+)? by {o}", r"\bdirector {o}"),
    "composer": (r"\bcomposed by {o}", r"\bmusic (?:was |is )?by {o}"),
    "performer": (
        r"\b(?:song|single|album|recorded|performed|sung)[^.;]{0,40} by (?:the )?(?:\w+ ){0,3}{o}",
    ),
    "place of birth": (
        r"\bborn\b[^.;\u2013]{0,60}\b(?:in|at) {o}",
        rf"\({_FREE}{{0,30}}\d{{4}}(?:,| in) {{o}}{_FREE}{{0,30}}\u2013",
    ),
    "place of death": (
        r"\bdied\b[^.;]{0,60}\b(?:in|at) {o}",
        rf"\u2013{_FREE}{{0,30}}\d{{4}}(?:,| in) {{o}}[^()]{{0,30}}\)",
    ),
    "nationality": (r"\b(?:is|was) an? {o} [a-z]",),
    "country": (r"\bin [^.;]{0,120}{o}(?:\.|, which|$)",),
    "father": (
        r"\b(?:son|daughter|child) of (?:the )?(?:[a-z]+ ){0,2}{o}",
        r"\bfather,? {o}",
        r"\bborn[^.;]{0,40} to {o}",
    ),
    "mother": (r"\b(?:son|daughter|child) of (?:the )?(?:[a-z]+ ){0,2}{o}", r"\bmother,? {o}"),
    "spouse": (r"\b(?:married|marrying|marriage to|husband|wife,?) (?:[a-z]+ ){0,2}{o}",),
    "educated at": (r"\b(?:graduated from|graduating from|educated at|studied at|attended) (?:the )?{o}",),
    "founded by": (r"\bfounded by {o}",),
}
_OF_ONE = ("director", "composer", "performer", "founded by", "spouse")  # asked for as one person
_PLACES = ("country", "place of birth", "place of death")
_RENAMED = {"country of citizenship": "nationality", "country of origin": "nationality"}
# What rules read off an opening: one relation for each group of a pattern.
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        rf"^[^()]{{0,90}}\((?:[^()\d]{{0,60}}; ?|born )?({FULL_DATE}){_FREE}{{0,40}}?\s?{_DASH}\s?"
        rf"(?:[^()\d]{{0,40}}, )?({FULL_DATE})",
        ("date of birth", "date of death"),
    ),
    (
        rf"^[^()]{{0,90}}\([^()\d]{{0,60}}\bborn(?: [A-Z][^()\d,]{{0,40}})?(?: on|,| in)? ?({FULL_DATE})",
        ("date of birth",),
    ),
    (rf"^[^.]{{0,90}}\bwas born(?: on|,| in)? ({FULL_DATE})", ("date of birth",)),
    (rf"^\W{{0,3}}[^.]{{0,80}}? (?:is|was) an? (\d{{4}}) [^.]{{0,60}}?(?:{_WORKS})\b", ("year",)),
    (rf"^.{{0,200}}\breleased (?:on|in) ({_OPEN_DATE})", ("publication date",)),
    (rf"^[^.]{{0,120}}\b(?:founded|established|formed) in ({MONTH} \d{{4}}|\d{{4}})", ("inception",)),
    (r"its population was ([\d,]*\d), in ([\d,]*\d) families", ("population", "families")),
    (rf"^[^.]{{0,160}}\bdirected by ({_NAME})(?=[.,]| and [a-z]| starring| with | from )", ("director",)),
    # Of people alone: "is a French film" says where a film comes from; no film's opening says "born".
    (
        rf"^(?=.{{0,160}}\bborn\b)[^.]{{0,160}}? (?:is|was) an? "
        rf"([A-Z][a-z]+(?:ian|an|ese|ish|ch)) (?!{_WORKS})[a-z]",
        ("nationality",),
    ),
)


@dataclass(frozen=True)
class Fact:
    title: str  # of the paragraph
    relation: str
    value: str  # as the paragraph writes it

    @property
    def subject(self) -> str:
        """The title without what Wikipedia adds to it: "Lola (1981 film)" is Lola."""
        return bare(self.title)


def bare(title: str) -> str:
    return re.sub(r"\s*\([^)]*\)$", "", title).strip()


def facts_of(title: str, text: str, triples: Sequence[tuple[str, str]]) -> list[Fact]:
    """What a tidied paragraph says: triples first, then what rules read off; one value a relation.

    `triples` are relation and object of the data set's facts about it.
    """
    known: dict[str, set[str]] = {}
    for relation, value in triples:
        known.setdefault(_RENAMED.get(relation, relation), set()).add(value)
    single = {relation: min(values) for relation, values in known.items() if len(values) == 1}
    found = {relation: said for relation, value in single.items() if (said := _said(relation, value, text))}
    for relation, value in _read_off(text):
        if len(known.get(relation, ())) < 2:  # else the triples contradict each other
            found.setdefault(relation, value)
    return [Fact(title, relation, value) for relation, value in found.items()]


def _said(relation: str, value: str, text: str) -> str | None:
    """The value as the text says it of the subject, and of nobody else as well; None where it does not."""
    whole = rf"(?<![\w-])(?P<value>{re.escape(value)})(?![\w-])"
    for cue in _CUES.get(relation, ()):
        if found := re.search(cue.replace("{o}", whole), text):
            start, end = found.span("value")
            if RELATIONS[relation].kind == "date":
                return _whole_date(text, start, end)
            is_part = re.match(r" [A-Z]|, Jr", text[end:]) is not None  # "The Ray Charles Singers"
            is_part |= relation in _PLACES and re.search(r"[A-Z]\w+ $", text[:start]) is not None
            is_joint = relation in _OF_ONE and _has_company(text[end:])
            return None if is_part or is_joint else value
    return None


def _whole_date(text: str, start: int, end: int) -> str:
    """The date that a year is a part of: "July 11, 1920" for 1920."""
    dates = re.finditer(rf"{FULL_DATE}|{MONTH} \d{{4}}", text)
    return next((one[0] for one in dates if one.start() <= start and end <= one.end()), text[start:end])


def _has_company(rest: str) -> bool:
    """Whether another name is joined to the one before: "by Scott B and Beth B"."""
    joined = r"(?: as \w+)?,? (?:and|&|with) (?:\w+ by )?[A-Z]|, [A-Z][\w-]+(?: [A-Z][\w-]+)?,? (?:and|&)"
    return re.match(joined, rest) is not None


def _read_off(text: str) -> Iterator[tuple[str, str]]:
    for pattern, relations in _RULES:
        limit = None if relations[0] == "population" else _OPENING
        found = re.search(pattern, text[:limit])
        if found and not (relations == ("director",) and _has_company(text[found.end(1) :])):
            yield from zip(relations, found.groups(), strict=True)
