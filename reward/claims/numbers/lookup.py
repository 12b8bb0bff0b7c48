"""Where the documents hold a number that supports one of the response.

Values are indexed for each text once and kept for the next response to the same documents (`index`). A number
that is not found by its value is held against those near it, for rounding and units.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter, itemgetter

from reward.claims.kind import Context, Place, nearest
from reward.claims.numbers.bounds import things_behind
from reward.claims.numbers.cardinal import ORDINALS
from reward.claims.numbers.conventions import conventions_of
from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.equality import LOWER_BOUNDS, bound_stated, conversion, equal, supports
from reward.claims.numbers.eras import LAST_HALF, has_month_of
from reward.claims.numbers.find import find_numbers
from reward.claims.numbers.index import Entry, NumberIndex, identity, index_numbers
from reward.claims.numbers.model import Form, Kind, Number, changed, unbound
from reward.claims.numbers.other_writings import lengths, other_readings, other_writings
from reward.claims.numbers.reading import OPEN_DEGREE, close_like
from reward.claims.numbers.scaled import ANY_CURRENCY, scaled_amounts, united_numbers
from reward.claims.numbers.sentences import is_meant
from reward.claims.numbers.shares import as_share
from reward.claims.numbers.trends import MOVES, PARTS_OF_TIME, Trend, are_opposed, in_other_sign
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.text import content_words, sentence_span
from reward.locales import AUTO
from reward.types import Document

_ROMAN = re.compile("[mdclxvi]+")  # a year as a film shows it: "MCMLXXXIV"
_CODE = re.compile(r"([a-z]{2,5})-?(\d+)")
_FIRST_YEAR = 1000
_LEFT_OUT = re.compile(r"^v(?=\d)|(?<=\d\d)s$")  # "v2.4.1" is 2.4.1
_IN_ORDER = re.compile(r":|/|\b(?:in|of)\b")  # "1:3" is no "3:1", while who "won 2-1" "lost 1-2"
_REACH = 120  # characters around a place that are held against the context
_MOST_KEPT = 512  # claims whose places are kept, those of many places never
_MOST_PLACES_KEPT = 16
_FOREIGN_RATES = TABLES["foreign_rates"]
_TIMES = {
    time: re.compile(
        rf"\b(?:{words}|(?:{TABLES['foreign_units'].get(time, words)}|{_FOREIGN_RATES.get(time, words)})\b)",
        re.IGNORECASE,
    )
    for time, words in (
        *(("hour", "hour"), ("day", "day|dai|night"), ("week", "week"), ("month", "month|mes\\b")),
        *(("quarter", "quarter"), ("year", "year|annu|per annum|p\\.a|par an\\b")),
    )
}
_EVERY = re.compile(
    rf"\b(?:hour|dai|week|month|quarter|year)ly\b|\bannual\b|\b(?:{'|'.join(_FOREIGN_RATES.values())})\b",
    re.IGNORECASE,
)
_WIN = re.compile(
    r"\b(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+th) (?:win|victory|title|goal)\b"
)
_MOST_DAYS = 31
_THE_NTH = re.compile(r"\bthe (\d{1,2})(?:st|nd|rd|th)(?=[.,;:)]|$| (?:and|but|to|at|in)\b)")
_WHOLE_DATE = 3  # year, month and day
_OF_PERCENT = re.compile(r"[^.;!?]{0,24}?\d ?(?:%|per ?cent|points?\b)")  # "by 25 and 30 percent"
_SIDES = 2  # of a ratio
_THE_DAY = re.compile(r"\bthe $", re.IGNORECASE)
_OTHER_BOUNDS = {Form.LESS_THAN: Form.AT_LEAST, Form.MORE_THAN: Form.AT_MOST}
_REQUIRES = re.compile(
    r"\b(?:must|may|can|cannot|should|shall|ha(?:s|ve) to|allow|requir|need|only|eligib|permit|limit"
    r"|minimum|maximum)",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:no(?! doubt)|not(?! only)|none|nobody|no-one|never"
    r"|cannot|barred|banned|excluded|ineligible|refused|forbidden"
    r"|prohibited|too (?:young|old|small|short|low|high))\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_BEYOND = re.compile(
    r"\b(?:above|beyond|over|below|under|more than|less than) (?:that|this)\b(?! \w+ly\b)", re.IGNORECASE
)
_PARTS = {place: word for word, place in ORDINALS.items() if 2 < place <= 10}  # "third" to "tenth"
_OF_A_CLOCK = re.compile(
    r"\b(?:at|by|from|until|till|before|since|left|um|à|vers|om|las)\b|\d ?[ap]\.?m\b"
    r"|\b(?:open|close|start|begin|began|end(?:s|ed)?\b|depart|leave|arriv)",
    re.IGNORECASE,
)  # words of a time of day
_PROFIT = re.compile(rf"\b(?:{TABLES['trends']['balances']['profit']}|income|earn|gain)", re.IGNORECASE)
_LOSS = re.compile(
    rf"\b(?:{TABLES['trends']['balances']['loss']})\b|\blost (?:about |some |nearly |almost )?(?=[$€£\d])",
    re.IGNORECASE,
)
_SCALES = {"degree_Celsius": "degree_Fahrenheit", "degree_Fahrenheit": "degree_Celsius"}
_CHANGES = (Trend.RISE_BY, Trend.FALL_BY)
_WITH_UNITS = (Kind.DURATION, Kind.QUANTITY, Kind.MONEY, Kind.PERCENT)
_DAY_BEFORE = re.compile(
    r"\b(\d{1,2}) ?(?:to|until|through|and|or|[-\u2013\u2014]) ?"
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day )?$"
)  # "Thursday 11 to Sunday 14 July"
_LONGEST_DAY = 28
_END_OF = re.compile(r"\b(?:end|last day) of $", re.IGNORECASE)
_LAST_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MOST_BETWEEN = 32  # numbers from a day to the month that is named before it
_FAR = 60  # characters between two numbers on two lines: "Home 3\nAway 1"
_SENTENCE_END = re.compile(r"[.!?]\s")
_Side = tuple[Place[Number], Number | None]  # one of them, and the ratio or range of a document that it is in


class NumberLookup:
    """The numbers of all documents of a query, each read by what it shows itself, and then by the others."""

    def __init__(
        self, documents: Sequence[Document], *, relative_tolerance: float = 0.0, locale: str = AUTO
    ) -> None:
        self._tolerance = relative_tolerance
        self._kept: dict[object, Sequence[Place[Number]]] = {}
        self._other_rates: dict[str, bool] = {}
        texts = [document.text for document in documents]
        self.texts = []
        for document in documents:
            conventions = conventions_of(document.text, *texts, locale=locale)
            self.texts.append((document, index_numbers(document.text, conventions)))

    def find(self, claimed: Number, *, context: Context | None = None) -> Place[Number] | None:
        """The place that supports a number: an equal one before one that supports it otherwise.

        Args:
            claimed: The number of a response.
            context: Text around it; of several equal places the one with most of its words is taken.
        """
        writings = chain((claimed,), other_writings(claimed))
        places = ((writing, self._find(writing, context)) for writing in writings)
        found = next(
            (place for one, place in places if place and is_meant(claimed, one, place, context)), None
        )
        found = found or self._find_denied(claimed, context) or self._find_with_unit(claimed, context)
        found = found or self._find_open_degrees(claimed) or self._find_otherwise(claimed)
        found = found or next(iter(self.scaled_places(claimed)), None) or self._find_loss(claimed, context)
        found = found or self._find_length(claimed, context) or self._find_part(claimed, context)
        return found or self._find_nth(claimed, context) or self._find_code(claimed)

    def _find_code(self, claimed: Number) -> Place[Number] | None:
        """A code that the documents write with a space or a hyphen: "RTX 4090" for RTX4090."""
        code = _CODE.fullmatch(claimed.unit) if claimed.kind is Kind.IDENTIFIER else None
        for document, index in self.texts if code else ():
            for entry in index.by_value.get(claimed.value, ()):
                for _, number in entry.places:
                    start = number.start - len(code[1]) - 1 if code else 0
                    before = document.text[max(0, start) : number.start].lower()
                    if code and before in (f"{code[1]} ", f"{code[1]}-"):
                        return Place(changed(claimed, start=start, end=number.end), document)
        return None

    def _find_denied(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """The bound whose opposite a sentence denies: "nobody below 40 may" of who must be "at least 40".

        Or beyond which a document goes on: "29% up to 95,000 and 41% above that".
        """
        other = _OTHER_BOUNDS.get(claimed.form)
        if other is None or context is None:
            return None
        is_denied = _DENIES.search(context()) is not None
        places = self._of_value(changed(claimed, form=other))
        stated = (place for place in places if place.mention.is_bound)
        return next((one for one in stated if (is_denied and _is_required(one)) or _goes_on(one)), None)

    def _find_with_unit(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """A bare number with a unit of its sentence: "nearly 20 hours, and the other just over 17"."""
        is_bare = claimed.kind is Kind.COUNT and claimed.step == 1 and not claimed.counts
        if not is_bare or context is None:
            return None
        units = {one.unit: one for one in find_numbers(context()) if one.kind in _WITH_UNITS and one.unit}
        for one in units.values():
            whole = changed(claimed, kind=one.kind, unit=one.unit, dimension=one.dimension)
            if place := self._first((whole,)) or self._find_otherwise(whole):
                return place
        return None

    def _find_open_degrees(self, claimed: Number) -> Place[Number] | None:
        """A temperature of one scale as "46.1 degrees" of a document that speaks of the other one."""
        other = _SCALES.get(claimed.unit)
        if other is None or len(claimed.readings) > 1 or len(claimed.values) > 1:
            return None
        factor, offset = conversion(claimed.unit, other)
        degrees = Fraction(claimed.value) * factor + offset
        value = fraction(degrees.numerator, degrees.denominator)
        step = EXACT.multiply(claimed.step, fraction(factor.numerator, factor.denominator))
        bare = changed(claimed, readings=((value,),), unit=OPEN_DEGREE, step=step)
        for document, index in self.texts:
            if any(one.unit == other for one in index.numbers):
                places = (one for one in index.numbers if one.unit == OPEN_DEGREE and supports(bare, one))
                if (place := next(places, None)) is not None:
                    return Place(place, document)
        return None

    def places(self, claimed: Number) -> Sequence[Place[Number]]:
        """All places of the numbers that equal a claim, or else some that support it."""
        return self._places(claimed)

    @cached_property
    def has_durations(self) -> bool:
        """Whether a document says how long something takes."""
        return any(one.kind is Kind.DURATION for _, index in self.texts for one in index.numbers)

    @cached_property
    def has_multiples(self) -> bool:
        """Whether a document says how many times something happened, or how many times as much it is."""
        return any(one.unit == "times" for _, index in self.texts for one in index.numbers)

    @cached_property
    def has_wins(self) -> bool:
        """Whether a document says how many wins somebody has by now: "the eighth win"."""
        return any(_WIN.search(document.text) for document, _ in self.texts)

    @cached_property
    def _others(self) -> list[Place[Number]]:
        """What the documents say in other words than those that are read as numbers."""
        return [
            Place(number, document)
            for document, index in self.texts
            for number in other_readings(index.text, index.numbers)
        ]

    def _find_otherwise(self, claimed: Number) -> Place[Number] | None:
        """A number that the documents say otherwise; a length of time may be bounded or blurred."""
        is_lasting = claimed.kind is Kind.DURATION and (claimed.is_bound or claimed.approximate)
        writings = (claimed, *other_writings(claimed)) if self._others else ()
        for place in self._others:
            found = place.mention
            if any(equal(one, found) for one in writings) or (is_lasting and self._says(claimed, found)):
                return place
        return None

    def _first(self, numbers: Iterable[Number]) -> Place[Number] | None:
        """The first place of the first of some numbers that the documents hold."""
        return next((place for one in numbers for place in self._places(one)), None)

    def _find_length(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """How long something takes, as a clock shows it: "heats it in 4:15", "won in 2h48"."""
        is_time = claimed.kind is Kind.TIME and claimed.form is Form.EXACT and not claimed.rate
        if not is_time or context is None or _OF_A_CLOCK.search(context()):
            return None
        return self._first(lengths(claimed))

    def _find_part(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """A part that reads like a rank because a name is behind it: "a tenth Mourvèdre", which is 10%."""
        word = _PARTS.get(int(claimed.value)) if claimed.kind is Kind.ORDINAL else None
        if word is None or context is None or not re.search(rf"\b[Aa]n? {word} [A-Z]", context()):
            return None
        value = ((fraction(1, int(claimed.value)),),)
        part = changed(claimed, readings=value, kind=Kind.COUNT, step=Decimal(0), counts=False)
        return self._first((part, *other_writings(part)))

    @cached_property
    def _scaled(self) -> list[Place[Number]]:
        """The numbers of tables in the scales and units of their headings and heads."""
        return [
            Place(number, document)
            for document, index in self.texts
            for read in (scaled_amounts, united_numbers)
            for number in read(index.text, index.numbers)
        ]

    def scaled_places(self, claimed: Number) -> Sequence[Place[Number]]:
        """The places of tables that support an amount in the scale or unit of a head; a change has none."""
        if claimed.kind not in _WITH_UNITS or claimed.trend in _CHANGES or not self._scaled:
            return ()
        key = "scaled", identity(claimed)
        if key in self._kept:
            return self._kept[key]
        writings = (claimed, *other_writings(claimed))
        places = []
        for place in self._scaled:
            found = place.mention
            size = abs(claimed.value)
            if found.kind is Kind.MONEY and not size <= 2 * abs(found.value) <= 4 * size:
                continue  # no rounding is as coarse
            found = changed(found, unit=claimed.unit) if found.unit == ANY_CURRENCY else found
            found = changed(found, trend=claimed.trend) if claimed.trend in MOVES else found
            if any(self._says(one, found) for one in writings):
                places.append(place)
        if len(self._kept) < _MOST_KEPT:
            self._kept[key] = places
        return places

    def _find_loss(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """An amount of a sentence that has a loss and no profit: "a net loss of $18 million, or 47 cents"."""
        if claimed.kind is not Kind.MONEY or claimed.trend or context is None:
            return None
        said = context()
        if _PROFIT.search(said) or not _LOSS.search(said):
            return None
        loss = in_other_sign(changed(claimed, trend=Trend.LOSS))
        return self._first((loss,)) if loss else None

    def _find_nth(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """ "The 14th" of a month that a sentence has named before."""
        is_day = claimed.kind is Kind.ORDINAL and not claimed.counts and claimed.value <= _MOST_DAYS
        if not is_day or context is None:
            return None
        if all(int(said) != claimed.value for said in _THE_NTH.findall(context())):
            return None
        for document, index in self.texts:
            if (date := next(index.dates(day=claimed.value), None)) is not None:
                return Place(date, document)
        return None

    @cached_property
    def _names_periods(self) -> bool:
        """Whether a document names quarters or halves of years."""
        numbers = (number for _, index in self.texts for number in index.numbers)
        return any(one.kind is Kind.PERIOD and one.values[1] <= LAST_HALF for one in numbers)

    def counts_otherwise(self, claimed: Number, things: frozenset[str]) -> bool:
        """Whether a document counts or ranks the same things as a number that it does not hold."""
        ranked = (one for one in self._others if one.mention.kind is claimed.kind is Kind.ORDINAL)
        if any(not things.isdisjoint(things_behind(one.document.text, one.mention)) for one in ranked):
            return True
        return any(not things.isdisjoint(index.things.get(claimed.kind, ())) for _, index in self.texts)

    def counts(self, claimed: Number) -> bool:
        """Whether a document holds a count elsewhere than in a score."""
        pairs = {id(document): index.pairs for document, index in self.texts}
        return any(one.mention.start not in pairs[id(one.document)] for one in self._places(claimed))

    def otherwise(self, claimed: Number) -> str:
        """How a number of the same value differs from one that no document supports; empty without one."""
        for document, index in self.texts:
            for entry in index.by_value.get(claimed.value, ()):
                found = entry.number
                differences = (
                    ("in another direction", are_opposed(claimed, found)),
                    ("of another kind or unit", (claimed.kind, claimed.unit) != (found.kind, found.unit)),
                    ("with another bound", claimed.form is not found.form),
                    ("for another time", claimed.rate != found.rate),
                )
                how = next((one for one, differs in differences if differs), "otherwise")
                return f'the documents hold "{document.text[found.start : found.end]}" {how}'
        return ""

    def bounds_otherwise(self, claimed: Number) -> bool:
        """Whether a document has the other bound of the same value, or a bound of another value or unit."""
        opposed = Form.LESS_THAN if claimed.form is Form.MORE_THAN else Form.MORE_THAN
        entries = (one for _, index in self.texts for one in index.by_value.get(claimed.value, ()))
        if any(e.number.form is claimed.form and e.number.dimension == claimed.dimension for e in entries):
            return True
        durations = (one for _, index in self.texts for one in index.numbers if one.kind is Kind.DURATION)
        if any(one.unit == claimed.unit and (one.is_bound or one.approximate) for one in durations):
            return True
        return bool(self._of_value(changed(claimed, form=opposed)))

    def _gives_other_rate(self, rate: str) -> bool:
        """Whether no document says what an amount is for, while one says another time for its amounts."""
        if rate not in self._other_rates:  # asked for every number that may support a claim
            says = any(_TIMES[rate].search(document.text) for document, _ in self.texts)
            rates = (one.rate for _, index in self.texts for one in index.numbers)
            others = (_EVERY.search(document.text) for document, _ in self.texts)  # "the monthly fee"
            self._other_rates[rate] = not says and (any(one in _TIMES for one in rates) or any(others))
        return self._other_rates[rate]

    def _find(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        if places := self._places(claimed):
            return nearest(places, context, words_near)
        if claimed.kind is Kind.DATE and claimed.form is Form.EXACT:
            return self._find_date(claimed) or self._find_day_of_month(claimed)
        if claimed.kind is Kind.DATE and claimed.form is Form.AT_MOST and len(claimed.values) == _WHOLE_DATE:
            return self._find_day_of_month(unbound(claimed))
        if claimed.kind is Kind.PERIOD:
            return self._find_period(claimed)
        if claimed.kind is Kind.RATIO and len(claimed.parts) == _SIDES:
            return self._find_sides(claimed, context)
        if claimed.parts and (claimed.form is Form.RANGE or claimed.kind is Kind.RATIO):
            # A range is there when each of its numbers is, but no "11 hours 42 minutes".
            # A document seldom writes the zero of "from 0 to 100 km/h"; the other end is never zero.
            parts = [part for part in claimed.parts if part.value or not part.dimension]
            found = [self.find(part, context=context) for part in parts]
            return found[0] if all(found) else None
        return None

    def _places(self, claimed: Number) -> Sequence[Place[Number]]:
        """The places to choose from: of equal numbers, else of those that support a claim by its value, else
        the first that supports it otherwise. Kept for the next response that says the number.
        """
        key = identity(claimed), claimed.is_short
        places = self._kept.get(key)
        if places is None:
            places = self._of_value(claimed) or list(islice(self._supporting(claimed), 1))
            if len(places) <= _MOST_PLACES_KEPT:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = places
        return places

    def _states_opposite(self, claimed: Number) -> bool:
        """Whether documents bound the same value, and all of them the other way: "above 6" for "below 6"."""
        if not claimed.is_bound:
            return False
        bounds = {
            entry.number.form in LOWER_BOUNDS
            for _, index in self.texts
            for entry in index.by_value.get(claimed.value, ())
            if entry.number.is_bound and entry.number.unit == claimed.unit
        }
        return bounds == {claimed.form not in LOWER_BOUNDS}

    def _of_value(self, claimed: Number) -> Sequence[Place[Number]]:
        """The places of the numbers that equal a claim, or else have its value and support it."""
        same: list[Place[Number]] = []
        exact: list[Place[Number]] = []
        for document, index in self.texts:
            for reading in claimed.readings:
                same_value = index.by_value.get(reading[0], ())
                entries = [one for one in same_value if self._bears_out(index, claimed, one.number)]
                if not entries:
                    continue
                equal_ones = [one for one in entries if equal(claimed, close_like(one.number, claimed))]
                same += _places(entries, document)
                exact += _places(equal_ones, document)
        return exact or same

    def _supporting(self, claimed: Number) -> Iterator[Place[Number]]:
        """The numbers that support a claim, each once, in the order of the documents."""
        if self._states_opposite(claimed):
            return
        for document, index in self.texts:
            for entry in index.near(claimed, relative_tolerance=self._tolerance):
                if self._bears_out(index, claimed, entry.number):
                    yield Place(entry.number, document)

    def _find_sides(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """A ratio is in the documents when both its numbers are, as a pair or each outside of any.

        One side of "7 to 2" does not support "2 to 2". A 9 and a 5 far from each other do not support the
        score "9-5"; the 5 of "3.5 out of 5" is only a scale and may be anywhere.
        """
        is_score = claimed.value > claimed.values[1]
        first, second = (self._places_of_side(side) for side in claimed.parts)
        fitting = [
            side[0]
            for side in first
            if any(_may_be_sides(side, other, is_score=is_score) for other in second)
        ]
        return nearest(fitting, context, words_near) if fitting else None

    def _places_of_side(self, side: Number) -> list[_Side]:
        """The places of a number, each with the ratio or the range that it is part of there."""
        pairs = {id(document): index.pairs for document, index in self.texts}
        writings = chain((side,), other_writings(side))
        places = chain.from_iterable(map(self._places, writings))
        return [(one, pairs[id(one.document)].get(one.mention.start)) for one in places]

    def _find_date(self, claimed: Number) -> Place[Number] | None:
        """A date whose day and month the documents give together, and whose year they give anywhere."""
        year, month, day = claimed.values
        for document, index in self.texts:
            for date in index.dates(month, day):
                if date.form is Form.RANGE:
                    continue
                found_year, found_month, found_day = date.values
                is_other_year = year and found_year and year != found_year
                if (found_month, found_day) != (month, day) or is_other_year or are_opposed(claimed, date):
                    continue
                if not year or found_year or any(year in one.by_value for _, one in self.texts):
                    return Place(date, document)
        return None

    def _find_day_of_month(self, claimed: Number) -> Place[Number] | None:
        """A day of the month that the document has named before it ("on the 9th"), or its end."""
        year, month, day = claimed.values
        for document, index in self.texts if month and day else ():
            for entry in index.by_value.get(day, ()):
                for _, number in entry.places:
                    if _is_day(index, number) and _is_of_month(index, number, year, month):
                        return Place(number, document)
            for date in index.dates(month):
                before = _DAY_BEFORE.search(index.text, max(0, date.start - _LONGEST_DAY), date.start)
                if before and int(before[1]) == day and date.values[2] > day and date.values[0] in (0, year):
                    return Place(date, document)
                is_end = day == _LAST_DAYS[int(month)] and _END_OF.search(
                    index.text, max(0, date.start - 12), date.start
                )
                if is_end and not date.values[2] and date.values[0] in (0, year):
                    return Place(date, document)
        return None

    def _find_period(self, claimed: Number) -> Place[Number] | None:
        """A part of a year that the documents name without its year, which they give anywhere."""
        year, part = claimed.values
        if year and not any(year in index.by_value for _, index in self.texts):
            return None
        for document, index in self.texts:
            if (lone := index.lone_parts.get(int(part))) is not None:
                return Place(lone, document)
        return None

    def _bears_out(self, index: NumberIndex, claimed: Number, found: Number) -> bool:
        """Whether a number of an index supports one of a response.

        The year of a date supports no part of a year: the date must. That of autumn is no "early 2012".
        """
        if claimed.trend in PARTS_OF_TIME and found.kind is not Kind.DATE:
            period = index.periods_of_years.get(found.start)
            is_other = period and not has_month_of(period, *PARTS_OF_TIME[Trend(claimed.trend)][0])
            is_of_date = found.start in index.years_of_dates and not index.speaks_of_that_year
            if is_other or is_of_date:
                return False
        is_bare_change = found.kind is Kind.COUNT and found.trend in (Trend.RISE_BY, Trend.FALL_BY)
        if claimed.kind is Kind.PERCENT and is_bare_change and not _OF_PERCENT.match(index.text, found.end):
            return False  # "rose by 25 to 300" is no rise by 25%
        return self._says(claimed, found)

    def _says(self, claimed: Number, found: Number) -> bool:
        """Whether a number of a document supports one of a response.

        A time of day is supported by a time of day only, and a bound ("over 270") where the document states
        it or a value near it. An exact number is supported by the value of a bound ("270" by "over 270").
        """
        if are_opposed(claimed, found):
            return False  # "rose by 3%" is no "fell by 3%"
        if claimed == found and claimed.rate == found.rate:
            return True
        if (claimed.kind is Kind.TIME) is not (found.kind is Kind.TIME) or as_share(
            found, claimed
        ) is not found:
            return False  # a share is looked up in each of its writings
        if claimed.kind is Kind.COUNT and found.kind is Kind.DATE:
            return claimed.value == found.value and found.value >= _FIRST_YEAR  # a bare 6 is no June
        if claimed.kind is Kind.PERIOD and found.kind is Kind.DATE and self._names_periods:
            return False  # "Q3" where a document speaks of Q2, and of a day in the third quarter
        if claimed.rate and found.rate and claimed.rate != found.rate:
            return False  # "$40 per month" is no "$40 per week"
        if claimed.rate in _TIMES and not found.rate and self._gives_other_rate(claimed.rate):
            return False  # "$40 per month" where the documents speak of years alone
        if found.kind is Kind.IDENTIFIER and claimed.kind is not Kind.IDENTIFIER:
            is_roman = found.value == claimed.value and _ROMAN.fullmatch(found.unit) is not None
            if claimed.kind in (Kind.YEAR, Kind.COUNT):
                return is_roman and claimed.value >= _FIRST_YEAR
            return is_roman and claimed.kind is Kind.ORDINAL  # "the XIV edition" is the 14th
        if found.kind is claimed.kind is Kind.IDENTIFIER and _unhyphened(claimed) == _unhyphened(found):
            return not (claimed.is_bound and found.is_bound) or claimed.form is found.form  # "X-200", "X200"
        if claimed.kind is Kind.IDENTIFIER and claimed.is_bound:
            return False  # "3.7 or later" is not "3.9 or later", though 3.9 is later
        if claimed.is_bound and claimed.kind is Kind.DATE:
            is_opposed = found.is_bound and found.form is not claimed.form
            return not is_opposed and supports(unbound(claimed), unbound(found))
        if claimed.is_bound:  # "grade 4 or higher" is not stated by 4.8%
            is_share = claimed.kind is Kind.COUNT and found.kind is Kind.PERCENT
            is_bare = found.kind is Kind.COUNT is not claimed.kind and found.value != claimed.value
            return not (is_share or is_bare) and bound_stated(found, claimed)
        is_beyond = found.unit == claimed.unit and found.value >= claimed.value
        if claimed.is_short and found.form in LOWER_BOUNDS and is_beyond:
            return False  # "nearly doubled" is no "more than doubled"
        return supports(claimed, unbound(found), relative_tolerance=self._tolerance)


def _is_required(place: Place[Number]) -> bool:
    """Whether a sentence says what must or may be: of what is, a bound cannot be turned round."""
    text = place.document.text
    low, high = sentence_span(text, place.mention.start, place.mention.end)
    return _REQUIRES.search(text, low, high) is not None


def _goes_on(place: Place[Number]) -> bool:
    """Whether a sentence goes on beyond its bound."""
    text = place.document.text
    _, high = sentence_span(text, place.mention.start, place.mention.end)
    return _BEYOND.search(text, place.mention.end, high) is not None


def _is_day(index: NumberIndex, number: Number) -> bool:
    """Whether an ordinal is a day: "on the 9th", and not the ninth of something."""
    is_ordinal = number.kind is Kind.ORDINAL and not number.counts
    return is_ordinal and _THE_DAY.search(index.text, max(0, number.start - 8), number.start) is not None


def _is_of_month(index: NumberIndex, number: Number, year: Decimal, month: Decimal) -> bool:
    """Whether the last date before a number, of those near it, is of a month, and of no other year."""
    last = bisect_left(index.numbers, number.start, key=attrgetter("start"))
    for one in reversed(index.numbers[max(0, last - _MOST_BETWEEN) : last]):
        if one.kind is Kind.DATE and one.form is Form.EXACT and one.values[1]:
            return one.values[1] == month and (not year or one.values[0] in (0, year))
    return False


def _may_be_sides(first: _Side, second: _Side, *, is_score: bool) -> bool:
    """Whether two places of one document can be the sides of a ratio: of one pair there, or both of none."""
    (one, pair), (other, its_pair) = first, second
    is_one_place = one.mention.start == other.mention.start
    if one.document is not other.document or pair is not its_pair or is_one_place:
        return False
    text, (before, behind) = one.document.text, sorted((one.mention, other.mention), key=attrgetter("start"))
    if pair is not None:
        return one.mention is before or not _IN_ORDER.search(text, before.end, behind.start)
    return not is_score or _are_near(text, before, behind)


def _are_near(text: str, before: Number, behind: Number) -> bool:
    """Whether two numbers are in one sentence, or on lines near each other."""
    _, high = sentence_span(text, before.start, before.end)
    is_near = behind.start - before.end <= _FAR
    return behind.end <= high or (is_near and not _SENTENCE_END.search(text, before.end, behind.start))


def _places(entries: Sequence[Entry], document: Document) -> Iterator[Place[Number]]:
    """Where the numbers stand in a document, from left to right."""
    places = sorted((place for entry in entries for place in entry.places), key=itemgetter(0))
    return (Place(number, document) for _, number in places)


def words_near(place: Place[Number]) -> frozenset[str]:
    """The words around the place of a number in its document."""
    start, end = max(0, place.mention.start - _REACH), place.mention.end + _REACH
    return content_words(place.document.text[start:end])


def _unhyphened(number: Number) -> str:
    """An identifier without what writers leave out: "X200" of "X-200" and, of several, "X-200s"."""
    return _LEFT_OUT.sub("", number.unit.replace("-", "").replace(" ", ""))
