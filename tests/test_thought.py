"""Thought is no answer where the configuration says so, and whatever people may see is still audited."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.settings.audit import audit_job
from pipeline.settings.recipe import load_recipe
from reward.auditor import audit, recheck
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.provenance import config_digest
from reward.roles.asking import answer_of, answer_start
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from reward.types import AuditResult, Claim, Outcome, RagQuery, Role, Sample, Verdict
from tests.serving import RESPONSE as SERVED
from tests.serving import SAMPLER, TOKEN, PicnicSampler, Serving

PROMPTS = load_prompts("compact")
THINKING, PLAIN = AuditConfig(kinds=("number",), thinking=True), AuditConfig(kinds=("number",))
THOUGHT = "<think>\nMay raised 120 euros, or was it 999 on 7 May 1987?\n</think>\n\n"
RESPONSE = "The July picnic in Kabul raised 466 euros."
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
WRONG_CLAIM = "- Question: The May picnic in Kabul raised how many euros? [Answer: 120]"
RIGHT = "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"
OTHER = "1. Evidence: The May picnic in Kabul raised 120 euros. [Answer: 120]"


def run(query: RagQuery, response: str, sampler: Any, config: AuditConfig = THINKING) -> AuditResult:
    return asyncio.run(audit(query, response, sampler=sampler, prompts=PROMPTS, config=config))


def marked(verdict: Verdict, response: str) -> list[str]:
    """What the spans of a verdict point at: its claims', then the uncovered ones."""
    spans = [c.claim.span for c in verdict.claims if c.claim.span] + list(verdict.uncovered)
    return [response[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("turn", "answer"),
    [
        ("5 came.", "5 came."),
        ("  5 came. ", "  5 came. "),
        ("", ""),
        ("<think>7</think>5 came.", "5 came."),
        (" \n<think>\n7\n</think>\n\n5 came.\n", "5 came.\n"),
        ("7, no\n</think>\n5 came.", "5 came."),  # the template wrote "<think>"
        ("</think>5 came.", "5 came."),
        ("<think>7</think>", ""),
        ("<think>7</think> \n", ""),
        ("<think>7, so 5 came.", ""),  # cut
        ("<think>", ""),
        ("<think>7</think>8 came.</think>5 came.", "8 came.</think>5 came."),  # the first end counts
        ("<think>a<think>b</think>8</think>5", "8</think>5"),
        ("<think>7</think>8 <think>9</think>5", "8 <think>9</think>5"),
        ("8 came. <think>7</think>5 came.", "8 came. <think>7</think>5 came."),  # 8 was shown
        ("8 came. <think>7", "8 came. <think>7"),
        ("</think>5 <think>7", "5 <think>7"),
        ("<think>7<tool_call>8</think>5", "<think>7<tool_call>8</think>5"),  # vLLM's Qwen3 parser shows 8
        ("<think>7</think>8<tool_call>5", "8<tool_call>5"),
        ("<THINK>7</THINK>5", "<THINK>7</THINK>5"),
        ("< think>7</ think>5", "< think>7</ think>5"),
    ],
)
def test_an_answer_is_what_follows_the_first_thought(turn: str, answer: str) -> None:
    assert answer_of(turn, THINKING) == answer
    assert answer_of(turn, PLAIN) == turn


TURNS = st.lists(st.sampled_from(["<think>", "</think>", "5 ", "a", "\n"]), max_size=12).map("".join)


@given(TURNS)
def test_what_a_serving_stack_shows_is_always_part_of_the_answer(turn: str) -> None:
    """vLLM's basic reasoning parser: what follows the first end behind the first start."""
    shown = turn.partition("<think>")[2] if "<think>" in turn else turn
    shown = shown.partition("</think>")[2] if "</think>" in shown else ""
    assert turn[answer_start(turn, THINKING) :].endswith(shown.lstrip())


@given(TURNS)
def test_without_the_setting_all_of_a_turn_is_its_answer(turn: str) -> None:
    assert answer_start(turn, PLAIN) == 0


def test_by_default_thought_is_audited(scripted: Any, picnic: RagQuery) -> None:
    sampler = scripted({"proposer": [CLAIM] * 2, "checker": [RIGHT] * 3})
    verdict = run(picnic, THOUGHT + RESPONSE, sampler, PLAIN).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.REFUTED, "uncovered")
    assert "999" in sampler.requests[0].text
    assert lexical_audit(picnic, THOUGHT + RESPONSE, PLAIN).outcome is Outcome.REFUTED


@pytest.mark.parametrize("thought", [THOUGHT, THOUGHT.removeprefix("<think>"), ""])
def test_an_answer_has_the_same_verdict_with_and_without_its_thought(
    thought: str, scripted: Any, picnic: RagQuery
) -> None:
    script = {"proposer": [CLAIM] * 2, "checker": [RIGHT, OTHER, RIGHT]}
    answer = f"{RESPONSE} It drew 60 people."
    alone = run(picnic, answer, scripted(script)).verdict
    verdict = run(picnic, thought + answer, scripted(script)).verdict
    assert verdict.model_copy(update={"claims": (), "uncovered": ()}) == alone.model_copy(
        update={"claims": (), "uncovered": ()}
    )
    assert marked(verdict, thought + answer) == marked(alone, answer) == ["466 euros", "60"]
    assert verdict.reason == "uncovered"


def test_a_supported_answer_is_paid_whatever_was_thought(scripted: Any, picnic: RagQuery) -> None:
    verdict = run(picnic, THOUGHT + RESPONSE, scripted([CLAIM, *[RIGHT] * 3])).verdict
    assert (verdict.outcome, verdict.reward, verdict.num_mentions) == (Outcome.SUPPORTED, 0.0, 1)


@pytest.mark.parametrize("hidden", ["It drew 999 people.</think>", "<think>It drew 999 people.</think>"])
def test_nothing_behind_the_first_end_is_hidden(hidden: str, scripted: Any, picnic: RagQuery) -> None:
    sampler = scripted({"proposer": [CLAIM] * 2, "checker": [RIGHT] * 3})
    verdict = run(picnic, f"{THOUGHT}{hidden}{RESPONSE}", sampler).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.REFUTED, "uncovered")


@pytest.mark.parametrize(
    "response", ["<think>July raised 466 euros.", THOUGHT, "</think>", "<think></think>"]
)
def test_a_response_that_ends_in_thought_is_an_empty_one(
    response: str, scripted: Any, picnic: RagQuery
) -> None:
    for verdict in (run(picnic, response, scripted([])).verdict, lexical_audit(picnic, response, THINKING)):
        assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.NO_CLAIMS, None, "no_claims")
    assert run(picnic, response, scripted([])) == run(picnic, "", scripted([]))


def test_no_role_is_shown_the_solvers_thought(picnic: RagQuery, scripted: Any) -> None:
    sampler = scripted([CLAIM, *[RIGHT] * 3])
    run(picnic, THOUGHT + RESPONSE, sampler)
    proposer, checker = (request.text for request in sampler.requests)
    assert proposer == scripted_prompt(PROMPTS.proposer(RESPONSE))
    assert checker == scripted_prompt(
        PROMPTS.checker(picnic.documents, ["The July picnic in Kabul raised how many euros?"])
    )


def scripted_prompt(messages: Sequence[Message]) -> str:
    return "\n".join(message["content"] for message in messages)


def test_the_proposers_thought_holds_no_claims(scripted: Any, picnic: RagQuery) -> None:
    proposed = f"<think>\n{WRONG_CLAIM}\n</think>\n{CLAIM}"
    sampler = scripted([proposed, *[RIGHT] * 3])
    verdict = run(picnic, RESPONSE, sampler).verdict
    assert (verdict.outcome, verdict.num_dropped_claims, verdict.num_malformed_claims) == (
        Outcome.SUPPORTED,
        0,
        0,
    )


def test_a_proposer_that_ends_in_thought_is_malformed(scripted: Any, picnic: RagQuery) -> None:
    verdict = run(picnic, RESPONSE, scripted([f"<think>\n{CLAIM}"] * 2)).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "proposer_malformed")


def test_a_checkers_thought_is_no_vote(scripted: Any, picnic: RagQuery) -> None:
    votes = [f"<think>\n{OTHER}\n</think>\n{RIGHT}", f"{OTHER}\n</think>\n{RIGHT}", RIGHT]
    (claim,) = run(picnic, RESPONSE, scripted([CLAIM, *votes])).verdict.claims
    assert claim.tally == {"466": 3}


@pytest.mark.parametrize("ended", ["stop", "length"])
def test_a_checker_that_ends_in_thought_has_no_readable_vote(
    ended: str, scripted: Any, picnic: RagQuery
) -> None:
    cut = Sample(text=f"<think>\n{RIGHT}", finish_reason=ended)
    result = run(picnic, RESPONSE, scripted([CLAIM, RIGHT, cut, RIGHT], with_tokens=True))
    assert result.verdict.outcome is Outcome.SUPPORTED
    assert result.verdict.claims[0].votes[1] is None
    checkers = [turn for turn in result.trajectories if turn.role is Role.CHECKER]
    assert [turn.own_reward for turn in checkers] == [0.0, -1.0 if ended == "stop" else None, 0.0]
    verdict = run(picnic, RESPONSE, scripted([CLAIM, RIGHT, cut, cut])).verdict
    assert (verdict.outcome, verdict.reward) == (Outcome.UNSCORED, None)


def test_trajectories_hold_the_thought(scripted: Any, picnic: RagQuery) -> None:
    turns = [f"{THOUGHT}{CLAIM}", *[f"{THOUGHT}{RIGHT}"] * 3]
    result = run(picnic, THOUGHT + RESPONSE, scripted(turns, with_tokens=True))
    assert result.verdict.outcome is Outcome.SUPPORTED
    assert [turn.response_token_ids for turn in result.trajectories] == [(*t.encode(), 0) for t in turns]


def test_another_checker_gets_the_same_questions_about_the_same_places(
    scripted: Any, picnic: RagQuery
) -> None:
    response = THOUGHT + RESPONSE
    live = run(picnic, response, scripted([CLAIM, *[RIGHT] * 3])).verdict

    def again(votes: Sequence[str], config: AuditConfig = THINKING) -> Verdict:
        sampler = scripted({"checker": votes})
        return asyncio.run(recheck(picnic, response, live, sampler=sampler, prompts=PROMPTS, config=config))

    assert again([f"{THOUGHT}{RIGHT}"] * 3) == live
    refuted = again([OTHER] * 3)
    assert (refuted.outcome, marked(refuted, response)) == (Outcome.REFUTED, ["466 euros"])
    thought = Claim(index=1, question="?", answer="120", span={"start": 19, "end": 28})
    inside = live.claims[0].model_copy(update={"claim": thought})
    first = live.model_copy(update={"claims": (inside,)})
    with pytest.raises(ValueError, match="this response does not say"):
        asyncio.run(recheck(picnic, response, first, sampler=scripted([]), prompts=PROMPTS, config=THINKING))


def test_the_lexical_audit_leaves_thought_out(picnic: RagQuery) -> None:
    response = THOUGHT + RESPONSE
    verdict = lexical_audit(picnic, response, THINKING)
    assert (verdict.outcome, marked(verdict, response)) == (Outcome.SUPPORTED, ["466 euros"])
    wrong = f"{THOUGHT}It raised 468 euros."
    refuted = lexical_audit(picnic, wrong, THINKING)
    assert (refuted.outcome, marked(refuted, wrong)) == (Outcome.REFUTED, ["468 euros"])
    assert asyncio.run(audit(picnic, response, config=THINKING)).verdict == verdict


def test_bounds_are_those_of_the_answer(scripted: Any, picnic: RagQuery) -> None:
    config = AuditConfig(kinds=("number",), thinking=True, max_response_chars=len(RESPONSE), max_claims=1)
    response = f"<think>{'17 and ' * 5_000}</think>\n{RESPONSE}"
    assert run(picnic, response, scripted([CLAIM, *[RIGHT] * 3]), config).verdict.reward == 0.0
    verdict = run(picnic, f"{response} ", scripted([]), config).verdict
    assert (verdict.reward, verdict.reason) == (None, "response_too_long")


def test_the_reward_server_does_as_its_settings_say() -> None:
    for thinking, reward in ((True, 0.0), (False, -1.0)):
        audited = AuditConfig(kinds=("number",), prompts="compact", thinking=thinking)
        config = ServerConfig(audit=audited, sampler=SAMPLER)
        serving = Serving(create_app(config, sampler=PicnicSampler(), token=TOKEN), config)
        try:
            response = THOUGHT + SERVED
            assert serving.get_reward(response).json()["rewards"] == reward
            verdict = serving.audit(response).json()["verdict"]
            assert (verdict["reward"], verdict["provenance"]["config_digest"]) == (
                reward,
                config_digest(audited),
            )
            refused = serving.audit(response, overrides={"thinking": True})
            assert refused.status_code == 422  # no caller takes numbers out of the audit
        finally:
            serving.close()


def test_the_digest_names_the_setting() -> None:
    assert config_digest(THINKING) != config_digest(PLAIN)


@pytest.mark.parametrize("structured", ["proposer", "all"])
def test_a_grammar_leaves_no_room_for_thought(structured: str) -> None:
    words = rf"structured: {structured} does not fit thinking: true.*set structured: none, or thinking: false"
    with pytest.raises(ValueError, match=words):
        AuditConfig(kinds=("number",), thinking=True, structured=structured)


def test_march_audit_binds_a_model_that_thinks_to_no_grammar(tmp_path: Any) -> None:
    def settings(*assignments: str, model: str | None = "some/model") -> AuditConfig:
        options = {"row_format": None, "model_name": None, "named": {}}
        return audit_job(tmp_path / "rows.jsonl", None, model=model, assignments=assignments, **options).audit

    assert (settings().structured, settings("thinking=true").structured) == ("all", "none")
    assert settings("thinking=true", model=None).thinking
    with pytest.raises(ValueError, match="structured: all does not fit thinking: true"):
        settings("thinking=true", "structured=all")


def test_only_recipes_of_models_that_think_first_leave_thought_out() -> None:
    names = ("qwen3_8b_stem", "qwen3_8b_general", "llama31_8b_stem", "llama31_8b_general", "tiny")
    assert [load_recipe(name).audit.thinking for name in names] == [True, True, False, False, False]
