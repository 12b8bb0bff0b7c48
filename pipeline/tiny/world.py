"""The numeric world: made-up events whose every number can be judged, for runs that fit two CPU cores.

A fact is one sentence, "The July picnic in Kabul raised 466 euros."; a query asks for one to three facts,
and the documents hold the asked facts, near-duplicates that differ from them in one word, and unrelated
facts. A fifth of the (event, city) pairs is held out for evaluation. No sentence holds a year, so every
number of an answer is a claim.

The oracle reads the truth back out of the documents, so it can judge any row, wherever it was stored. It
is for monitoring only and never a reward: the point of the method is to learn without it.
"""

from __future__ import annotations

import itertools
import random
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from reward.config import Settings
from reward.types import Document, RagQuery

Split = Literal["train", "held_out"]
FactKey = tuple[str, str, str, str]  # month, event, city, verb

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
MONTHS, EVENTS, CITIES = tuple(_MONTHS.split()), tuple(_EVENTS.split()), tuple(_CITIES.split())
UNITS: Mapping[str, str] = {"drew": "people", "sold": "tickets", "raised": "euros", "hired": "guards"}
VERBS = tuple(UNITS)
MARKERS = "abc"  # of the items of a query, in order

_SUBJECT = rf"The (\w+) (\w+) in (\w+) ({'|'.join(VERBS)})"
_STATEMENT = re.compile(rf"{_SUBJECT} (0|[1-9][0-9]{{0,17}}) (\w+)\.")  # bounded: a policy may run on
_QUESTION = re.compile(rf"{_SUBJECT} how many (\w+)\?")


class WorldSettings(Settings):
    """How hard worlds are; the defaults are those of the tiny recipe and of its start's demonstrations."""

    num_asked: int | None = Field(
        default=None, ge=1, le=3, description="Items of a query; 1 to 3 by default."
    )
    p_duplicate: float = Field(
        default=0.8, ge=0, le=1, description="Chance that an asked fact gets near-duplicates."
    )
    num_duplicates: int = Field(
        default=1, ge=1, le=6, description="Near-duplicates of a fact that gets any, each off by one word."
    )
    unrelated: tuple[int, int] = Field(
        default=(0, 2), description="Fewest and most facts that nobody asks for; they make documents long."
    )

    @model_validator(mode="after")
    def _unrelated_is_a_range(self) -> Self:
        if not 0 <= self.unrelated[0] <= self.unrelated[1] <= 50:
            raise ValueError(
                f"unrelated: {list(self.unrelated)} is no range; write [fewest, most], 50 at most"
            )
        return self


PLAIN_WORLD = WorldSettings()


@dataclass(frozen=True)
class Fact:
    """One number of the world and what it counts.

    Example: `Fact("July", "picnic", "Kabul", "raised", 466)`.
    """

    month: str
    event: str
    city: str
    verb: str
    number: int

    @property
    def key(self) -> FactKey:
        """All but the number."""
        return (self.month, self.event, self.city, self.verb)

    def statement(self, number: int | None = None) -> str:
        """The fact as a sentence; with `number`, the sentence that claims that number instead."""
        shown = self.number if number is None else number
        return f"The {self.month} {self.event} in {self.city} {self.verb} {shown} {UNITS[self.verb]}."

    def question(self) -> str:
        """The question whose answer is the number."""
        return f"The {self.month} {self.event} in {self.city} {self.verb} how many {UNITS[self.verb]}?"


@dataclass(frozen=True)
class World:
    """A query with what its maker knows about it."""

    query: RagQuery
    asked: tuple[Fact, ...]  # in the order of the query's items
    near_duplicates: Mapping[
        FactKey, Fact
    ]  # by the asked fact's key: the fact that differs from it in one word
    facts: tuple[Fact, ...]  # all of them, in the order of the documents; no two share a key or a number

    @property
    def truth(self) -> Mapping[FactKey, int]:
        """The number of each key that the documents hold."""
        return {fact.key: fact.number for fact in self.facts}


@dataclass(frozen=True)
class OracleFigures:
    """What the documents say about one response."""

    faithful: bool  # at least one number, and each stands in a sentence that the documents hold
    num_numbers: int
    num_right: int  # numbers in such a sentence
    coverage: float  # share of the asked items that the response makes a statement about, in [0, 1]
    empty: bool  # no number at all


def is_held_out(event: str, city: str) -> bool:
    """Whether a pair belongs to the held-out fifth; a checksum, so the same on every machine."""
    return zlib.crc32(f"{event}|{city}".encode()) % 5 == 0


def sample_world(
    rng: random.Random,
    split: Split,
    *,
    query_id: str = "tiny",
    settings: WorldSettings = PLAIN_WORLD,
) -> World:
    """Draws a query, its documents and their truth.

    Args:
        rng: The only source of chance.
        split: Which (event, city) pairs may appear; the two splits share none.
        query_id: Id of the resulting `RagQuery`.
        settings: How many items, near-duplicates and unrelated facts.
    """
    facts: dict[FactKey, Fact] = {}
    count = settings.num_asked or rng.choice((1, 2, 2, 3))
    asked = tuple(_add_random_fact(rng, facts, split) for _ in range(count))
    duplicates = {}
    for fact in asked:
        if rng.random() < settings.p_duplicate:
            twins = [_add_near_duplicate(rng, facts, fact, split) for _ in range(settings.num_duplicates)]
            duplicates[fact.key] = twins[0]
    for _ in range(_num_unrelated(rng, settings)):
        _add_random_fact(rng, facts, split)
    order = list(facts.values())
    rng.shuffle(order)
    query = " ".join(f"{marker}) {fact.question()}" for marker, fact in zip(MARKERS, asked, strict=False))
    row = RagQuery(id=query_id, query=query, documents=_into_documents(rng, order))
    return World(query=row, asked=asked, near_duplicates=duplicates, facts=tuple(order))


def sample_worlds(n: int, seed: int, split: Split, settings: WorldSettings = PLAIN_WORLD) -> list[World]:
    """Returns `n` worlds; equal arguments give equal worlds."""
    rng = random.Random(seed)
    ids = (f"tiny-{split}-{seed}-{i}" for i in range(n))
    return [sample_world(rng, split, query_id=query_id, settings=settings) for query_id in ids]


def worlds(n: int, seed: int, split: Split, settings: WorldSettings = PLAIN_WORLD) -> list[RagQuery]:
    """Returns the queries of `sample_worlds`, with ids `tiny-{split}-{seed}-{i}`."""
    return [world.query for world in sample_worlds(n, seed, split, settings)]


def read_facts(text: str) -> list[Fact]:
    """Returns the well-formed statements of a text, in order, whether true or not."""
    matches = (match for match in _STATEMENT.finditer(text) if UNITS[match[4]] == match[6])
    return [Fact(*_key(match), int(match[5])) for match in matches]


def oracle(query: RagQuery, response: str) -> OracleFigures:
    """Judges a response by the documents; for monitoring only, never a reward.

    Args:
        query: Any row of this world; its documents are read back into facts.
        response: What a Solver wrote.
    """
    truth = _truth_of(query)
    asked = {_key(match) for match in _QUESTION.finditer(query.query)}
    stated = read_facts(response)
    num_numbers = len(re.findall(r"\d+", response))
    num_right = sum(truth.get(fact.key) == fact.number for fact in stated)
    covered = asked & {fact.key for fact in stated}
    return OracleFigures(
        faithful=num_numbers > 0 and num_right == num_numbers,
        num_numbers=num_numbers,
        num_right=num_right,
        coverage=len(covered) / len(asked) if asked else 0.0,
        empty=num_numbers == 0,
    )


def true_answer(query: RagQuery, question: str) -> str | None:
    """Returns the number that the documents give for a question of this world; None when they hold none."""
    match = _QUESTION.search(question)
    number = None if match is None else _truth_of(query).get(_key(match))
    return None if number is None else str(number)


def _truth_of(query: RagQuery) -> dict[FactKey, int]:
    return {fact.key: fact.number for document in query.documents for fact in read_facts(document.text)}


def _key(match: re.Match[str]) -> FactKey:
    return (match[1], match[2], match[3], match[4])


def _num_unrelated(rng: random.Random, settings: WorldSettings) -> int:
    """Draws nothing where there is no choice."""
    fewest, most = settings.unrelated
    return fewest if fewest == most else rng.randint(fewest, most)


def _add_random_fact(rng: random.Random, facts: dict[FactKey, Fact], split: Split) -> Fact:
    while True:
        event, city = rng.choice(EVENTS), rng.choice(CITIES)
        key = (rng.choice(MONTHS), event, city, rng.choice(VERBS))
        if is_held_out(event, city) == (split == "held_out") and key not in facts:
            return _add_fact(rng, facts, key)


def _add_near_duplicate(rng: random.Random, facts: dict[FactKey, Fact], fact: Fact, split: Split) -> Fact:
    while True:
        month, event, city, verb = fact.key
        changed = rng.randrange(3)
        if changed == 0:
            month = rng.choice(MONTHS)
        elif changed == 1:
            city = rng.choice(CITIES)
        else:
            verb = rng.choice(VERBS)
        key = (month, event, city, verb)
        if is_held_out(event, city) == (split == "held_out") and key not in facts:
            return _add_fact(rng, facts, key)


def _add_fact(rng: random.Random, facts: dict[FactKey, Fact], key: FactKey) -> Fact:
    """Gives the key a number that no other fact has, three times in ten of two digits, else of three."""
    taken = {fact.number for fact in facts.values()}
    while True:
        number = rng.randint(10, 99) if rng.random() < 0.3 else rng.randint(100, 999)
        if number not in taken:
            facts[key] = Fact(*key, number)
            return facts[key]


def _into_documents(rng: random.Random, facts: list[Fact]) -> tuple[Document, ...]:
    """Cuts the facts into up to five documents, each a run of at least one sentence."""
    num_documents = min(len(facts), rng.randint(2, 5))
    cuts = [0, *sorted(rng.sample(range(1, len(facts)), num_documents - 1)), len(facts)]
    runs = (facts[start:end] for start, end in itertools.pairwise(cuts))
    return tuple(
        Document(id=f"d{i}", text=" ".join(fact.statement() for fact in run)) for i, run in enumerate(runs, 1)
    )
