"""Whether an answer is right by answers that are known: of a user's own rows, which no world has made.

accepted          answer                                                right
10 July 1883      She was born on July 10, 1883.                        yes
1883              She was born on July 10, 1883.                        yes: it says more exactly the same
10 July 1883      She was born in 1883.                                 no: less exactly
50                50 or 60 people came.                                 no: another number beside it
Anna Berg         anna berg led them.                                   yes
yes               Yes, they came.                                       yes: no claim, so by its words
no                There is no mention of it.                            no: an abstention
"""

import re
from collections.abc import Sequence

from pipeline.worlds.world import ALL_KINDS
from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.claims.numbers.dates import looks_like_year
from reward.judging.unjudged import abstains, says_nothing
from reward.types import RagQuery


def is_right(query: RagQuery, answer: str, accepted: Sequence[str]) -> bool | None:
    """Whether an answer states one of the accepted ones; a number or date, and no other one of its kind.

    Numbers and dates that the query gives may stand beside it. Where the query is known to be unanswerable,
    whether the answer says so and nothing else.

    `answer` is without any thought before it; `accepted` are several ways to write the one answer. None where
    no answer is known.
    """
    if not accepted and not query.unanswerable:
        return None
    kinds = kinds_for(ALL_KINDS, query, answer)
    values = targets_of(answer, kinds)
    if query.unanswerable:
        return abstains(answer) and says_nothing(query, answer, values)
    if abstains(answer) and says_nothing(query, answer, values) and not _opens(answer, accepted):
        return False  # "there is no mention of it" says no "no"
    given = targets_of(query.query, kinds)
    return any(_states(answer, values, one, targets_of(one, kinds), given) for one in accepted)


def _states(
    answer: str, values: Sequence[Target], accepted: str, wanted: Sequence[Target], given: Sequence[Target]
) -> bool:
    denied = r"(?:\b(?:not|never)|n['\u2019]t) (?!only\b)(?:(?!\bbut\b)[^.;,!?]){0,40}?"
    if not _is_choice(accepted) and re.search(rf"{denied}\b{_words(accepted)}", answer, re.IGNORECASE):
        return False
    if all(one.kind.name == "name" for one in wanted) and _has_words(answer, accepted):
        return True
    stated = [value for value in values if any(_says(value, one) for one in wanted)]
    beside = [
        value for value in values if value not in stated and not any(_says(one, value) for one in given)
    ]
    is_whole = bool(wanted) and all(any(_says(value, one) for value in stated) for one in wanted)
    exact = {one.kind.name for one in stated} - {"name"}
    return is_whole and not any(one.kind.name in exact for one in beside)


def _says(value: Target, wanted: Target) -> bool:
    """Whether a value is the wanted one, or the same more exactly; four bare digits may be a year."""
    kind = value.kind
    is_year = wanted.kind.name == "number" and looks_like_year(wanted.mention)
    if not (kind.name == wanted.kind.name or (kind.name == "date" and is_year)):
        return False
    meant = kind.taken_as(wanted.mention, value.mention)
    return kind.equal(meant, value.mention) or kind.bears_out(value.mention, meant)


def _has_words(answer: str, accepted: str) -> bool:
    """Whether an answer says the words; a yes or no comes first."""
    before = r"(?:\A\W*|\banswer\W+(?:is\W+)?)" if _is_choice(accepted) else r"(?<!\w)"
    return re.search(f"{before}{_words(accepted)}", answer, re.IGNORECASE) is not None


def _is_choice(accepted: str) -> bool:
    return accepted.strip().casefold().rstrip(".") in ("yes", "no")


def _opens(answer: str, accepted: Sequence[str]) -> bool:
    """Whether an answer begins with an accepted yes or no as a clause of its own: "No, they are not."."""
    return any(
        _is_choice(one) and re.match(rf"\W*{_words(one)}\s*(?:[,.;:!]|\Z)", answer, re.IGNORECASE)
        for one in accepted
    )


def _words(accepted: str) -> str:
    return r"\s+".join(map(re.escape, accepted.split())) + r"(?!\w)"
