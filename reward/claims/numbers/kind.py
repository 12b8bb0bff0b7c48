"""Numbers as a kind of claim: what the audit asks of every kind, answered by the readers of this package."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from reward.claims.kind import ClaimKind
from reward.claims.numbers import questions
from reward.claims.numbers.bounds import things_behind
from reward.claims.numbers.cardinal import ORDINALS
from reward.claims.numbers.conventions import (
    Conventions,
    conventions_of,
    conventions_of_response,
    needs_conventions,
)
from reward.claims.numbers.dates import as_year, is_bare_year
from reward.claims.numbers.derived import works_out
from reward.claims.numbers.equality import bound_stated, equal, supports, without_unit_of
from reward.claims.numbers.find import find_numbers, parse_number
from reward.claims.numbers.index import index_numbers
from reward.claims.numbers.listed import is_listed, may_be_known
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import Form, Kind, Number, changed, unbound
from reward.claims.numbers.reading import close_like, closed, read_as
from reward.claims.numbers.response import response_numbers
from reward.claims.numbers.shares import as_share
from reward.claims.numbers.things import is_other
from reward.claims.numbers.trends import are_opposed
from reward.claims.numbers.vocabulary import TABLES, either
from reward.claims.numbers.words import RANKED
from reward.claims.numbers.writing import canonical
from reward.config import AuditConfig
from reward.types import Document, RagQuery

_lookup_in = lru_cache(maxsize=64)(NumberLookup)
_SHARES = (Kind.PERCENT, Kind.PERCENTAGE_POINT)
_PARTS = frozenset(TABLES["parts"]["words"].split())
_RANKS = (Kind.COUNT, Kind.ORDINAL)
_OF_RANK = re.compile(r" (?!(?:of|in|to|and|or|on|at|time)\b)([^\W\d_]{3,})|(?=[.;]|$)")
_NUMBER_SIGN = re.compile(r"(?<![^\W_])(?:[Nn]o\. ?|[Nn]umber |#)$")
_RANKED = re.compile(
    r" (?!(?:in|on|of|at|behind|for|with|and|to|among|by|after|this|last|time|place|spot|position|seed)\b)"
    r"([a-z]{2,})\b"
)
_NEAR = 80  # characters
_ROW_OF = re.compile(r"\b(?:run|streak|series|string)(?: \w+)? (?:to|of|at) $")
_POINTS = re.compile(r" points?\b")
_IN_A_ROW = re.compile(
    r"(?: \w+)? (?:in a row|in succession|consecutive|straight|successive|running"
    r"|on the (?:trot|spin))\b"
)
_ANNIVERSARY = re.compile(r"[ -](?:anniversary|Jahrestag|Jubiläum|anniversaire|aniversario|anniversario)\b")
_NEXT_WORD, _WORD_BEFORE = re.compile(r" ([a-z]+)\b"), re.compile(r"([A-Za-z]+) $")
_NAME_BEFORE = re.compile(r"\b([A-Z][^\W\d_]*) $")
_LONGEST_LETTERS = 3  # of a code: "BA 2490"
_SMALL_WORD = 12
_PAIR = 2
_MONTHS_A_YEAR = 12
_SHORT_TIMES = ("second", "minute", "hour")  # nobody works these out from two dates
_THING = re.compile(r"[ -]([a-z]{3,}|[A-Z]\w+(?: [A-Z]\w+)*)")
_ONE = ("one", "1", "single", "sole", "lone", "alone", "only")
_WINNERS, _GROUPS = (
    {int(count): words.split("|") if words else [] for count, words in TABLES["things"][name].items()}
    for name in ("winners", "groups")
)
_OFTEN = {2: ("scored twice", "brace"), 3: ("hat-trick", "hat trick", "thrice")}
_SCORED = re.compile(
    r"\b(?:scored|netted|struck|found the (?:net|target)|on target|on the scoresheet) $", re.IGNORECASE
)
_GOALS = frozenset({"goal", "trie", "bask"})  # stems
_MULTIPLE = re.compile(r"(?:fold|(?:doubl|tripl|trebl|quadrupl|quintupl|halv)(?:e[ds]?|ing))$", re.IGNORECASE)
_OF_SOMETHING = re.compile(
    r"[ \t](?:as|the|its|their|his|her|what|that|more|larger|higher|bigger|greater|faster|longer|older)\b"
)
_PLACE = re.compile(
    r"\b(step|part|tip|method|option|review|reason|example)s?[ \t]#?"
    r"(?:\d+(?:,?[ ](?:and|or|to)[ ]|, |-))*$",
    re.IGNORECASE,
)  # of the response itself
_LONGEST_PLACE = 32  # characters
_AGE = re.compile(r"-olds?\b")  # of a "nine-year-old": who is so old is a fact of the documents
_CONVERTED = re.compile(r"[(/=\u2248]|(?:\bto|-|\u2013)\s?$")
_CONVERSION_REACH = 24  # characters from a number to the same one in another unit
_COUNTED = re.compile(
    r"\s(?:\w+\s)?(?:steps|parts|ways|tips|points|reasons|items|things|methods|options|uses)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Numbers(ClaimKind):
    """The numbers of one audit, without the dates where these are a kind of their own."""

    query: RagQuery
    config: AuditConfig = field(default_factory=AuditConfig)
    response: str = ""
    name: str = "number"

    def find(self, response: str) -> Sequence[Number]:
        found = self.all_of(response)
        return [one for one in found if not one.is_calendar] if "date" in self.config.kinds else found

    def all_of(self, response: str) -> Sequence[Number]:
        """The numbers of a response, and its dates."""
        config = self.config
        return response_numbers(response, self.query, words=config.number_words, locale=config.locale)

    def read(self, answer: str, *, of_documents: bool = False, asked: Number | None = None) -> Number | None:
        conventions = self._in_documents if of_documents else self._in_response
        if of_documents and needs_conventions(answer):  # as the documents do that write the same
            question, locale = self.query.query, self.config.locale
            conventions = conventions_of_response(answer, question, self._texts, locale=locale)
        return parse_number(answer, conventions=conventions)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(document.text for document in self.query.documents)

    @cached_property
    def _in_documents(self) -> Conventions:
        """How the documents write, all of them together."""
        return conventions_of("\n".join(self._texts), self.response, locale=self.config.locale)

    @cached_property
    def _in_response(self) -> Conventions:
        return conventions_of_response(
            self.response, self.query.query, self._texts, locale=self.config.locale
        )

    def taken_as(self, answer: Number, asked: Number, *, stated: Number | None = None) -> Number:
        """A vote in the terms of the claim that it is held against, with one reading.

        Brackets hold bare numbers, because the question says what is asked for: "By what percentage ...?" is
        answered 12, and "More than how many ...?" 270. So a bare number takes the kind and the unit of the
        claim, and one that states no bound its bound, if the document states that at the place of the
        evidence. An exact number is never taken to lie inside a bound ("over 270" is not supported by 300):
        else "more than 0" would be supported by everything, and a policy that is paid for being supported
        would write just that.

        A vote that is open ("9:30", "5/6/2021") means what the claim means, if that is one of its readings,
        and its likeliest otherwise. `equal` is an equivalence, so the order of votes does not change their
        groups.
        """
        with_bound = stated is not None and bound_stated(stated, asked)
        return closed(_taken_as(answer, asked, with_bound=with_bound), asked)

    def equal(self, a: Number, b: Number) -> bool:
        return equal(a, b)

    def bears_out(self, consensus: Number, claimed: Number, *, relative_tolerance: float = 0.0) -> bool:
        """Whether the consensus is the claimed number, or rounds to it as written.

        As `reward.claims.numbers.supports`, but strict where a policy could write itself claims that always
        hold: a bound needs the same bound, and a bare claim a bare consensus (10 is not 10%).
        """
        is_one_bare = (claimed.kind is Kind.COUNT) != (consensus.kind is Kind.COUNT)
        if claimed.is_bound or consensus.is_bound or is_one_bare:
            return equal(close_like(claimed, consensus), consensus)
        return supports(claimed, consensus, relative_tolerance=relative_tolerance)

    def written(self, answer: Number, asked: Number) -> str:
        """Its canonical text, without the unit and the bound that were asked for."""
        if answer.form is asked.form:
            answer, asked = unbound(answer), unbound(asked)
        return canonical(without_unit_of(answer, asked))

    def is_about(self, claimed: Number, mention: Number) -> bool:
        return _says(claimed, mention)

    def asks_for(self, question: str, mention: Number, response: str) -> bool:
        """Whether a question asks for no other kind, no other unit, and nothing else than is stated."""
        if not questions.asks_for(question, mention):
            return False
        return not is_other(question, mention, response, self.query.query)

    def gives_away(self, text: str, mention: Number) -> bool:
        """Whether a text holds the value, or that of a part, in any writing or unit."""
        return questions.gives_away(text, mention)

    def stated(self, text: str, start: int, end: int, answer: Number) -> Number | None:
        """The document's number in `text[start:end]`, whole or a part of one, that says the same."""
        conventions = conventions_of(text, *self._texts, locale=self.config.locale)
        for number in index_numbers(text, conventions).between(start, end):
            is_share = number.kind in _SHARES and answer.kind is Kind.COUNT  # 466 is not stated by "466%"
            if answer.kind is Kind.YEAR and is_bare_year(text, number):
                number = as_year(number)
            if not is_share and any(_says(answer, one) for one in (number, unbound(number))):
                return number
        return None

    def lookup(self, documents: Sequence[Document]) -> NumberLookup:
        config = self.config
        tolerance = config.relative_tolerance
        return _lookup_in(tuple(documents), relative_tolerance=tolerance, locale=config.locale)

    def is_looked_up(self, response: str, mention: Number) -> bool:
        """Not where it numbers a part of the response ("Step 3"), unless the documents number such parts."""
        place = _PLACE.search(response, max(0, mention.start - _LONGEST_PLACE), mention.start)
        return place is None or _number_parts(place[1].lower(), self._texts)

    def must_stand(self, response: str, mention: Number) -> bool:
        """Not small numbers in words, which often count what the response itself lists ("three layers").

        Such a one must stand in the documents where they count the same things, or if it is a share or a
        multiple of something ("two-thirds", "twice as many"), or how often a day something happens. How often
        it happened must where the documents say so of anything, and a length of time where they give one. One
        of what a document has one of says nothing.
        """
        if not _is_small_word(response, mention):
            return not self._is_one(response, mention)
        if (goals := _goals(response, mention)) and self.lookup(self.query.documents).counts_otherwise(
            goals, _GOALS
        ):
            return True
        if mention.unit == "times":
            is_row = mention.rate or _IN_A_ROW.match(response, mention.end)
            has_ranks = mention.value > _PAIR and self.lookup(self.query.documents).has_wins
            return bool(is_row) or has_ranks or self.lookup(self.query.documents).has_multiples
        is_during = mention.form in (Form.MORE_THAN, Form.LESS_THAN)  # "over two years", "in under a year"
        if is_during and self.lookup(self.query.documents).bounds_otherwise(mention):
            return True  # by the other bound, or "under nine months" for "under nine years"
        if mention.unit == "month" and mention.value == _MONTHS_A_YEAR and self._say(("year",)):
            return False  # "the twelve months to March"
        if mention.kind is Kind.DURATION and (not is_during or mention.unit in _SHORT_TIMES):
            return self.lookup(self.query.documents).has_durations
        things = things_behind(response, mention)
        if mention.kind is Kind.COUNT and self._say(_OFTEN.get(int(mention.value), ())):
            return False  # "two goals" of who "scored twice"
        counts_otherwise = things and self.lookup(self.query.documents).counts_otherwise(mention, things)
        if mention.kind is Kind.COUNT and mention.form is Form.EXACT and mention.value == 1:
            thing = _THING.match(response, mention.end)  # "only one ship"
            is_told = self._say(_ONE) or thing is None or self._has_one(thing[1])
            return bool(counts_otherwise) and not is_told
        if counts_otherwise or self._ranks_otherwise(response, mention):
            return True
        if mention.kind in _RANKS and mention.form is Form.EXACT:
            if is_listed(mention, response, self._texts, things):
                return False
            if not may_be_known(mention, response) and not self._names_group(mention):
                return True
        elif mention.kind is not Kind.DURATION:
            return True  # "two to six people", "seven per cent", "six euros"
        return self._tells_of(response, mention)

    def _ranks_otherwise(self, response: str, mention: Number) -> bool:
        """Whether documents rank the same thing, and not so: a "first woman" for "the second woman"."""
        thing = _OF_RANK.match(response, mention.end) if mention.kind is Kind.ORDINAL else None
        if thing is None:
            return False
        behind = rf" {re.escape(thing[1])}\b" if thing[1] else r"(?=[.;]|$)"
        ranks = re.compile(rf"\b({either(ORDINALS)}){behind}")
        said = {ORDINALS[rank] for text in self._texts for rank in ranks.findall(text)}
        return bool(said) and mention.value not in said

    def _names_group(self, mention: Number) -> bool:
        """Whether documents speak of a pair, a quartet or the like, where an answer says how many."""
        is_first = mention.kind is Kind.ORDINAL and mention.value == 1  # "the first goal" is the opener
        is_count = mention.kind is Kind.COUNT and mention.value > 1
        return (is_count or is_first) and self._say(_GROUPS.get(int(mention.value), ()))

    def _tells_of(self, response: str, mention: Number) -> bool:
        """Whether documents tell of the things that a response counts, and not of so many of them.

        Whoever came second must be second in the documents, or a runner-up.
        """
        ranked = RANKED.search(response, max(0, mention.start - 12), mention.start)
        if ranked and mention.kind is Kind.ORDINAL:
            return not self._say(_WINNERS.get(int(mention.value), ()))
        thing = _THING.match(response, mention.end)
        groups = _GROUPS.get(int(mention.value))
        if thing is None or groups is None or mention.kind is not Kind.COUNT or mention.value <= _PAIR:
            return False
        return self._say((thing[1].lower(),)) and not self._say(groups)

    def _is_one(self, response: str, mention: Number) -> bool:
        """Whether "1 abstention" is the "one abstention", or "an abstention", of a document."""
        is_exact = mention.kind is Kind.COUNT and mention.form is Form.EXACT and not mention.approximate
        thing = _THING.match(response, mention.end) if is_exact and mention.value == 1 else None
        if thing is None:
            return False
        things = things_behind(response, mention)
        if things and self.lookup(self.query.documents).counts_otherwise(mention, things):
            return False  # "A survivor said so; 14 survivors were found."
        return self._has_one(thing[1])

    def _has_one(self, thing: str) -> bool:
        """Whether a document speaks of "one ship" or "a ship"."""
        one = re.compile(rf"\b(?:one|an?|a single) {re.escape(thing.lower())}\b")
        return any(one.search(document.text.lower()) for document in self.query.documents)

    def _is_ranked(self, response: str, mention: Number) -> bool:
        """Whether "Phase 3" or "No. 3" is the third of a document, and "2 points" 2 percentage points."""
        if mention.form is not Form.EXACT:
            return False
        return any(
            _is_same_point(mention, response, document.text, number)
            or _is_same_rank((response, mention), (document.text, number))
            or _is_anniversary((response, mention), (document.text, number))
            or _is_named_so(response, mention, number)
            for document, index in self.lookup(self.query.documents).texts
            for entry in index.by_value.get(mention.value, ())
            for _, number in entry.places
        )

    def _say(self, words: Sequence[str]) -> bool:
        """Whether some document holds one of some words, given in small letters, or its plural."""
        if not words:
            return False
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b")
        return any(pattern.search(document.text.lower()) for document in self.query.documents)

    def follows(self, mention: Number, response: str, before: Sequence[Number]) -> str:
        """Whether it repeats a number before it in another unit, or counts the response's own list."""
        if _is_conversion(mention, response, before):
            return "a number before it, in another unit"
        if (goals := _goals(response, mention)) and self.lookup(self.query.documents).counts(goals):
            return "so many goals"
        if self._is_ranked(response, mention):
            return "a rank in the documents, or a number of the part that it ranks"
        if note := works_out(mention, response, self.all_of(response), self.lookup(self.query.documents)):
            return note
        is_length = _COUNTED.match(response, mention.end) and mention.value == _length_of_list(response)
        return "counts the response's own list" if is_length else ""


def _goals(response: str, mention: Number) -> Number | None:
    """ "Found the net eleven times" as a count of goals."""
    is_scored = mention.unit == "times" and _SCORED.search(
        response, max(0, mention.start - 24), mention.start
    )
    return changed(mention, kind=Kind.COUNT, unit="", dimension="") if is_scored else None


def _is_same_point(mention: Number, response: str, document: str, number: Number) -> bool:
    """Whether a number of percentage points is so many "points" elsewhere, and moves the same way."""
    points = {mention.kind: (response, mention), number.kind: (document, number)}
    if points.keys() != {Kind.COUNT, Kind.PERCENTAGE_POINT} or are_opposed(mention, number):
        return False
    text, count = points[Kind.COUNT]
    return _POINTS.match(text, count.end) is not None


def _is_same_rank(one: tuple[str, Number], other: tuple[str, Number]) -> bool:
    """Whether two numbers of one value, each in its text, rank the same, or count a row that the other ranks.

    "Phase 3" and "the third phase", "No. 2" and "second place", "14 wins in a row" and "the 14th in a row".
    """
    kinds = {number.kind: (text, number) for text, number in (one, other)}
    if kinds.keys() != {*_RANKS} or other[1].form is not Form.EXACT:
        return False
    (count_text, count), (rank_text, rank) = kinds[Kind.COUNT], kinds[Kind.ORDINAL]
    if _NUMBER_SIGN.search(count_text, max(0, count.start - 8), count.start):
        thing = _RANKED.match(rank_text, rank.end)  # no "third edition" of "no. 3 in the series"
        around = count_text[max(0, count.start - _NEAR) : count.end + _NEAR].lower()
        return thing is None or thing[1] in around
    if _is_in_a_row(count_text, count) and _IN_A_ROW.match(rank_text, rank.end):
        return True
    part = _part_of(count_text, count)
    return bool(part) and _part_of(rank_text, rank) == part


def _is_anniversary(one: tuple[str, Number], other: tuple[str, Number]) -> bool:
    """Whether one of two numbers of one value is years and the other their anniversary."""
    kinds = {number.kind: (text, number) for text, number in (one, other)}
    if kinds.keys() != {Kind.ORDINAL, Kind.DURATION} or kinds[Kind.DURATION][1].unit != "year":
        return False
    text, rank = kinds[Kind.ORDINAL]
    return _ANNIVERSARY.match(text, rank.end) is not None


def _is_named_so(response: str, mention: Number, number: Number) -> bool:
    """Whether "Apollo 11" is the Apollo XI of a document."""
    if number.kind is not Kind.IDENTIFIER or mention.kind is not Kind.COUNT:
        return False
    name = _NAME_BEFORE.search(response, max(0, mention.start - _LONGEST_PLACE), mention.start)
    if name is None:
        return False
    letters = name[1].casefold() if name[1].isupper() and len(name[1]) <= _LONGEST_LETTERS else ""
    same = {f"{name[1].casefold()} {mention.value}", f"{letters}{mention.value}"}  # "BA 2490" of BA2490
    return number.unit.replace("-", "") in same


def _is_in_a_row(text: str, count: Number) -> bool:
    row_before = _ROW_OF.search(text, max(0, count.start - 24), count.start)
    return (row_before or _IN_A_ROW.match(text, count.end)) is not None


def _part_of(text: str, number: Number) -> str:
    """ "phase" of "Phase 3" and of "the third phase"; empty where a number counts or ranks no such part."""
    if number.kind is Kind.ORDINAL:
        word = _NEXT_WORD.match(text, number.end)
    else:
        word = _WORD_BEFORE.search(text, max(0, number.start - 20), number.start)
    return word[1].lower() if word and word[1].lower() in _PARTS else ""


def _taken_as(number: Number, like: Number, *, with_bound: bool = True) -> Number:
    """The number with the kind, the unit and perhaps the bound of `like`, where it says nothing of its own.

    The bare digits of a name stand for the name: 19 for "COVID-19".
    """
    if with_bound and number.form is Form.EXACT and like.is_bound:
        number = changed(number, form=like.form)
    if number.kind is Kind.COUNT and like.kind is Kind.IDENTIFIER and {*number.readings} & {*like.readings}:
        return changed(like, start=number.start, end=number.end)
    return read_as(as_share(number, like), like)


def _says(answer: Number, other: Number) -> bool:
    """Whether an answer, as far as it says nothing of its own, is a number of a text in some reading."""
    return equal(_taken_as(answer, other), close_like(other, answer))


def _is_small_word(response: str, number: Number) -> bool:
    written = response[number.start : number.end]
    if abs(number.value) > _SMALL_WORD or any(character.isdigit() for character in written):
        return False
    if _AGE.match(response, number.end):
        return False
    is_bound_count = number.is_bound and number.kind is Kind.COUNT
    if is_bound_count or number.dimension not in ("", "time", "multiple"):
        return False  # "at least two", "two cups"
    if number.unit == "times":
        return not (_MULTIPLE.search(written) or _OF_SOMETHING.match(response, number.end))
    if number.kind is Kind.RATIO or (number.kind is Kind.IDENTIFIER and written[0].isupper()):
        return False  # "one in five", "Charles II"
    return number.value == number.value.to_integral_value()  # "two-thirds" must be checked


def _is_conversion(number: Number, response: str, before: Sequence[Number]) -> bool:
    """Whether a number repeats one before it in another unit: "55°F to 52°F (13°C to 11°C)"."""
    if not number.dimension or not before or not _CONVERTED.search(response, before[-1].end, number.start):
        return False
    near = [one for one in before[-2:] if number.start - one.end <= _CONVERSION_REACH]
    originals = [atom for one in near for atom in one.atoms]
    return all(any(supports(atom, original) for original in originals) for atom in number.atoms)


@lru_cache(maxsize=64)  # a response can name a thousand steps
def _number_parts(part: str, texts: tuple[str, ...]) -> bool:
    """Whether a document numbers such parts: "Part 3"."""
    numbered = re.compile(rf"\b{part}s? #?\d", re.IGNORECASE)
    return any(numbered.search(text) for text in texts)


@lru_cache(maxsize=16)
def _length_of_list(response: str) -> int:
    with_places = find_numbers(response, enumerators=True, words=False)
    return len(with_places) - len(find_numbers(response, words=False))
