"""A true sentence about another count than the query asks for is no answer to it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from reward.auditor import audit
from reward.config import AuditConfig
from reward.judging.query import uncounted
from reward.judging.unjudged import says_nothing
from reward.types import Document, Outcome, RagQuery, Verdict

T = TypeVar("T")
VILLAGE = "Chah-e Bagh is a village. At the 2006 census, its population was 274, in 61 families."
MATCH = "Ann scored 12 goals in 20 games, gave 5 assists and has 5 children: 3 sons and 2 daughters."


def asked(query: str, text: str = VILLAGE) -> RagQuery:
    return RagQuery(id="1", query=query, documents=(Document(id="d", text=text),))


def audited(query: RagQuery, answer: str, **settings: Any) -> Verdict:
    return asyncio.run(audit(query, answer, config=AuditConfig(**settings))).verdict


@pytest.mark.parametrize(
    ("query", "answer", "missed"),
    [
        ("How many families lived in Chah-e Bagh?", "The population of Chah-e Bagh was 274.", "families"),
        ("How many families lived in Chah-e Bagh?", "In Chah-e Bagh lived 274 people.", "families"),
        ("What was the population of Chah-e Bagh?", "There were 61 families in Chah-e Bagh.", "population"),
        ("How many people live there, and how many families?", "274 people live there.", "families"),
    ],
)
def test_what_is_not_counted_is_named(query: str, answer: str, missed: str) -> None:
    assert uncounted(asked(query), answer, AuditConfig()) == missed


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("How many families lived in Chah-e Bagh?", "There were 61 families."),
        ("How many families lived in Chah-e Bagh?", "There were 60 families."),  # wrong: the vote's business
        ("How many families lived in Chah-e Bagh?", "61."),
        ("How many families lived in Chah-e Bagh?", "It was 61 in 2006."),
        ("How many families lived in Chah-e Bagh?", "The documents do not say."),
        ("What was the population of Chah-e Bagh?", "It had 274 inhabitants."),
        ("What was the population of Chah-e Bagh?", "274 people in 61 families."),
        ("How many households were there?", "There were 61 families."),  # the documents count no households
        ("When was the census in Chah-e Bagh?", "61 families lived there in 2006."),
        ("What was the number of families?", "The number of families was 61."),
    ],
)
def test_what_answers_or_may_answer_is_left_alone(query: str, answer: str) -> None:
    assert uncounted(asked(query), answer, AuditConfig()) is None


@pytest.mark.parametrize(
    ("query", "answer", "missed"),
    [
        ("How many goals did Ann score?", "Ann gave 5 assists.", "goals"),
        ("How many games did Ann play?", "She played 20 matches.", None),  # the document's number for games
        ("How many children has Ann?", "Ann has 3 sons and 2 daughters.", "children"),  # left to say: five
        ("How many career goals did Ann score?", "Ann scored 12 goals.", None),
        ("How many total goals did Ann score?", "Ann gave 5 assists.", "total goals"),
        ("How many seasons did Ann play?", "Ann played 20 games.", None),  # the documents count no seasons
        ("How many children has Ann?", "Ann has 5: 3 sons and 2 daughters.", None),
        ("What are the goals of Ann?", "She gave 5 assists.", None),  # which ones, perhaps, and not how many
    ],
)
def test_other_words_for_the_same_number_are_an_answer(query: str, answer: str, missed: str | None) -> None:
    assert uncounted(asked(query, MATCH), answer, AuditConfig()) == missed


def test_a_supported_answer_is_refuted_and_the_verdict_says_why() -> None:
    query = asked("How many families lived in Chah-e Bagh?")
    verdict = audited(query, "The population of Chah-e Bagh was 274.")
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.REFUTED, -1.0, "other_count")
    assert "a number of families" in verdict.detail
    ignored = audited(query, "The population of Chah-e Bagh was 274.", refute_other_counts=False)
    assert ignored.outcome is Outcome.SUPPORTED
    assert audited(query, "In Chah-e Bagh lived 61 families.").outcome is Outcome.SUPPORTED


def test_what_the_claims_decide_stays() -> None:
    query = asked("How many families lived in Chah-e Bagh?")
    assert audited(query, "The population of Chah-e Bagh was 999.").reason == "not_in_documents"
    assert audited(query, "It was 274 people.", kinds=["name"]).outcome is Outcome.NO_CLAIMS


def test_documents_are_not_read_on_the_event_loop(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server answers others while the numbers of a long document, or of its query, are read."""
    threads: list[threading.Thread] = []

    def in_its_thread(function: Callable[..., T]) -> Callable[..., T]:
        def reading(*given: Any) -> T:
            threads.append(threading.current_thread())
            return function(*given)

        return reading

    monkeypatch.setattr("reward.auditor.says_nothing", in_its_thread(says_nothing))
    monkeypatch.setattr("reward.judging.query.uncounted", in_its_thread(uncounted))
    question = "- Question: What was the population of Chah-e Bagh? [Answer: 274]"
    vote = "1. Evidence: its population was 274 [Answer: 274]"
    query = asked("How many families lived in Chah-e Bagh?")
    config = AuditConfig(kinds=("number",), voters=3)
    answer = "The population of Chah-e Bagh was 274."
    result = asyncio.run(audit(query, answer, sampler=scripted([question, *[vote] * 3]), config=config))
    assert result.verdict.reason == "other_count"
    assert len(threads) == 2 and threading.main_thread() not in threads
