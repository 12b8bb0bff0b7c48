"""The truth of the tiny world, read back out of the documents: of any row, wherever it was stored.

It is for monitoring only and never a reward: the point of the method is to learn without it. An abstention is
right if and only if the documents hold nothing that is asked.
"""

from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings
from pipeline.tiny.facts import (
    ABSTENTION,
    Fact,
    FactKey,
    FoundValue,
    Value,
    find_values,
    read_facts,
    read_questions,
)
from pipeline.tiny.words import MONTHS
from pipeline.tiny.world import World, sample_worlds
from pipeline.worlds.world import Asked, Judgement, StatedValue, WorldRow
from reward.types import RagQuery

_SAYS_NOTHING = ABSTENTION.removesuffix(".").casefold()


def judge(query: RagQuery, response: str) -> Judgement:
    """Judges a response by the documents of any row of this world, which are read back into facts."""
    truth, asked = truth_of(query), read_questions(query.query)
    values = tuple(_marked(found, truth) for found in find_values(response))
    stated = read_facts(response)
    abstained = not values and _SAYS_NOTHING in response.casefold()
    answerable = not asked or any(key in truth for key in asked)
    is_whole = {one.key for one in stated} >= set(asked) and len(values) == len(set(asked))
    faithful = (bool(values) and all(one.is_true for one in values)) or (abstained and not answerable)
    return Judgement(
        right=faithful and (is_whole or abstained),
        faithful=faithful,
        stated=tuple(any(one.key == key and one.value == truth.get(key) for one in stated) for key in asked),
        abstained=abstained,
        answerable=answerable,
        values=values,
    )


def true_answer(query: RagQuery, question: str) -> str | None:
    """Returns the value that the documents give for a question of this world; None when they hold none."""
    keys = read_questions(question)
    value = truth_of(query).get(keys[0]) if keys else None
    return None if value is None else str(value)


def is_written(consensus: str | None, value: str) -> bool:
    """Whether a consensus is a value of this world; the audit may write a day in ISO's form, "--03-14"."""
    day, _, month = value.partition(" ")
    iso = f"--{MONTHS.index(month) + 1:02}-{int(day):02}" if month in MONTHS else value
    return consensus in (value, iso)


def truth_of(query: RagQuery) -> dict[FactKey, Value]:
    """The value of each key that the documents of a row hold."""
    return {fact.key: fact.value for document in query.documents for fact in read_facts(document.text)}


def _marked(found: FoundValue, truth: dict[FactKey, Value]) -> StatedValue:
    value = truth.get(found.fact.key) if found.fact else None
    is_true = found.fact is not None and value == found.fact.value
    return StatedValue(
        start=found.start, end=found.end, is_true=is_true, truth=None if value is None else str(value)
    )


def held_out_rows(num_rows: int, seed: int, settings: WorldSettings = PLAIN_WORLD) -> list[WorldRow]:
    """Drawn rows, whose events and places are in none that are trained on; equal draws give equal rows."""
    drawn = sample_worlds(num_rows, seed, "held_out", settings)
    return [WorldRow(query=one.query, asked=tuple(_asked(fact, one) for fact in one.asked)) for one in drawn]


def _asked(fact: Fact, world: World) -> Asked:
    homes = (one.id for one in world.query.documents if fact.statement() in one.text)
    return Asked(
        question=fact.question(),
        subject=" ".join(fact.key[:3]),
        kind=fact.kind,
        value=str(fact.value) if world.is_answerable else None,
        relation=fact.key[3],
        document=next(homes, ""),
    )
