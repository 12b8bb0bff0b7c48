"""The oracle of the tiny world: the truth of an answer, read back out of the documents.

It can judge any row, wherever it was stored. It is for monitoring only and never a reward: the point of the
method is to learn without it. An abstention is right if and only if the documents hold nothing that is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.tiny.facts import ABSTENTION, FactKey, Value, find_values, read_facts, read_questions
from pipeline.tiny.words import MONTHS
from reward.types import RagQuery

_SAYS_NOTHING = ABSTENTION.removesuffix(".").casefold()


@dataclass(frozen=True)
class OracleFigures:
    """What the documents say about one response."""

    faithful: bool  # each value is in a sentence that the documents hold; or a right abstention
    num_values: int  # numbers, names and dates
    num_right: int  # values in such a sentence
    coverage: float  # share of the asked items that the response makes a statement about, in [0, 1]
    empty: bool  # no value at all
    abstained: bool  # no value, and it says that the documents do not say
    answerable: bool  # the documents hold something that is asked
    right: bool  # each asked item and nothing else, all true; or a right abstention


def oracle(query: RagQuery, response: str) -> OracleFigures:
    """Judges a response by the documents; for monitoring only, never a reward.

    Args:
        query: Any row of this world; its documents are read back into facts.
        response: What a Solver wrote.
    """
    truth = truth_of(query)
    asked = set(read_questions(query.query))
    values = find_values(response)
    stated = [found.fact for found in values if found.fact is not None]
    num_values = len(values)
    num_right = sum(truth.get(fact.key) == fact.value for fact in stated)
    covered = asked & {fact.key for fact in stated}
    abstained = num_values == 0 and _SAYS_NOTHING in response.casefold()
    answerable = not asked or bool(asked & truth.keys())
    is_whole = covered == asked and num_values == len(asked)
    faithful = (num_values > 0 and num_right == num_values) or (abstained and not answerable)
    return OracleFigures(
        faithful=faithful,
        num_values=num_values,
        num_right=num_right,
        coverage=len(covered) / len(asked) if asked else 0.0,
        empty=num_values == 0,
        abstained=abstained,
        answerable=answerable,
        right=faithful and (is_whole or abstained),
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
