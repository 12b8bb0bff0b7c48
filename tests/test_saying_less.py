"""An answer that mentions less than most answers to its query is paid as a refuted one."""

import pytest

from pipeline.settings.recipe import load_recipe
from reward.types import Claim, ClaimState, ClaimVerdict, Outcome

from tests.experience_rows import Experience, answer  # isort: skip
from pipeline.training.step_answers import refuse_less  # isort: skip


def said(reward: float | None, mentions: int, query: str = "q", *, claims: int | None = None) -> Experience:
    sample = answer(reward)
    claim = ClaimVerdict(claim=Claim(index=1, question="?", answer="1"), state=ClaimState.SUPPORTED)
    said = {"num_mentions": mentions, "claims": (claim,) * (mentions if claims is None else claims)}
    verdict = sample.rollout.verdict.model_copy(update=said)
    sample.rollout = sample.rollout.model_copy(update={"verdict": verdict, "query_id": query})
    return sample


def rewards(samples: list[Experience]) -> list[float]:
    return [float(sample.rewards.sum()) for sample in samples]


def test_the_few_that_say_less_are_paid_as_refuted() -> None:
    samples = [said(0.0, 4), said(0.0, 4), said(-1.0, 4), said(0.0, 2)]
    assert refuse_less(samples, reward=-1.0) == 1
    assert rewards(samples) == [0.0, 0.0, -1.0, -1.0]
    assert [sample.rollout.says_less for sample in samples] == [False, False, False, True]
    assert samples[3].rollout.verdict.reward == 0.0, "the verdict is the audit's"


def test_a_value_of_fewer_parts_is_said_and_not_less() -> None:
    """ "July 10, 1883" beside "1883-07-10"."""
    samples = [said(0.0, 3, claims=1), said(0.0, 3, claims=1), said(0.0, 3, claims=1), said(0.0, 2, claims=1)]
    assert refuse_less(samples, reward=-1.0) == 0


def test_saying_more_is_neither_paid_nor_punished() -> None:
    samples = [said(0.0, 2), said(0.0, 2), said(0.0, 2), said(0.0, 6)]
    assert refuse_less(samples, reward=-1.0) == 0 and rewards(samples) == [0.0] * 4


def test_where_half_of_the_answers_say_more_nobody_says_less() -> None:
    samples = [said(0.0, 2), said(0.0, 2), said(0.0, 3), said(-1.0, 9)]
    assert refuse_less(samples, reward=-1.0) == 0 and rewards(samples) == [0.0, 0.0, 0.0, -1.0]


def test_the_reward_is_that_of_a_refuted_answer_which_keeps_its_own() -> None:
    samples = [said(0.0, 4), said(0.0, 4), said(-0.5, 4), said(-0.5, 1), said(0.0, 1)]
    assert refuse_less(samples, reward=-0.5) == 1 and rewards(samples) == [0.0, 0.0, -0.5, -0.5, -0.5]


def test_what_is_masked_stays_masked_and_is_no_measure() -> None:
    samples = [said(None, 9), said(None, 9), said(None, 0), said(0.0, 2), said(0.0, 2), said(0.0, 1)]
    before = [sample.action_mask.clone() for sample in samples]
    assert refuse_less(samples, reward=-1.0) == 1, "most of the others mention 2"
    assert all((sample.action_mask == mask).all() for sample, mask in zip(samples, before, strict=True))
    assert [sample.rollout.says_less for sample in samples] == [*[False] * 5, True]


def test_an_answer_too_old_to_be_trained_is_no_measure() -> None:
    samples = [said(0.0, 9), said(0.0, 9), said(0.0, 2)]
    for stale in samples[:2]:
        stale.action_mask = stale.action_mask.new_zeros(stale.action_mask.shape)
    assert refuse_less(samples, reward=-1.0) == 0


def test_an_abstention_that_has_a_reward_of_its_own_keeps_it() -> None:
    samples = [said(0.0, 4), said(0.0, 4), said(-0.5, 0)]
    verdict = samples[2].rollout.verdict.model_copy(update={"outcome": Outcome.NO_CLAIMS})
    samples[2].rollout = samples[2].rollout.model_copy(update={"verdict": verdict})
    assert refuse_less(samples, reward=-1.0) == 0 and rewards(samples) == [0.0, 0.0, -0.5]


def test_queries_are_apart_and_a_single_answer_is_its_own_measure() -> None:
    samples = [said(0.0, 1, "a"), said(0.0, 1, "a"), said(0.0, 5, "b"), said(0.0, 1, "c")]
    assert refuse_less(samples, reward=-1.0) == 0


@pytest.mark.parametrize(("name", "expected"), [("smollm2", True), ("tiny", False)])
def test_it_is_on_in_march(name: str, expected: bool) -> None:
    assert load_recipe(name).ppo.refuse_saying_less is expected


def test_one_answer_to_a_query_cannot_say_less_than_the_others() -> None:
    with pytest.raises(ValueError, match=r"samples_per_query: 1, but ppo.refuse_saying_less compares"):
        load_recipe("tiny", ["ppo.refuse_saying_less=true", "rollout.samples_per_query=1"])
