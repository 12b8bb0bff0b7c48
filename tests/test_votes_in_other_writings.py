"""Votes about numbers that say the same in another kind of writing, and those that do not."""

import pytest

from reward.claims.numbers.kind import Numbers
from reward.config import AuditConfig
from reward.types import Document, RagQuery


def is_borne_out(claim: str, vote: str) -> bool:
    """Whether a vote, read as the documents write, bears a claim of an answer out."""
    query = RagQuery(id="q", query="", documents=(Document(id="d", text=f"Es waren {vote}."),))
    numbers = Numbers(query, AuditConfig(), f"It was {claim}.")
    asked, answer = numbers.read(claim), numbers.read(vote, of_documents=True)
    assert asked is not None and answer is not None
    return numbers.bears_out(numbers.taken_as(answer, asked), asked)


@pytest.mark.parametrize(
    ("claim", "vote"),
    [
        ("three-quarters", "75%"),
        ("75%", "three-quarters"),
        ("40%", "two in five"),
        ("two in five", "40%"),
        ("a third", "33%"),
        ("33%", "one third"),
        ("nearly half", "48.6%"),
        ("12 days", "12 dagen"),
        ("2.5 million", "dos millones y medio"),
        ("7:30 pm", "19.30 Uhr"),
    ],
)
def test_the_same_in_another_writing_is_the_same_vote(claim: str, vote: str) -> None:
    assert is_borne_out(claim, vote)


@pytest.mark.parametrize(
    ("claim", "vote"),
    [
        ("three-quarters", "70%"),
        ("a third", "30%"),
        ("0.5", "50%"),  # a decimal says nothing of its own
        ("50%", "0.5"),
        ("10", "10%"),
        ("between 15 and 20", "17.5"),  # else a wide range would always hold
        ("over 270", "300"),
        ("12 days", "12 heures"),
        ("half an hour", "50%"),
    ],
)
def test_what_only_looks_like_it_is_another_vote(claim: str, vote: str) -> None:
    assert not is_borne_out(claim, vote)


@pytest.mark.parametrize(
    ("vote", "is_one"), [("1,700", True), ("1.700", False), ("1.7", False), ("1700", True)]
)
def test_a_vote_is_read_as_the_document_that_writes_the_same(vote: str, is_one: bool) -> None:
    texts = (
        "More than 1,700 people signed it at the town hall.",
        "Der Umsatz stieg um 4,3 % auf 1,5 Mrd. Euro.",
    )
    documents = tuple(Document(id=str(place), text=text) for place, text in enumerate(texts))
    query = RagQuery(id="q", query="How many were there in the town?", documents=documents)
    numbers = Numbers(query, AuditConfig(), "There were 1,700 in the town.")
    asked, answer = numbers.read("1,700"), numbers.read(vote, of_documents=True)
    assert asked is not None and answer is not None
    assert numbers.equal(answer, asked) is is_one
