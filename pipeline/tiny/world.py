"""The tiny world: made-up events whose every number, name and date can be judged, for runs on two CPU cores.

A fact is one sentence, "The July picnic in Kabul raised 466 euros."; a query asks for one to three facts,
and the documents hold the asked facts, near-duplicates that differ from them in one word, and unrelated
facts. A fifth of the (event, city) pairs is held out for evaluation. No sentence holds a year, so every
number of an answer is a claim. The default world has numbers alone; `kinds` adds facts whose value is a
person or a day, and then no event has a month or a city, so that every name and day of an answer is a claim,
too. `unanswerable_share` adds queries whose asked facts are in no document.
"""

import itertools
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.settings.worlds import PLAIN_WORLD, Kind, WorldSettings
from pipeline.tiny.facts import Fact, FactKey, Value
from pipeline.tiny.words import CITIES, EVENTS, FIRST_NAMES, LAST_NAMES, MONTHS, PLACES, THEMES, verbs_of
from pipeline.worlds.world import Split
from reward.types import Document, RagQuery

MARKERS = "abc"  # of the items of a query, in order
_LAST_DAY = 28  # of every month


@dataclass(frozen=True)
class World:
    """A query with what its maker knows about it."""

    query: RagQuery
    asked: tuple[Fact, ...]  # in the order of the query's items
    near_duplicates: Mapping[FactKey, Fact]  # by the asked fact's key, which differs in one word
    facts: tuple[Fact, ...]  # of the documents, in their order; no two share a key or a value

    @property
    def truth(self) -> Mapping[FactKey, Value]:
        """The value of each key that the documents hold."""
        return {fact.key: fact.value for fact in self.facts}

    @property
    def is_answerable(self) -> bool:
        """Whether the documents hold what is asked; all of it or nothing."""
        return self.asked[0].key in self.truth


def is_held_out(event: str, place: str) -> bool:
    """Whether a pair belongs to the held-out fifth; a checksum, so the same on every machine."""
    return zlib.crc32(f"{event}|{place}".encode()) % 5 == 0


def sample_world(
    rng: random.Random, split: Split, *, query_id: str = "tiny", settings: WorldSettings = PLAIN_WORLD
) -> World:
    """Draws a query, its documents and their truth; the splits share no (event, city) pair."""
    facts: dict[FactKey, Fact] = {}
    count = settings.num_asked or rng.choice((1, 2, 2, 3))
    asked = tuple(_add_random_fact(rng, facts, split, settings.kinds) for _ in range(count))
    duplicates = {}
    for fact in asked:
        if rng.random() < settings.p_duplicate:
            twins = [_add_near_duplicate(rng, facts, fact, split) for _ in range(settings.num_duplicates)]
            duplicates[fact.key] = twins[0]
    for _ in range(_num_unrelated(rng, settings)):
        _add_random_fact(rng, facts, split, settings.kinds)
    unanswerable = bool(settings.unanswerable_share) and rng.random() < settings.unanswerable_share
    if unanswerable:
        if len(facts) == len(asked):  # a near-duplicate is left, since there must be a document
            _add_near_duplicate(rng, facts, asked[0], split)
        for fact in asked:
            del facts[fact.key]
    order = list(facts.values())
    rng.shuffle(order)
    query = " ".join(f"{marker}) {fact.question()}" for marker, fact in zip(MARKERS, asked, strict=False))
    documents = _into_documents(rng, order)
    row = RagQuery(id=query_id, query=query, documents=documents, unanswerable=unanswerable)
    return World(query=row, asked=asked, near_duplicates=duplicates, facts=tuple(order))


def sample_worlds(n: int, seed: int, split: Split, settings: WorldSettings = PLAIN_WORLD) -> list[World]:
    """Returns `n` worlds; equal arguments give equal worlds."""
    rng = random.Random(seed)
    ids = (f"tiny-{split}-{seed}-{i}" for i in range(n))
    return [sample_world(rng, split, query_id=query_id, settings=settings) for query_id in ids]


def worlds(n: int, seed: int, split: Split, settings: WorldSettings = PLAIN_WORLD) -> list[RagQuery]:
    """Returns the queries of `sample_worlds`, with ids `tiny-{split}-{seed}-{i}`."""
    return [world.query for world in sample_worlds(n, seed, split, settings)]


def near_miss(rng: random.Random, world: World, fact: Fact) -> Fact:
    """A fact that differs from a training one in one word and is in no document: nobody can answer it."""
    facts = {one.key: one for one in (*world.asked, *world.facts)}
    return _add_near_duplicate(rng, facts, fact, "train")


def _num_unrelated(rng: random.Random, settings: WorldSettings) -> int:
    """Draws nothing where there is no choice."""
    fewest, most = settings.unrelated
    return fewest if fewest == most else rng.randint(fewest, most)


def _add_random_fact(
    rng: random.Random, facts: dict[FactKey, Fact], split: Split, kinds: tuple[Kind, ...]
) -> Fact:
    while True:
        is_plain = kinds == ("number",)
        event, place = rng.choice(EVENTS), rng.choice(CITIES if is_plain else PLACES)
        key = (rng.choice(MONTHS if is_plain else THEMES), event, place, _choose_verb(rng, kinds))
        if is_held_out(event, place) == (split == "held_out") and key not in facts:
            facts[key] = Fact(*key, _new_value(rng, facts, key))
            return facts[key]


def _choose_verb(rng: random.Random, kinds: tuple[Kind, ...]) -> str:
    """A verb of any kind, each kind as often; draws nothing for the kind where there is no choice."""
    return rng.choice(verbs_of(kinds[0] if len(kinds) == 1 else rng.choice(kinds)))


def _add_near_duplicate(rng: random.Random, facts: dict[FactKey, Fact], fact: Fact, split: Split) -> Fact:
    while True:
        theme, event, place, verb = fact.key
        changed = rng.randrange(3)
        if changed == 0:
            theme = rng.choice(MONTHS if theme in MONTHS else THEMES)
        elif changed == 1:
            place = rng.choice(CITIES if place in CITIES else PLACES)
        else:
            verb = rng.choice(verbs_of(fact.kind))
        key = (theme, event, place, verb)
        if is_held_out(event, place) == (split == "held_out") and key not in facts:
            facts[key] = Fact(*key, _new_value(rng, facts, key, like=fact))
            return facts[key]


def _new_value(
    rng: random.Random, facts: Mapping[FactKey, Fact], key: FactKey, like: Fact | None = None
) -> Value:
    """A value that no other fact has; a near-duplicate's shares the first name, or the month, of `like`."""
    kind = Fact(*key, 0).kind
    if kind == "number":
        return _new_number(rng, {fact.value for fact in facts.values()})
    if kind == "name":
        taken = {str(fact.value).split()[1] for fact in facts.values() if fact.kind == "name"}
        first = str(like.value).split()[0] if like else rng.choice(FIRST_NAMES)
        return f"{first} {rng.choice([name for name in LAST_NAMES if name not in taken])}"
    return _new_date(rng, {fact.value for fact in facts.values()}, like)


def _new_number(rng: random.Random, taken: set[Value]) -> int:
    """Three times in ten of two digits, else of three."""
    while True:
        number = rng.randint(10, 99) if rng.random() < 0.3 else rng.randint(100, 999)
        if number not in taken:
            return number


def _new_date(rng: random.Random, taken: set[Value], like: Fact | None) -> str:
    month = str(like.value).split()[1] if like else rng.choice(MONTHS)
    while True:
        date = f"{rng.randint(1, _LAST_DAY)} {month}"
        if date not in taken:
            return date


def _into_documents(rng: random.Random, facts: list[Fact]) -> tuple[Document, ...]:
    """Cuts the facts into up to five documents, each a run of at least one sentence."""
    num_documents = min(len(facts), rng.randint(2, 5))
    cuts = [0, *sorted(rng.sample(range(1, len(facts)), num_documents - 1)), len(facts)]
    runs = (facts[start:end] for start, end in itertools.pairwise(cuts))
    return tuple(
        Document(id=f"d{i}", text=" ".join(fact.statement() for fact in run)) for i, run in enumerate(runs, 1)
    )
