"""The evaluation against ground truth, on scripted policies whose figures are known beforehand."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pipeline.demo.evaluate import _clusters, evaluate_with, main, rows_of, setup_for
from pipeline.demo.evaluation import NUM_EXAMPLES, Evaluation, EvaluationSetup, difference, rate, ratio
from pipeline.settings.recipe import load_recipe
from pipeline.tiny.demonstrations import write_answer, write_check, write_claims
from pipeline.tiny.facts import read_facts
from pipeline.tiny.world import sample_worlds
from reward.roles.prompts import load_prompts
from reward.samplers import Message, SamplerError
from reward.types import Outcome

NUM_WORLDS, SEED = 12, 5
_QUESTION = re.compile(r"^\d+\. (The .+\?)$", re.MULTILINE)


def scripted_policy(
    *, solver: int = 0, votes: Sequence[int] = (0, 0, 0), proposer: Callable[[str], str] | None = None
) -> Callable[[Sequence[Message], int], list[str]]:
    """A policy that is off by `solver` in the numbers of its answers, and by `votes` in its checks."""
    prompts = load_prompts("compact")
    worlds = {
        prompts.solver(world.query)[-1]["content"]: world
        for world in sample_worlds(NUM_WORLDS, SEED, "held_out")
    }

    def completions(messages: Sequence[Message], n: int) -> list[str]:
        role, text = messages[0]["content"], messages[-1]["content"]
        if role == "solver":
            return [write_answer([(fact, fact.value + solver) for fact in worlds[text].asked])]
        if role == "proposer":
            claims = write_claims([(fact, fact.value) for fact in read_facts(text)])
            return [proposer(text) if proposer else claims]
        known = {fact.question(): fact for fact in read_facts(text)}
        asked = [known[question] for question in _QUESTION.findall(text)]
        return [write_check([(fact, fact.value + off) for fact in asked]) for off in votes[:n]]

    return completions


def measure(scripted: Any, policy: Any) -> Evaluation:
    recipe = load_recipe("tiny", ["audit.verbatim_evidence=false"])
    setup = setup_for(recipe, "scripted", num_rows=NUM_WORLDS, seed=SEED)
    return asyncio.run(evaluate_with(scripted(policy), setup))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(
            {},
            {"faithful": 1, "accepted": 1, "false_accept": 0, "false_reject": 0, "vote": 1, "consensus": 1},
            id="always right",
        ),
        pytest.param(
            {"solver": 1000},
            {"faithful": 0, "accepted": 0, "false_accept": 0, "false_reject": 0, "vote": 1, "consensus": 1},
            id="wrong answers are caught",
        ),
        pytest.param(
            {"solver": 1000, "votes": (1000, 1000, 1000)},
            {"faithful": 0, "accepted": 1, "false_accept": 1, "false_reject": 0, "vote": 0, "consensus": 0},
            id="agreeing on wrong numbers looks best in the reward alone",
        ),
        pytest.param(
            {"votes": (1000, 1000, 0)},
            {
                "faithful": 1,
                "accepted": 0,
                "false_accept": 0,
                "false_reject": 1,
                "vote": 1 / 3,
                "consensus": 0,
            },
            id="wrong checkers refuse true answers",
        ),
        pytest.param(
            {"votes": (0, 1000, 0)},
            {
                "faithful": 1,
                "accepted": 1,
                "false_accept": 0,
                "false_reject": 0,
                "vote": 2 / 3,
                "consensus": 1,
            },
            id="the majority outvotes one wrong voter",
        ),
    ],
)
def test_figures_of_known_policies(scripted: Any, policy: dict[str, Any], expected: dict[str, float]) -> None:
    found = measure(scripted, scripted_policy(**policy))
    assert {
        "faithful": found["oracle_faithfulness"].value,
        "accepted": found["supported"].value,
        "false_accept": found["false_accept"].value,
        "false_reject": found["false_reject"].value,
        "vote": found["checker_accuracy"].value,
        "consensus": found["consensus_accuracy"].value,
    } == pytest.approx(expected)
    assert found["reward"].value == pytest.approx(expected["accepted"] - 1)
    assert found["unscored"].value == 0
    assert found["proposer_covers"].value == 1
    assert found["answer_coverage"].value == found["solver_right"].value == expected["faithful"]
    assert found["claims_per_answer"].value == found["mentions_per_answer"].value > 1


def test_unscored_answers_have_no_reward_and_are_no_accepts(scripted: Any) -> None:
    found = measure(scripted, scripted_policy(proposer=lambda response: "nothing to ask"))
    assert found.figures["reward"] is None
    assert found["unscored"].value == 1
    assert found.outcomes == {Outcome.UNSCORED: NUM_WORLDS}
    assert found["oracle_faithfulness"].value == 1, "the truth does not depend on the audit"
    assert found["false_accept"].value == found["false_reject"].value == 0
    assert found["proposer_covers"].value == 0


def test_an_evaluation_survives_its_file_and_keeps_the_first_worlds_as_examples(scripted: Any) -> None:
    found = measure(scripted, scripted_policy(solver=1000))
    assert Evaluation.model_validate_json(found.model_dump_json()) == found
    worlds = sample_worlds(NUM_WORLDS, SEED, "held_out")
    assert [example.query for example in found.examples] == [w.query for w in worlds[:NUM_EXAMPLES]]
    assert [answer.query_id for answer in found.answers] == [world.query.id for world in worlds]


def test_the_solver_is_sampled_as_in_training(scripted: Any) -> None:
    recipe = load_recipe("tiny")
    sampler = scripted(scripted_policy())
    setup = setup_for(recipe, "scripted", num_rows=2, seed=SEED)
    asyncio.run(evaluate_with(sampler, setup))
    settings = {request.messages[0]["content"]: request.settings for request in sampler.requests}
    assert settings["solver"].temperature == recipe.rollout.temperature
    assert settings["solver"].max_tokens == recipe.rollout.max_response_tokens
    assert settings["checker"].model_copy(update={"seed": None}) == recipe.audit.checker


def test_each_request_has_a_seed_of_its_own_the_same_in_the_next_measurement(scripted: Any) -> None:
    """So one model has one measurement, in whatever order its engine answers."""
    setup, asked = setup_for(load_recipe("tiny"), "scripted", num_rows=NUM_WORLDS, seed=SEED), []
    for _ in range(2):
        sampler = scripted(scripted_policy())
        asyncio.run(evaluate_with(sampler, setup))
        asked.append({str(one.messages): one.settings.seed for one in sampler.requests})
    first, again = asked
    assert first == again and None not in first.values()
    assert len(set(first.values())) == len(first) >= 3 * NUM_WORLDS, "a prompt of each role, for each row"


def test_a_sampler_that_fails_ends_the_evaluation(scripted: Any) -> None:
    with pytest.raises(SamplerError):
        measure(scripted, [SamplerError("engine", "died")] * NUM_WORLDS)


@pytest.mark.parametrize("num", [1, 2, 7, 25, 100, 399, 400, 838])
def test_an_interval_holds_its_rate(num: int) -> None:
    for flag in (True, False):
        found = rate([flag] * num)
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_wilson_interval_of_a_rate() -> None:
    # Wilson (1927) for 5 of 10, as any table gives it.
    found = rate([True] * 5 + [False] * 5)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)


def test_ratio_weighs_by_the_whole_and_resamples_worlds() -> None:
    found = ratio([1, 0, 3, 2] * 25, [1, 1, 3, 3] * 25)
    assert found is not None
    assert found.value == pytest.approx(6 / 8)
    assert 0.6 < found.low < 0.75 < found.high < 0.9
    assert ratio([0, 0], [0, 0]) is None
    assert ratio([0.0], [1.0]) is not None


def test_difference_is_paired() -> None:
    before, after = [False, True] * 50, [True, True] * 50
    found = difference(before, after)
    assert found.value == 0.5 and 0.35 < found.low < 0.5 < found.high < 0.65
    with pytest.raises(ValueError, match="shorter"):
        difference(before, after[:-1])


def test_rows_about_one_subject_are_no_independent_rows() -> None:
    """Four equal rows of each of 25 clusters say as much as 25 rows."""
    once, clusters = [True, False, True, True, False] * 5, [f"{place}" for place in range(25)]
    fourfold, of_each = once * 4, clusters * 4
    for one, other in (
        (rate(once), rate(fourfold, of_each)),
        (rate([False] * 25), rate([False] * 100, of_each)),
        (difference([False] * 25, once), difference([False] * 100, fourfold, of_each)),
    ):
        assert (other.low, other.high) == pytest.approx((one.low, one.high))
        assert (one.num_rows, other.num_rows) == (25, 100)


def test_rows_of_real_text_that_share_a_subject_are_one_cluster() -> None:
    setup = setup_for(load_recipe("smollm2"), "model", num_rows=400)
    rows = rows_of(setup)
    assert len(set(_clusters(rows, setup))) == 133
    assert len({row.asked[0].subject for row in rows}) == 249, "a row's second fact is asked elsewhere, too"


def test_setup_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="num_row"):
        EvaluationSetup.model_validate(
            {"model": "x", "num_row": 3, "audit": load_recipe("tiny").audit.model_dump()}
        )


def test_a_missing_model_is_one_line(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda signum, handler: None)
    for name in ("OMP_NUM_THREADS", "VLLM_CPU_OMP_THREADS_BIND"):  # set by `main`, and put back after this
        monkeypatch.setenv(name, "1")
    assert main([str(tmp_path / "nowhere"), str(tmp_path / "out.json")]) == 1
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1 and "not a folder" in printed[0]
    assert not (tmp_path / "out.json").exists()


def test_a_thought_before_an_answer_or_a_vote_is_none_of_it(scripted: Any) -> None:
    policy = scripted_policy()

    def thinking(messages: Sequence[Message], n: int) -> list[str]:
        thought = "<think>Perhaps 7. 1. Evidence: x [Answer: 7]</think>\n"
        return [thought + text for text in policy(messages, n)]

    recipe = load_recipe("tiny", ["audit.verbatim_evidence=false", "audit.thinking=true"])
    setup = setup_for(recipe, "scripted", num_rows=NUM_WORLDS, seed=SEED)
    found = asyncio.run(evaluate_with(scripted(thinking), setup))
    assert found["solver_right"].value == found["checker_accuracy"].value == found["supported"].value == 1
    example = found.examples[0]
    for value in example.values:
        assert example.response[value.start : value.end] in example.response.partition("</think>")[2]


def test_what_a_lookup_refutes_and_nobody_asked_about_is_not_covered(scripted: Any) -> None:
    def first_alone(text: str) -> str:
        return write_claims([(fact, fact.value) for fact in read_facts(text)][:1])

    recipe = load_recipe("tiny", ["audit.verbatim_evidence=false", "audit.refute_by_lookup=[number]"])
    setup = setup_for(recipe, "scripted", num_rows=NUM_WORLDS, seed=SEED)
    policy = scripted_policy(solver=1000, proposer=first_alone)
    found = asyncio.run(evaluate_with(scripted(policy), setup))
    assert found["mentions_per_answer"].value > found["claims_per_answer"].value == 1
    assert found["proposer_covers"].value < 1
