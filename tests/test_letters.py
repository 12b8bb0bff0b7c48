"""Texts as their readers see them: no spelling hides a name or a number from the audit."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.auditor import audit, audit_by_lookup
from reward.claims.letters import seen
from reward.config import AuditConfig
from reward.types import Document, Outcome, RagQuery

FAIR = RagQuery(
    id="1",
    query="What about the fair?",
    documents=(Document(id="a", text="50 people came to the fair in Berlin."),),
)
BORIS = (
    "B\u200boris",  # a space of no width
    "\U0001d401\U0001d428\U0001d42b\U0001d422\U0001d42c",  # mathematical bold
    "\uff22\uff4f\uff52\uff49\uff53",  # full width
    "\U0001f171\U0001f17e\U0001f181\U0001f178\U0001f182",  # negative squares
    "B\u1d0f\u0280\u026as",  # small capitals
    "\u0412oris",  # Cyrillic
    "\u0392oris",  # Greek
    "B\u0301oris",  # a mark that no such letter has
    "_Boris_",
    "B**oris**",
)
NINE = (
    "n\u0456n\u0435",
    "\u24dd\u24d8\u24dd\u24d4",
    "n\u0131ne",
    "nin**e**",
    "n*i*ne",
    "n-i-n-e",
    "n\u00adine",
)
SIXTY = ("6\ufe0f\u20e30\ufe0f\u20e3", "6**0**", "6`0`", "6\u31640", "6\u03000\u0300")


@pytest.mark.parametrize("name", BORIS)
def test_a_name_in_any_letters_is_one(name: str) -> None:
    assert seen(name).text.strip().lower() == "boris"
    verdict = audit_by_lookup(FAIR, f"50 people came to the fair in Berlin, which {name} Johnson opened.")
    assert verdict.outcome is Outcome.REFUTED


@pytest.mark.parametrize("number", [*NINE, *SIXTY, "\U0001f51f"])
def test_a_number_in_any_letters_is_one(number: str) -> None:
    documents = (Document(id="a", text="50 people came to the fair in Berlin by 6 buses and 0 trams."),)
    query = FAIR.model_copy(update={"documents": documents})
    assert audit_by_lookup(query, f"50 people came to the fair by {number} trams.").outcome is Outcome.REFUTED


@pytest.mark.parametrize("name", BORIS)
def test_a_right_answer_is_right_in_any_letters(name: str) -> None:
    documents = (Document(id="a", text="Boris Johnson opened the fair."),)
    query = FAIR.model_copy(update={"documents": documents})
    [claim] = audit_by_lookup(query, f"{name} Johnson opened it.").claims
    assert claim.state == "supported"
    query = FAIR.model_copy(update={"documents": (Document(id="a", text=f"{name} Johnson opened it."),)})
    assert audit_by_lookup(query, f"{name} Johnson opened it.").outcome is Outcome.SUPPORTED


def test_claims_are_where_the_response_has_them() -> None:
    thought = "<think>n\u0435ver</think> "
    response = f"{thought}It was B\u200boris J\u200bohnson in \u2168 BC, with 6**0** trams."
    claims = audit_by_lookup(FAIR, response, AuditConfig(thinking=True)).claims
    places = [response[one.claim.span.start : one.claim.span.end] for one in claims if one.claim.span]
    assert places[0] == "B\u200boris J\u200bohnson"
    assert "6**0**" in places


@pytest.mark.parametrize(
    "text",
    [
        "\u0420\u043e\u0441\u0441\u0438\u044f, BBC \u0438 IT-\u043c\u0438\u0440",
        "5 \u03bcg of TNF\u03b1 at 3 k\u03a9, IL1\u03b2, 20℃, №5, Apple™, 1º, 2ª, km², ½",
        "max_tokens 2*3*4 5 * 3 **bold** *slanted* a-b 3-4-5 A-B-C",
        "Größe, Şişli, Dvořák, naïve café, \u0395\u03bb\u03bb\u03ac\u03b4\u03b1",
        "東京で５０人, 九百",
    ],
)
def test_what_is_written_as_it_is_meant_stays(text: str) -> None:
    assert seen(text).text == text


@pytest.mark.parametrize("name", BORIS)
def test_a_question_gives_no_name_away_in_other_letters(name: str, scripted: Any) -> None:
    claim = f"- Question: Who is it that opened the fair ({name} Johnson)? [Answer: Boris Johnson]"
    config = AuditConfig(prompts="compact", kinds=("name",))
    sampler = scripted([claim] * 8)
    asyncio.run(audit(FAIR, "Boris Johnson opened the fair.", sampler=sampler, config=config))
    roles = {one.messages[0]["content"] for one in sampler.requests}
    assert roles == {"proposer"}, "no Checker is asked that"


def test_evidence_is_where_the_document_has_it() -> None:
    text = "At the fair: B\u00adoris J\u200bohnson with 5**0** trams."
    query = FAIR.model_copy(update={"documents": (Document(id="a", text=text),)})
    verdict = audit_by_lookup(query, "Boris Johnson came with 50 trams.")
    spans = [vote.evidence_at for one in verdict.claims for vote in one.votes if vote and vote.evidence_at]
    assert verdict.outcome is Outcome.SUPPORTED
    assert [text[span.start : span.end] for span in spans] == [text, text]


def test_a_response_that_shows_its_characters_in_another_order_is_not_scored() -> None:
    verdict = audit_by_lookup(FAIR, "50 people came, by \u202e06\u202c trams.")
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "invalid_text")


ODD = st.text(
    st.sampled_from([*"aB5 _*`-.\n", *"\u0435\u200b\u0301\u2168\ufb01\U0001d401\u1d0f\U0001f51f\u0131\u0410"])
)


@given(ODD)
def test_each_character_has_its_place_in_the_text(text: str) -> None:
    once = seen(text)
    places = [(once.start(at), once.end(at + 1)) for at in range(len(once.text))]
    assert all(low < high <= len(text) for low, high in places)
    assert places == sorted(places)


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "Zs"], max_codepoint=0x24F)))
def test_latin_letters_with_their_marks_are_themselves(text: str) -> None:
    text = text.replace("\u0131", "i")
    assert seen(unicodedata.normalize("NFD", text)).text == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "piece", ["n*", "`a", "**a", "a\u0301", "a-", "_", "\u200b", "\u0435", "a\u0435 ", "a*b", "\u24dd"]
)
def test_time_is_linear(piece: str) -> None:
    started = time.process_time()
    seen(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("document", "answer", "outcome"),
    [
        ("It rained in 1950.", "It rained in 1950. The answer is d'Budapest.", Outcome.REFUTED),
        ("Paul Roux est né en 1950 au Portugal.", "Paul Roux, né en 1950, vient d'Italie.", Outcome.REFUTED),
        (
            "Paul Roux est né en 1950 en Italie.",
            "Paul Roux, né en 1950, vient d\u2019Italie.",
            Outcome.SUPPORTED,
        ),
        ("Il est né dans l'Autriche.", "Il est né en Autriche.", Outcome.SUPPORTED),
        ("D'Artagnan is the hero.", "The hero is d'Artagnan.", Outcome.SUPPORTED),
        ("She works for L'Oréal.", "She works for L'Oréal.", Outcome.SUPPORTED),
        ("She met Sean O'Brien.", "She met Sean O'Brien.", Outcome.SUPPORTED),
    ],
)
def test_a_name_behind_an_elision_is_one(document: str, answer: str, outcome: Outcome) -> None:
    query = FAIR.model_copy(update={"documents": (Document(id="a", text=document),)})
    assert audit_by_lookup(query, answer).outcome is outcome


def test_a_checker_may_quote_an_elision_as_it_was_written(scripted: Any) -> None:
    query = FAIR.model_copy(update={"documents": (Document(id="a", text="Il est né dans l'Autriche."),)})
    claim = "- Question: Dans quel pays est-il né? [Answer: Autriche]"
    vote = "1. Evidence: Il est né dans l'Autriche. [Answer: Autriche]"
    config = AuditConfig(prompts="compact", kinds=("name",), verbatim_evidence=True)
    sampler = scripted([claim, vote, vote, vote])
    found = asyncio.run(audit(query, "Il est né dans l'Autriche.", sampler=sampler, config=config)).verdict
    assert found.outcome is Outcome.SUPPORTED
    at = found.claims[0].votes[0].evidence_at
    assert at is not None and (at.start, at.end) == (0, 26)
