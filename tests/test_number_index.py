"""The index of numbers gives what a look at every number of the documents gives, only faster."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward.claims.kind import Place, nearest
from reward.claims.numbers import Form, Kind, Number, equal, find_numbers
from reward.claims.numbers.conventions import conventions_of
from reward.claims.numbers.equality import conversion
from reward.claims.numbers.index import index_numbers
from reward.claims.numbers.lookup import NumberLookup, words_near
from reward.claims.numbers.reading import close_like
from reward.claims.numbers.trends import are_opposed
from reward.claims.numbers.units import UNITS
from reward.types import Document


class EveryNumber(NumberLookup):
    """Holds a claim against every number of every document, one after the other."""

    def __init__(self, documents: Sequence[Document], *, relative_tolerance: float = 0.0) -> None:
        super().__init__(documents, relative_tolerance=relative_tolerance)
        texts = [document.text for document in documents]
        self._numbers = [
            (document, index_numbers(document.text, conventions_of(document.text, *texts)).numbers)
            for document in documents
        ]

    def _find(self, claimed: Number, context: str) -> Place[Number] | None:
        if places := self._places(claimed):
            return nearest(places, context, words_near)
        if claimed.kind is Kind.DATE and claimed.form is Form.EXACT:
            return self._find_date(claimed)
        if claimed.kind is Kind.RATIO and claimed.parts:
            return self._find_sides(claimed, context)
        if claimed.parts and claimed.form in (Form.EXACT, Form.RANGE):
            places = [self.find(part, context=context) for part in claimed.parts]
            return places[0] if all(places) else None
        return None

    def _places(self, claimed: Number) -> list[Place[Number]]:
        same = [place for place in self._with_value_of(claimed) if self._says(claimed, place.mention)]
        exact = [place for place in same if equal(claimed, close_like(place.mention, claimed))]
        all_ = () if self._states_opposite(claimed) else self._all()
        supporting = (place for place in all_ if self._says(claimed, place.mention))
        return exact or same or list(islice(supporting, 1))

    def _all(self) -> Iterator[Place[Number]]:
        return (Place(number, document) for document, numbers in self._numbers for number in numbers)

    def _with_value_of(self, claimed: Number) -> Iterator[Place[Number]]:
        for document, numbers in self._numbers:
            for reading in claimed.readings:
                for number in numbers:
                    if reading[0] in {other[0] for other in number.readings}:
                        yield Place(number, document)

    def _find_date(self, claimed: Number) -> Place[Number] | None:
        year, month, day = claimed.values
        years = {reading[0] for place in self._all() for reading in place.mention.readings}
        for place in self._all():
            found = place.mention
            if found.kind is not Kind.DATE or found.form is Form.RANGE or found.values[1:] != (month, day):
                continue
            if (year and found.values[0] and year != found.values[0]) or are_opposed(claimed, found):
                continue
            if not year or found.values[0] or year in years:
                return place
        return None


WRITINGS = (
    "0", "1", "2", "3", "5", "9", "10", "12", "50", "90", "99", "100", "270", "281", "466", "500", "1000",
    "1500", "1960", "1984", "1999", "2021", "1.5", "0.5", "3.14", "1,500", "50,123", "5,000,000", "1e5",
    "1e12", "00", "one", "two", "twenty", "twelve", "hundred", "half",
)  # fmt: skip
BEHIND = (
    "", "", "", "%", " percent", " percentage points", " km", " m", " miles", " feet", " mg", " g", " kg",
    " lb", " hours", " minutes", " days", " weeks", " months", " years", " million", " billion", " thousand",
    " °C", " °F", " degrees", " dollars", " euros", " people", "th", "st", "+", " or more", " pm", ":30",
    ":30 pm", " May 2021", " May", "/5/2021", "s", "-52%", " to 60", " out of 10", " BC", " mph", " km/h",
    " mg/dL",
)  # fmt: skip
BEFORE = (
    "", "", "", "", "about ", "over ", "under ", "at least ", "up to ", "nearly ", "more than ", "$", "€",
    "-", "~", "in ", "since ", "May ", "on 3 May ", "the '", "COVID-", "from ", "between 1 and ", "after ",
)  # fmt: skip
writings = st.builds("".join, st.tuples(*map(st.sampled_from, (BEFORE, WRITINGS, BEHIND))))
texts = st.lists(writings, min_size=1, max_size=12).map(". Also ".join)


def shown(place: Place[Number] | None) -> object:
    return place and (place.document.id, asdict(place.mention))


@settings(max_examples=500, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), texts, st.sampled_from([0.0, 0.03, 0.5]))
@example(["Then 1984"], "the '90s", 0.0)
@example(["270+ cars"], "over 270 cars", 0.0)
@example(["5 degrees. 41 °F"], "5 °C", 0.0)
@example(["3 May 2021. 1999"], "on 3 May 1999", 0.0)
@example(["50:30"], "half:30", 0.0)
def test_lookup_is_that_of_a_full_scan(documents: list[str], response: str, tolerance: float) -> None:
    held = [Document(id=str(place), text=text) for place, text in enumerate(documents)]
    lookup = NumberLookup(held, relative_tolerance=tolerance)
    every = EveryNumber(held, relative_tolerance=tolerance)
    for number in find_numbers(response):
        for claimed in dict.fromkeys((number, *number.atoms)):
            if claimed.kind is Kind.DATE and not any(claimed.values):
                continue  # the 0 of "0/5/2021" is no day, and a full scan would take any date for it
            found = [one._find(claimed, lambda: response) for one in (lookup, every)]
            assert shown(found[0]) == shown(found[1])


@pytest.mark.parametrize(
    "unit", [unit.name for unit in UNITS.values() if unit.dimension not in ("sound level", "multiple")]
)
def test_every_unit_converts_to_another_of_its_dimension(unit: str) -> None:
    others = [other.name for other in UNITS.values() if other.dimension == UNITS[unit].dimension]
    assert all(conversion(unit, other)[0] > 0 for other in others)


def test_a_number_that_is_written_often_is_kept_once() -> None:
    index = index_numbers("1 km, " * 1000)
    (entry,) = index.by_value[Decimal(1)]
    assert (len(index.numbers), len(entry.places)) == (1000, 64)
    assert index.near(find_numbers("2 km")[0], relative_tolerance=0.0) == []
