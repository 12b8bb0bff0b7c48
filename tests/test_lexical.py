"""The audit without a model."""

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit, sentence_around
from reward.types import ClaimState, Document, Outcome, RagQuery

TEXT = 'The picnic raised 466 euros. Three guards came (12%), at 17:30.\n"price": 20, "weight": "5 kg"'
QUERY = RagQuery(
    id="q", query="How much?", documents=(Document(id="a", text="Other."), Document(id="b", text=TEXT))
)


@pytest.mark.parametrize(
    ("response", "missing"),
    [
        ("It raised 466 euros.", []),
        ("It raised 466.", []),
        ("It raised 467 euros.", ["467 euros"]),
        ("It raised $466.", ["$466"]),
        ("It rose 12%.", []),
        ("It rose $12.", ["$12"]),
        ("It cost $20 and 20%.", []),
        ("There were 3 guards.", []),
        ("At 5:30 pm and 5 p.m.", []),
        ("At 7:30 pm", ["7"]),
        ("It raised 466 and 50 and 51.", ["50", "51"]),
    ],
)
def test_each_number_is_looked_up(response: str, missing: list[str]) -> None:
    verdict = lexical_audit(QUERY, response, AuditConfig())
    absent = [c.claim.answer for c in verdict.claims if c.state is ClaimState.NOT_IN_DOCUMENTS]
    assert absent == missing
    assert verdict.outcome is (Outcome.REFUTED if missing else Outcome.SUPPORTED)
    assert verdict.reward == (-1.0 if missing else 0.0)
    assert len(verdict.claims) == verdict.num_numbers


def test_a_claim_shows_its_sentence_and_its_evidence() -> None:
    response = "Well. It raised 466 euros in July! Good."
    (claim,) = lexical_audit(QUERY, response, AuditConfig()).claims
    assert claim.claim.question == 'Where do the documents say "It raised 466 euros in July!"?'
    span = claim.claim.span
    assert span is not None
    assert response[span.start : span.end] == claim.claim.answer == "466 euros"
    (answer,) = claim.votes
    assert answer is not None
    assert (answer.evidence, answer.evidence_document) == ("The picnic raised 466 euros.", "b")
    assert answer.evidence in TEXT


def test_a_response_without_numbers_has_no_claims() -> None:
    verdict = lexical_audit(QUERY, "I do not know.", AuditConfig())
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.NO_CLAIMS, -1.0, "no_numbers")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_response_chars": 5}, "response_too_long"),
        ({"max_documents_chars": 5}, "documents_too_long"),
        ({"max_claims": 1}, "too_many_claims"),
    ],
)
def test_bounds_leave_it_unscored(settings: dict[str, int], reason: str) -> None:
    verdict = lexical_audit(QUERY, "It raised 466 and 12.", AuditConfig(**settings))
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, reason)


def test_a_sentence_is_bounded() -> None:
    text = "x" * 1000 + " 466 " + "y" * 1000
    assert len(sentence_around(text, 1001, 1004)) < 700
    assert sentence_around("A 3.5 b. C 4 d.\nE", 11, 12) == "C 4 d."
