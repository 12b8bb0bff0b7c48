"""What is known of a query from which the answering document was taken away, and whom it pays."""

import asyncio
from typing import Any

import pytest

from pipeline.demo.evaluate import setup_for
from pipeline.settings.recipe import load_recipe
from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.wiki.world import WikiWorld
from reward.auditor import audit
from reward.claims import kinds_for, targets_of
from reward.config import AuditConfig
from reward.judging.unjudged import abstains, says_nothing
from reward.roles.prompts import load_prompts
from reward.samplers import SamplerError
from reward.types import AuditResult, Document, Outcome, RagQuery, Role

PROMPTS = load_prompts("compact")
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
FOUND = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"
CANNOT = "1. Evidence: None [Answer: Cannot answer]"
ANSWER = "The July picnic in Kabul raised 466 euros."
ABSTENTION = "The documents do not say."


@pytest.fixture
def taken_away(picnic: RagQuery) -> RagQuery:
    return picnic.model_copy(update={"unanswerable": True})


def run(query: RagQuery, response: str, sampler: Any = None, **settings: Any) -> AuditResult:
    config = AuditConfig(**{"kinds": ["number"], "voters": 3, **settings})
    return asyncio.run(audit(query, response, sampler=sampler, prompts=PROMPTS, config=config))


def said(result: AuditResult) -> tuple[Any, ...]:
    verdict = result.verdict
    return verdict.outcome, verdict.reward, verdict.reason


def test_claims_that_the_check_supports_are_refuted(
    scripted: Any, picnic: RagQuery, taken_away: RagQuery
) -> None:
    replies = [CLAIM, *[FOUND] * 3]
    assert said(run(picnic, ANSWER, scripted(replies))) == (Outcome.SUPPORTED, 0.0, "supported")
    result = run(taken_away, ANSWER, scripted(replies))
    assert said(result) == (Outcome.REFUTED, -1.0, "unanswerable")
    assert "known not to answer" in result.verdict.detail
    assert said(run(taken_away, ANSWER)) == (Outcome.REFUTED, -1.0, "unanswerable"), "without a model too"
    ignored = run(taken_away, ANSWER, scripted(replies), refute_unanswerable=False)
    assert said(ignored) == (Outcome.SUPPORTED, 0.0, "supported")


def test_what_an_abstention_is_worth_is_a_setting(
    scripted: Any, picnic: RagQuery, taken_away: RagQuery
) -> None:
    assert said(run(picnic, ABSTENTION, scripted([]))) == (Outcome.NO_CLAIMS, None, "abstention")
    assert said(run(taken_away, ABSTENTION, scripted([]))) == (Outcome.NO_CLAIMS, None, "abstention")
    paid = {"reward_right_abstention": -0.25, "reward_abstention": -0.5}
    assert said(run(taken_away, ABSTENTION, scripted([]), **paid)) == (Outcome.NO_CLAIMS, -0.25, "abstention")
    assert said(run(picnic, ABSTENTION, scripted([]), **paid)) == (Outcome.NO_CLAIMS, -0.5, "abstention")
    assert said(run(taken_away, "It is a picnic.", scripted([]))) == (Outcome.NO_CLAIMS, None, "no_claims")


def test_a_failure_is_no_reward_and_no_punishment(scripted: Any, taken_away: RagQuery) -> None:
    result = run(taken_away, ANSWER, scripted([CLAIM, SamplerError("engine", "gone")]))
    assert result.verdict.outcome is Outcome.UNSCORED and result.verdict.reward is None


def test_a_voter_is_paid_for_not_answering(scripted: Any, picnic: RagQuery, taken_away: RagQuery) -> None:
    texts = [CLAIM, FOUND, CANNOT, "nonsense"]

    def paid(query: RagQuery) -> list[float | None]:
        turns = run(query, ANSWER, scripted(texts, with_tokens=True)).trajectories
        checkers = [turn for turn in turns if turn.role is Role.CHECKER]
        assert [turn.answer_rewards for turn in checkers[:2]] == [(one.own_reward,) for one in checkers[:2]]
        assert [turn.unreadable for turn in checkers] == [False, False, True]
        return [turn.own_reward for turn in checkers]

    assert paid(picnic) == [0.0, -1.0, -1.0]
    assert paid(taken_away) == [-1.0, 0.0, -1.0]


def test_a_voter_that_invents_evidence_has_answered_and_is_not_paid(
    scripted: Any, picnic: RagQuery, taken_away: RagQuery
) -> None:
    """Evidence that is in no document counts against a claim, and is not paid like "cannot answer"."""
    texts = [CLAIM, CANNOT, "1. Evidence: The picnic raised 900 euros in all. [Answer: 900]", FOUND]

    def paid(query: RagQuery) -> list[float | None]:
        result = run(query, ANSWER, scripted(texts, with_tokens=True), verbatim_evidence=True)
        return [turn.own_reward for turn in result.trajectories if turn.role is Role.CHECKER]

    assert paid(taken_away) == [0.0, -1.0, -1.0]
    assert paid(picnic) == [-1.0, -1.0, 0.0]
    result = run(taken_away, ANSWER, scripted(texts), verbatim_evidence=True)
    cannot, invented, found = result.verdict.claims[0].votes
    assert [vote.value for vote in (cannot, invented, found) if vote] == [None, None, "466"]
    assert [vote.unproven for vote in (cannot, invented, found) if vote] == [None, "900", None]


def test_the_world_of_real_text_knows_its_own() -> None:
    rows = WikiWorld(WikiSettings(kinds=("number", "date"), unanswerable_share=0.2)).rows("held_out")
    assert {row.query.unanswerable for row in rows} == {True, False}
    assert all(row.query.unanswerable is not row.is_answerable for row in rows)


def test_what_measures_a_model_does_not_use_it() -> None:
    recipe = load_recipe("smollm2")
    assert recipe.audit.refute_unanswerable
    assert not setup_for(recipe, "any").audit.refute_unanswerable


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("The documents say nothing about it.", True),
        ("None of the documents answers this.", True),
        ("It is not known.", True),
        ("Unknown.", True),
        ("It is not known as a town but as a city.", False),
        ("None of them came.", False),
    ],
)
def test_ordinary_abstentions_are_seen(text: str, is_one: bool) -> None:
    assert abstains(text) is is_one


@pytest.mark.parametrize(
    ("response", "chooses"),
    [
        ("Marnie. I am unable to say more.", True),
        ("It is Marnie. There is no data against it.", True),
        ("The documents do not say whether Lola or Marnie came out first.", False),
        ("I cannot determine which of Lola and Marnie was first.", False),
        ("The documents do not mention Marnie.", False),
    ],
)
def test_a_choice_is_no_abstention_whatever_is_added(response: str, chooses: bool) -> None:
    """Masked, a guess would cost nothing."""
    films = (Document(id="a", text="Lola came out in 1961. Marnie came out in 1964."),)
    query = RagQuery(id="1", query="Which film came out first, Lola or Marnie?", documents=films)
    targets = targets_of(response, kinds_for(AuditConfig(kinds=("number", "name", "date")), query, response))
    assert targets and says_nothing(query, response, targets) is not chooses
