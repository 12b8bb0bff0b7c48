"""Ratings and reviews: a true number that is said of the wrong thing."""

import json

import pytest

from reward.config import AuditConfig, CheckName
from reward.lexical import lexical_audit
from reward.types import ClaimState, Document, RagQuery

CONFIG = AuditConfig(kinds=("number",), checks=(CheckName.RATINGS,))
INFO = {
    "name": "Cafe",
    "business_stars": 3.5,
    "review_info": [
        {"review_stars": 4.0, "review_text": "Good."},
        {"review_stars": 1.0, "review_text": "Bad. I give the soup 9/10."},
        {"review_stars": 5.0, "review_text": "Great."},
    ],
}
QUERY = RagQuery(id="1", query="Describe it.", documents=(Document(id="a", text=json.dumps(INFO)),))


def states(response: str) -> list[ClaimState]:
    return [claim.state for claim in lexical_audit(QUERY, response, CONFIG).claims]


@pytest.mark.parametrize(
    "response",
    [
        "It has a rating of 3.5 stars.",
        "With an average rating of 3.5 out of 5 stars, it is mixed.",
        "It holds a 3.5-star rating.",
        "Despite this, it received a four-star review from a local.",
        "Business Stars: 3.5",
        "One customer gave it 4.0 stars.",
        "Ratings range from 1.0 to 5.0 stars.",
        "Another praised it in a 5-star review.",
        "It was rated 3.5 stars based on 3 reviews.",
        "A reviewer gave the soup 9/10.",
    ],
)
def test_ratings_of_what_they_are_said_of(response: str) -> None:
    found = states(response)
    assert found
    assert set(found) == {ClaimState.SUPPORTED}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("It has an average rating of 4.0 stars.", ClaimState.CONTRADICTED),  # that is one review's
        ("The cafe has a 4-star rating.", ClaimState.CONTRADICTED),
        ("One customer gave it 2 stars.", ClaimState.CONTRADICTED),
        ("It has over 30 reviews.", ClaimState.NOT_IN_DOCUMENTS),
        ("It has 5 reviews.", ClaimState.NOT_IN_DOCUMENTS),
    ],
)
def test_ratings_of_something_else_are_refuted(response: str, expected: ClaimState) -> None:
    assert states(response) == [expected]


def test_a_contradicted_rating_points_at_the_field_that_holds_another() -> None:
    (claim,) = lexical_audit(QUERY, "The overall rating is 4.0 stars.", CONFIG).claims
    (vote,) = claim.votes
    assert claim.consensus == "3.5"
    assert vote is not None
    assert vote.evidence_at is not None
    assert "3.5" in vote.evidence
