"""Stars and reviews: a rating must be the one of the thing that it is given to.

Business data hold an overall rating (`"business_stars": 3.5`) beside those of single reviews
(`"review_stars": 4.0`), so "an average rating of 4.0" finds its number in the document and is wrong all the
same. The number of reviews is that of the ratings in the document; data that show three reviews support
neither "over 30 reviews" nor "70".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from reward.checks.check import Check, Found
from reward.claims.numbers import Form, Kind, Number
from reward.claims.text import sentence_span
from reward.types import ClaimState, Document

_FIELD = re.compile(
    r"""["'](?P<key>\w*(?:stars?|ratings?|score))["']\s*:\s*["']?(?P<value>\d{1,2}(?:\.\d{1,2})?)(?![\w.])""",
    re.IGNORECASE,
)
_AFTER = re.compile(r"(?:\s|-)?(?:stars?\b|(?:/|\s?out of\s?)(?:five|ten|5|10)\b)", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:ratings?|rated|stars?|scored?)(?: (?:is|of|at|as|being|it))?:?[ *_]{0,4}$", re.IGNORECASE
)
_OVERALL = re.compile(r"\b(?:average|overall|business(?: star)? rating|business stars)\b", re.IGNORECASE)
_GIVER = re.compile(
    r"\b(?:reviews?|reviewers?|customers?|patrons?|diners?|guests?|visitors?|one|another|third|second|first|gave"
    r"|giving|left|awarded|rang(?:e|es|ing)|they)\b",
    re.IGNORECASE,
)
_OF_REVIEW = re.compile(
    r"[- ]star review\b(?! (?:rating|score|average))", re.IGNORECASE
)  # "a four-star review"
_REVIEWS = re.compile(r"\s(?:\w+\s)?(?:reviews|ratings|reviewers)\b", re.IGNORECASE)
_REACH = 90  # characters before a rating that say whose it is


@dataclass(frozen=True)
class Rating:
    """One rating field, `document.text[start:end]` being its value."""

    document: Document
    value: Decimal
    overall: bool
    start: int
    end: int


class RatingsCheck(Check):
    """Is it the rating of the business, or that of a review, or the number of reviews?"""

    @cached_property
    def _ratings(self) -> list[Rating]:
        return find_ratings(self.query.documents)

    def find(self, number: Number) -> Found | None:
        if not self._ratings:
            return None
        found = _review_count(self.response, number, self._ratings)
        return found or _rating(self.response, number, self._ratings)


def find_ratings(documents: Sequence[Document]) -> list[Rating]:
    """The rating fields of the documents, as JSON or as Python writes them."""
    return [
        Rating(
            document,
            Decimal(field["value"]),
            overall=not field["key"].lower().startswith("review"),
            start=field.start("value"),
            end=field.end("value"),
        )
        for document in documents
        for field in _FIELD.finditer(document.text)
    ]


def _rating(response: str, number: Number, ratings: Sequence[Rating]) -> Found | None:
    """Holds a number of a response against the documents' ratings; None when it is no rating.

    An overall rating is looked for among the overall ones; a rating that a reviewer gives, or that says
    nothing of its kind, among all of them.
    """
    clause, _ = sentence_span(response, number.start, number.start, reach=_REACH)
    before = response[clause : number.start]
    if not _is_rating(response, number, ratings, before):
        return None
    overall = [rating for rating in ratings if rating.overall]
    is_of_review = _OF_REVIEW.match(response, number.end) and _last(_OVERALL, before) < 0
    strict = bool(overall) and not is_of_review and _last(_OVERALL, before) >= _last(_GIVER, before)
    candidates = overall if strict else ratings
    ends = number.atoms if number.form is Form.RANGE else number.atoms[:1]
    fitting = [next((rating for rating in candidates if rating.value == end.value), None) for end in ends]
    if fitting[0] is not None and all(fitting):
        return _found(ClaimState.SUPPORTED, fitting[0])
    other = (overall or ratings)[0]
    return replace(_found(ClaimState.CONTRADICTED, other), instead=f"{other.value}")


def _review_count(response: str, number: Number, ratings: Sequence[Rating]) -> Found | None:
    """Holds "N reviews" against the number of reviews in the documents; None when it is no such number."""
    reviews = [rating for rating in ratings if not rating.overall]
    if not reviews or not _REVIEWS.match(response, number.end):
        return None
    if number.value == len(reviews):
        return _found(ClaimState.SUPPORTED, reviews[0])
    return Found(ClaimState.NOT_IN_DOCUMENTS)


def _found(state: ClaimState, rating: Rating) -> Found:
    return Found(state, rating.document, rating.start, rating.end)


def _is_rating(response: str, number: Number, ratings: Sequence[Rating], before: str) -> bool:
    """Whether a number is written as a rating on the scale of the documents' ratings."""
    scale = 5 if all(rating.value <= 5 for rating in ratings) else 10
    first = number.atoms[0]
    if first.value > scale or (number.kind is Kind.RATIO and number.values[-1] != scale):
        return False
    after = _AFTER.match(response, first.end) or _AFTER.match(response, number.end)
    return after is not None or _BEFORE.search(before) is not None


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match begins; -1 without one."""
    return max((match.start() for match in pattern.finditer(text)), default=-1)
