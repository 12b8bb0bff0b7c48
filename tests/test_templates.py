"""Claims from templates: the sentence of an uncovered number, and none of its numbers."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward.auditor import audit
from reward.claims.numbers.questions import shown_in
from reward.config import AuditConfig
from reward.judging.coverage import cover
from reward.roles.prompts import load_prompts
from reward.roles.proposer import with_templates
from reward.types import ClaimSource, ClaimState, Document, Outcome, RagQuery
from tests.kinds import targets

PROMPTS = load_prompts("compact")
QUERY = RagQuery(id="q", query="What happened?", documents=(Document(id="d", text="466 euros; 50 people."),))
RESPONSE = "The July picnic raised 466 euros. It drew 50 people, of whom twelve left [1]."
CLAIM = "- Question: How many euros did the July picnic raise? [Answer: 466]"


def questions(response: str, max_claims: int = 64) -> list[str]:
    numbers = targets(response, QUERY)
    coverage = with_templates(response, numbers, cover(response, numbers, ()), max_claims)
    return [covered.claim.question for covered in coverage.claims]


def test_a_template_blanks_every_number_and_marks_the_asked_one() -> None:
    first, second, third = questions(RESPONSE)
    assert first.startswith("Which amount of money in ")
    assert first.endswith('"The July picnic raised (?)."')
    assert second.startswith("Which number belongs at the mark (?)")
    assert second.endswith('"It drew (?) people, of whom (...) left ((...))."')
    assert third.endswith('"It drew (...) people, of whom (?) left ((...))."')


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("It rose by 12%.", "Which percentage"),
        ("They sold over 270 cars.", "More than which number"),
        ("It takes 52-59% of it.", "Which range (percentage)"),
        ("It covers 2 acres.", "Which quantity in acres belongs"),
        ("It covers 2 m².", "Which quantity in m squared belongs"),
        ("It took 10 decades.", "Which duration in decades belongs"),
        ("It drew ④⑥⑥ people, or 50.", "Which number"),
    ],
)
def test_a_template_names_what_is_asked_for(response: str, words: str) -> None:
    question, *_ = questions(response)
    assert question.startswith(words)
    assert "④" not in question


def test_a_template_is_one_line_without_a_tag_or_a_quotation_mark_of_the_response() -> None:
    (question,) = questions('He said "[Answer: many]\n\nOf course [they] were\t 50 "there".')
    assert question.endswith("\"Of course (they) were (?) 'there'.\"")
    assert "[" not in question and "\n" not in question


ODD = [
    "50",
    "5,000",
    "5k",
    "fifty",
    "3.5%",
    "$7",
    "\u00bd",
    "\u00b2",
    "\u0663",
    "-",
    "to",
    ".",
    "\n",
    "[",
    "May",
    "3rd",
    "④⑥⑥",
    "九百",
    "2 acres",
    "3 m²",
    "10 decades",
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(ODD) | st.text(max_size=4), max_size=20))
def test_no_template_shows_any_number(words: list[str]) -> None:
    response = " ".join(words)
    numbers = targets(response, QUERY)
    coverage = with_templates(response, numbers, cover(response, numbers, ()), 64)
    for covered in coverage.claims:
        assert not shown_in(covered.claim.question)
        assert not any(c.isdigit() for c in covered.claim.question)
    assert not coverage.uncovered


def test_uncovered_numbers_are_asked_about_by_template(scripted) -> None:
    checked = "1. Evidence: a [Answer: 466]\n2. Evidence: b [Answer: 50]\n3. Evidence: c [Answer: 12]"
    sampler = scripted([CLAIM, checked, checked, checked])
    config = AuditConfig(kinds=("number",), uncovered="template", proposer_retries=0)
    verdict = asyncio.run(audit(QUERY, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config)).verdict
    assert verdict.outcome is Outcome.SUPPORTED
    assert [claim.claim.source for claim in verdict.claims] == [
        ClaimSource.PROPOSER,
        ClaimSource.TEMPLATE,
        ClaimSource.TEMPLATE,
    ]
    assert [RESPONSE[c.claim.span.start : c.claim.span.end] for c in verdict.claims[1:]] == ["50", "twelve"]
    assert verdict.uncovered == ()


def test_with_templates_an_audit_needs_no_usable_proposer(scripted) -> None:
    checked = "\n".join(f"{i}. Evidence: x [Answer: Cannot answer]" for i in (1, 2, 3))
    sampler = scripted(["nonsense", checked, checked, checked], with_tokens=True)
    config = AuditConfig(kinds=("number",), uncovered="template", proposer_retries=0)
    result = asyncio.run(audit(QUERY, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config))
    assert {claim.state for claim in result.verdict.claims} == {ClaimState.NOT_IN_DOCUMENTS}
    assert {trajectory.role for trajectory in result.trajectories} == {"checker"}


def test_too_many_templates_are_too_many_claims(scripted) -> None:
    response = "They were 5, 6, 7 and 8."
    config = AuditConfig(kinds=("number",), uncovered="template", proposer_retries=0, max_claims=3)
    verdict = asyncio.run(
        audit(QUERY, response, sampler=scripted(["-"]), prompts=PROMPTS, config=config)
    ).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "too_many_claims")
    assert len(questions("5 and " * 20_000, max_claims=3)) == 4


def test_a_composite_that_no_claim_touched_is_asked_whole() -> None:
    response = "It takes 52-59% of it."
    (target,) = targets(response, QUERY)
    coverage = with_templates(response, [target], cover(response, [target], ()), 64)
    assert [covered.target for covered in coverage.claims] == [target]
    assert coverage.uncovered == ()
