"""Worlds of numbers, names and dates: what is asked, what is true, when silence is right, what is taught."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.demo.evaluate import evaluate_with, setup_for
from pipeline.demo.evaluation import Evaluation, JudgedAnswer
from pipeline.demo.report import describe, find, table
from pipeline.settings.recipe import load_recipe
from pipeline.settings.worlds import WorldSettings
from pipeline.tiny.demonstrations import demonstrate, write_answer, write_check, write_claims
from pipeline.tiny.facts import ABSTENTION, Fact, find_values, read_facts, read_questions
from pipeline.tiny.recipe import BASE, ERRORS, Errors, Stage
from pipeline.tiny.tokenizer import build_tokenizer
from pipeline.tiny.truth import is_written, judge, true_answer
from pipeline.tiny.words import CITIES, FIRST_NAMES, KINDS, LAST_NAMES, MONTHS, VERB_FORMS, verbs_of
from pipeline.tiny.world import near_miss, sample_world, sample_worlds
from pipeline.training.oracle import judge_tiny
from pipeline.worlds.world import Demonstration
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.types import Document, Outcome, RagQuery, Role, Verdict

SETTINGS = WorldSettings(kinds=KINDS, unanswerable_share=0.4)
MARIA = Fact("charity", "picnic", "harbour", "was organised by", "Maria Silva")
OTHER_MARIA = Fact("royal", "picnic", "harbour", "was organised by", "Maria Novak")
DAY = Fact("silent", "circus", "castle", "was announced on", "14 March")
EUROS = Fact("charity", "picnic", "harbour", "raised", 466)


def row(*asked: Fact, documents: Sequence[Fact]) -> RagQuery:
    text = " ".join(fact.statement() for fact in documents)
    query = " ".join(fact.question() for fact in asked)
    return RagQuery(id="q", query=query, documents=(Document(id="d1", text=text),))


KNOWN = row(MARIA, DAY, EUROS, documents=(OTHER_MARIA, MARIA, DAY, EUROS))
UNKNOWN = row(MARIA, documents=(OTHER_MARIA,))


def test_sentences_and_questions_of_each_kind() -> None:
    assert MARIA.statement() == "The charity picnic at the harbour was organised by Maria Silva."
    assert MARIA.question() == "The charity picnic at the harbour was organised by which person?"
    assert DAY.statement() == "The silent circus at the castle was announced on 14 March."
    assert DAY.question() == "The silent circus at the castle was announced on which day?"
    assert [fact.kind for fact in (EUROS, MARIA, DAY)] == ["number", "name", "date"]
    assert write_claims([(MARIA, "Maria Silva"), (DAY, "15 March")]) == (
        "- Question: The charity picnic at the harbour was organised by which person? [Answer: Maria Silva]\n"
        "- Question: The silent circus at the castle was announced on which day? [Answer: 15 March]"
    )
    assert write_check([(MARIA, "Maria Silva"), (DAY, None)]) == (
        "1. Evidence: The charity picnic at the harbour was organised by Maria Silva. [Answer: Maria Silva]\n"
        "2. Evidence: none [Answer: Cannot answer]"
    )


@pytest.mark.parametrize(
    ("query", "response", "faithful", "num_values", "num_right", "abstained"),
    [
        (KNOWN, write_answer([(MARIA, "Maria Silva"), (DAY, "14 March"), (EUROS, 466)]), True, 3, 3, False),
        (KNOWN, write_answer([(MARIA, "Maria Novak")]), False, 1, 0, False),  # the near-duplicate's organiser
        (KNOWN, write_answer([(MARIA, "Maria Silva"), (DAY, "15 March")]), False, 2, 1, False),
        (KNOWN, OTHER_MARIA.statement(), True, 1, 1, False),  # true, though nobody asked
        (KNOWN, f"{MARIA.statement()} Maria Silva came.", False, 2, 1, False),  # a name outside any statement
        (KNOWN, f"{MARIA.statement()} 14 came.", False, 2, 1, False),
        (KNOWN, "The charity picnic at the harbour was organised by xyz.", False, 1, 0, False),
        (KNOWN, "The charity picnic at the harbour was organised by Maria.", False, 2, 0, False),
        (KNOWN, "The silent circus at the castle was announced on March.", False, 1, 0, False),
        (KNOWN, ABSTENTION, False, 0, 0, True),
        (KNOWN, "Yes.", False, 0, 0, False),
        (UNKNOWN, ABSTENTION, True, 0, 0, True),
        (UNKNOWN, "a) the documents do not say", True, 0, 0, True),
        (UNKNOWN, "Yes.", False, 0, 0, False),  # silence is no abstention
        (UNKNOWN, "", False, 0, 0, False),
        (UNKNOWN, write_answer([(MARIA, "Maria Novak")]), False, 1, 0, False),
        (UNKNOWN, f"{ABSTENTION} {MARIA.statement()}", False, 1, 0, False),
    ],
)
def test_an_answer_is_held_against_the_documents(
    query: RagQuery, response: str, faithful: bool, num_values: int, num_right: int, abstained: bool
) -> None:
    found = judge(query, response)
    assert (found.faithful, len(found.values)) == (faithful, num_values)
    assert sum(one.is_true for one in found.values) == num_right
    assert (found.abstained, found.answerable) == (abstained, query is KNOWN)


@pytest.mark.parametrize(
    ("query", "fact", "answer"),
    [
        (KNOWN, MARIA, "Maria Silva"),
        (KNOWN, DAY, "14 March"),
        (KNOWN, EUROS, "466"),
        (UNKNOWN, MARIA, None),
        (UNKNOWN, OTHER_MARIA, "Maria Novak"),
    ],
)
def test_true_answer(query: RagQuery, fact: Fact, answer: str | None) -> None:
    assert true_answer(query, fact.question()) == answer


@pytest.mark.parametrize(
    ("consensus", "value", "same"),
    [
        ("466", "466", True),
        ("467", "466", False),
        ("Maria Silva", "Maria Silva", True),
        ("14 March", "14 March", True),
        ("--03-14", "14 March", True),
        ("--03-15", "14 March", False),
        (None, "14 March", False),
    ],
)
def test_a_consensus_is_held_against_the_truth(consensus: str | None, value: str, same: bool) -> None:
    assert is_written(consensus, value) is same


def test_values_are_found_where_they_stand() -> None:
    text = write_answer([(MARIA, "Maria Silva"), (DAY, "15 March"), (EUROS, 466)])
    found = [(text[value.start : value.end], value.fact is not None) for value in find_values(text)]
    assert found == [("Maria Silva", True), ("15 March", True), ("466", True)]


@given(seed=st.integers(), split=st.sampled_from(["train", "held_out"]))
def test_worlds_agree_with_their_documents(seed: int, split: Any) -> None:
    world = sample_world(random.Random(seed), split, settings=SETTINGS)
    written = [fact for document in world.query.documents for fact in read_facts(document.text)]
    assert written == list(world.facts) and world.facts
    assert read_questions(world.query.query) == [fact.key for fact in world.asked]
    assert len({fact.value for fact in world.facts}) == len(world.truth) == len(world.facts)
    assert all((fact.key in world.truth) is world.is_answerable for fact in world.asked)
    truth = write_answer([(fact, fact.value) for fact in world.asked])
    assert judge(world.query, truth).faithful is world.is_answerable
    assert judge(world.query, ABSTENTION).faithful is not world.is_answerable
    subjects = {word for fact in world.facts for word in fact.key[:3]}
    assert not subjects & {*MONTHS, *CITIES, *FIRST_NAMES, *LAST_NAMES}, "each name and day is a claim"


@given(seed=st.integers())
def test_near_duplicates_are_nearly_right(seed: int) -> None:
    settings = SETTINGS.model_copy(update={"p_duplicate": 1.0})
    world = sample_world(random.Random(seed), "train", settings=settings)
    for fact in world.asked:
        twin = world.near_duplicates[fact.key]
        assert twin.kind == fact.kind and twin.key in world.truth and twin.value != fact.value
        assert sum(a != b for a, b in zip(fact.key, twin.key, strict=True)) == 1
        if fact.kind == "name":
            first, last = str(fact.value).split()
            assert str(twin.value).split()[0] == first and str(twin.value).split()[1] != last


def test_each_kind_is_asked_for_and_each_sort_of_query_comes() -> None:
    worlds = sample_worlds(300, 0, "train", SETTINGS)
    kinds = [fact.kind for world in worlds for fact in world.asked]
    assert all(0.25 < kinds.count(kind) / len(kinds) < 0.42 for kind in KINDS)
    assert 0.33 < sum(not world.is_answerable for world in worlds) / len(worlds) < 0.47


@given(seed=st.integers())
def test_a_near_miss_stands_in_no_document(seed: int) -> None:
    rng = random.Random(seed)
    world = sample_world(rng, "train", settings=SETTINGS)
    missed = near_miss(rng, world, world.facts[0])
    assert true_answer(world.query, missed.question()) is None


def test_settings_name_each_kind_once() -> None:
    with pytest.raises(ValueError, match="names a kind twice"):
        WorldSettings(kinds=("name", "name"))
    with pytest.raises(ValueError, match="kinds"):
        WorldSettings(kinds=())


def _demonstrations(stage: Stage, role: Role, n: int = 1500) -> list[Demonstration]:
    rng, prompts = random.Random(1), load_prompts("compact")
    found = [demonstrate(rng, stage, 1.0, prompts) for _ in range(n)]
    return [one for one in found if one.role is role]


def _query_of(one: Demonstration) -> RagQuery:
    documents, _, query = one.messages[1]["content"].partition("Query:")
    return RagQuery(id="q", query=query, documents=(Document(id="d", text=documents),))


def test_true_demonstrations_abstain_where_nobody_knows_and_nowhere_else() -> None:
    solver = _demonstrations(replace(BASE, world=SETTINGS), Role.SOLVER)
    judged = [judge(_query_of(one), one.completion) for one in solver]
    assert all(one.faithful and one.abstained is not one.answerable for one in judged)
    assert 0.3 < sum(one.abstained for one in judged) / len(judged) < 0.5


def test_true_checkers_answer_what_the_documents_hold_and_nothing_else() -> None:
    for one in _demonstrations(replace(BASE, world=SETTINGS), Role.CHECKER):
        documents, questions = re.split(r"\n(?=1\. )", one.messages[1]["content"])
        facts = {fact.key: fact for fact in read_facts(documents)}
        expected = [facts.get(key) for key in read_questions(questions)]
        answers = [line.partition("[Answer: ")[2].rstrip("]") for line in one.completion.split("\n")]
        assert answers == [str(fact.value) if fact else "Cannot answer" for fact in expected]


@pytest.mark.parametrize("stage", [BASE, ERRORS])
def test_proposers_ask_for_each_value_as_it_stands(stage: Stage) -> None:
    for one in _demonstrations(replace(stage, world=SETTINGS), Role.PROPOSER):
        facts = read_facts(one.messages[1]["content"])
        assert facts and one.completion == write_claims([(fact, fact.value) for fact in facts])


def test_injected_errors_are_as_frequent_as_they_say() -> None:
    errors = Errors(p_late=0.6, p_early=0.1, p_miscopy=0.05, p_invent=0.5, p_abstain=0.1)
    stage = replace(ERRORS, world=SETTINGS, errors=errors)
    solver = _demonstrations(stage, Role.SOLVER, 4000)
    judged = [judge(_query_of(one), one.completion) for one in solver]
    unknown = [one for one in judged if not one.answerable]
    known = [one for one in judged if one.answerable]
    assert 0.4 < sum(one.abstained for one in unknown) / len(unknown) < 0.6
    assert 0.06 < sum(one.abstained for one in known) / len(known) < 0.14
    assert 0.4 < sum(one.faithful for one in known) / len(known) < 0.75


def test_inventions_are_values_of_other_facts_of_the_same_kind() -> None:
    stage = replace(ERRORS, world=SETTINGS, errors=Errors(p_invent=1.0))
    for one in _demonstrations(stage, Role.SOLVER):
        query = _query_of(one)
        if not judge(query, one.completion).answerable:
            known = {(fact.kind, fact.value) for fact in read_facts(query.documents[0].text)}
            assert {(fact.kind, fact.value) for fact in read_facts(one.completion)} <= known


def test_blind_checkers_are_as_frequent_as_they_say() -> None:
    stage = replace(ERRORS, world=WorldSettings(kinds=KINDS), errors=Errors(p_blind=0.2))
    lines = [line for one in _demonstrations(stage, Role.CHECKER) for line in one.completion.split("\n")]
    assert 0.15 < sum(line.endswith("Cannot answer]") for line in lines) / len(lines) < 0.25


TOKENIZER = build_tokenizer(SETTINGS)


@pytest.mark.parametrize("text", [*FIRST_NAMES, *LAST_NAMES, *VERB_FORMS, "which", "Cannot", "documents"])
def test_one_token_a_word_or_verb(text: str) -> None:
    assert len(TOKENIZER.encode(f" {text}", add_special_tokens=False)) == 1


@given(seed=st.integers())
def test_a_value_has_the_same_tokens_in_a_sentence_and_in_a_bracket(seed: int) -> None:
    (fact,) = sample_world(
        random.Random(seed), "train", settings=WorldSettings(num_asked=1, kinds=KINDS)
    ).asked
    sentence = TOKENIZER.encode(fact.statement(), add_special_tokens=False)
    line = TOKENIZER.encode(write_check([(fact, fact.value)]), add_special_tokens=False)
    assert TOKENIZER.decode(line, skip_special_tokens=False) == write_check([(fact, fact.value)])
    value = TOKENIZER.encode(f" {fact.value}", add_special_tokens=False)
    for tokens in (sentence, line[-len(value) - 1 :]):
        assert any(tokens[i : i + len(value)] == value for i in range(len(tokens)))


NUM_WORLDS, SEED = 24, 5
RECIPE = load_recipe("tiny_kinds", ["data.world.unanswerable_share=0.4"])


def scripted_policy(*, solver: str = "true", checker: str = "true") -> Callable[..., list[str]]:
    """A policy that is always right, or abstains from all, or always invents."""
    prompts = load_prompts("compact")
    worlds = {
        prompts.solver(world.query)[-1]["content"]: world
        for world in sample_worlds(NUM_WORLDS, SEED, "held_out", RECIPE.data.world)
    }

    def completions(messages: Sequence[Message], n: int) -> list[str]:
        role, text = messages[0]["content"], messages[-1]["content"]
        if role == "solver":
            world = worlds[text]
            says_nothing = solver == "silent" or (solver == "true" and not world.is_answerable)
            return [ABSTENTION if says_nothing else write_answer([(f, f.value) for f in world.asked])]
        if role == "proposer":
            return [write_claims([(fact, fact.value) for fact in read_facts(text)])]
        documents, questions = re.split(r"\n(?=1\. )", text)
        known = {fact.key: fact for fact in read_facts(documents)}
        asked = [Fact(*key, 0) for key in read_questions(questions)]
        found = [(fact, known[fact.key].value if fact.key in known else None) for fact in asked]
        return [write_check(found if checker == "true" else [(fact, None) for fact in asked])] * n

    return completions


def measure(scripted: Any, **policy: str) -> Evaluation:
    setup = setup_for(RECIPE, "scripted", num_rows=NUM_WORLDS, seed=SEED)
    return asyncio.run(evaluate_with(scripted(scripted_policy(**policy)), setup))


@pytest.mark.parametrize(
    ("policy", "faithful", "right", "wrong", "stated", "votes"),
    [
        ({}, 1.0, 1.0, 0.0, 1.0, {"number": 1.0, "name": 1.0, "date": 1.0, "unanswerable": 1.0}),
        ({"solver": "silent"}, None, 1.0, 1.0, 0.0, {"number": 1.0, "name": 1.0, "unanswerable": 1.0}),
        ({"solver": "bold"}, None, 0.0, 0.0, 1.0, {}),
        ({"checker": "blind"}, 1.0, 1.0, 0.0, 1.0, {"number": 0.0, "name": 0.0, "unanswerable": 1.0}),
    ],
)
def test_figures_of_known_policies(
    scripted: Any,
    policy: dict[str, str],
    faithful: float | None,
    right: float,
    wrong: float,
    stated: float,
    votes: dict[str, float],
) -> None:
    found = measure(scripted, **policy)
    abstained = [found["abstention_right"], found["abstention_wrong"]]
    assert [one.value for one in abstained] == [right, wrong]
    assert sum(one.num_rows for one in abstained) == NUM_WORLDS
    if faithful is not None:
        assert found["oracle_faithfulness"].value == faithful
    assert {kind: found[f"stated/{kind}"].value for kind in KINDS} == dict.fromkeys(KINDS, stated)
    assert "stated/unanswerable" not in found.figures
    assert {kind: found[f"votes/{kind}"].value for kind in votes} == votes
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


def test_the_audit_finds_the_claims_of_each_kind_and_masks_abstentions(scripted: Any) -> None:
    found = measure(scripted)
    known = sum(answer.answerable for answer in found.answers)
    assert found.outcomes == {Outcome.SUPPORTED: known, Outcome.NO_CLAIMS: NUM_WORLDS - known}
    assert found["false_accept"].value == found["false_reject"].value == 0
    assert sum(one.reward is None for one in found.answers) == NUM_WORLDS - known, (
        "a right abstention is neither paid nor punished"
    )
    bold = measure(scripted, solver="bold")
    assert bold.outcomes == {Outcome.SUPPORTED: known, Outcome.REFUTED: NUM_WORLDS - known}


def test_the_report_tells_of_abstentions_and_kinds(scripted: Any) -> None:
    before, after = measure(scripted, solver="bold"), measure(scripted)
    labels = [one.label for one in table(before, after)]
    assert "Abstentions where no document answers" in labels
    assert "Items stated rightly: name" in labels and "Checker right, single votes: unanswerable" in labels
    assert "abstentions went from 0.0% to 100.0%" in find(before, after).sentence
    words = {describe(example)[1] for example in after.examples}
    assert "abstained, rightly" in words


def test_older_evaluations_have_no_kinds() -> None:
    assert JudgedAnswer.model_fields["answerable"].default is True
    assert JudgedAnswer.model_fields["abstained"].default is False


@pytest.mark.parametrize(("reward", "false_reject"), [(-1.0, True), (0.0, False), (None, False)])
def test_a_right_abstention_is_refused_only_where_it_is_punished(
    reward: float | None, false_reject: bool
) -> None:
    verdict = Verdict(id="q", outcome=Outcome.NO_CLAIMS, reward=reward)
    judged = judge_tiny(UNKNOWN, ABSTENTION, verdict)
    assert (judged.faithful, judged.abstained, judged.answerable) == (True, True, False)
    assert judged.false_reject is false_reject and not judged.false_accept


def test_verbs_have_kinds() -> None:
    assert [len(verbs_of(kind)) for kind in KINDS] == [4, 2, 2]
