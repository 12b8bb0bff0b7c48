"""The words of the tiny world: what tells events apart, people, and what a sentence can say of an event.

An event of the default world has a month and a city. Where names and dates are claims themselves it has a
theme and a place instead, "The charity picnic at the harbour", so that a sentence still holds one claim: its
value.
A verb decides the kind of its fact: how many of something (a number), which person (a name), which day (a
date). The tokenizer has one token for each word and for each verb, however many words the verb has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from pipeline.settings.worlds import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)

_MONTHS = "January February March April May June July August September October November December"
_EVENTS = """
marathon exam festival market museum library concert regatta auction circus parade workshop conference
tournament exhibition gala picnic hackathon lecture seminar opera ballet rodeo derby carnival bazaar
symposium clinic camp course tour match race fair show premiere cruise hike raffle quiz debate retreat
banquet recital audition summit forum zoo
"""
_CITIES = """
Beijing Paris London Tokyo Cairo Lima Oslo Rome Madrid Berlin Vienna Prague Dublin Lisbon Athens Warsaw
Sofia Minsk Riga Tallinn Helsinki Stockholm Geneva Milan Naples Seville Porto Lyon Bonn Munich Delhi
Mumbai Karachi Dhaka Hanoi Manila Jakarta Seoul Osaka Kyoto Sydney Perth Dallas Boston Denver Austin Miami
Chicago Toronto Quito Bogota Santiago Havana Nairobi Lagos Accra Dakar Tunis Rabat Baku Doha Muscat Kabul
Tbilisi
"""
_THEMES = """
charity royal village student veteran junior masked silent annual amateur floating vegan
"""
_PLACES = """
harbour castle lighthouse mill bridge station airport stadium theatre hospital college convent cathedral
chapel brewery bakery winery farm orchard vineyard meadow forest lake river beach island cliff cave
quarry mine dam canal dock pier marina boathouse lodge inn hotel hostel palace fortress tower barracks
prison factory foundry shipyard sawmill greenhouse observatory aquarium arena pool rink casino cinema
studio gallery archive embassy pharmacy academy park
"""
_FIRST_NAMES = """
Maria Peter Amina Oscar Lucia Hassan Ingrid Tomas Yuki Daniel Fatima Pavel Clara Samuel Leila Marcus Elena
Victor Naomi Felix Rosa Simon Greta Adam
"""
_LAST_NAMES = """
Silva Novak Haddad Larsen Moreau Tanaka Okafor Rossi Fischer Nowak Murphy Santos Ivanova Schmidt Dubois
Andersson Mehta Kowalski Ferrari Jansen Petrov Morales Bennett Keller Suzuki Costa Lindgren Vargas Weber
Popescu Diallo Romero
"""
MONTHS, EVENTS, CITIES = tuple(_MONTHS.split()), tuple(_EVENTS.split()), tuple(_CITIES.split())
THEMES, PLACES = tuple(_THEMES.split()), tuple(_PLACES.split())
FIRST_NAMES, LAST_NAMES = tuple(_FIRST_NAMES.split()), tuple(_LAST_NAMES.split())
UNITS: Mapping[str, str] = {"drew": "people", "sold": "tickets", "raised": "euros", "hired": "guards"}


@dataclass(frozen=True)
class VerbForm:
    """How a verb asks, and what follows the value in its statement."""

    kind: Kind
    asked: str
    tail: str = ""


VERB_FORMS: Mapping[str, VerbForm] = {
    **{verb: VerbForm("number", f"how many {unit}", f" {unit}") for verb, unit in UNITS.items()},
    "was organised by": VerbForm("name", "which person"),
    "was opened by": VerbForm("name", "which person"),
    "was announced on": VerbForm("date", "which day"),
    "was booked on": VerbForm("date", "which day"),
}


def where(place: str) -> str:
    """A city or another place with its preposition."""
    return f"in {place}" if place in CITIES else f"at the {place}"


def verbs_of(kind: Kind) -> Sequence[str]:
    """The verbs whose facts are of a kind, in the order of `VERB_FORMS`."""
    return [verb for verb, form in VERB_FORMS.items() if form.kind == kind]
