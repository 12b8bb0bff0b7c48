"""The numeric world: repeatable, split without overlap, and judged by its documents alone."""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.settings.worlds import WorldSettings
from pipeline.tiny.demonstrations import demonstrate, write_answer, write_check, write_claims
from pipeline.tiny.facts import Fact, read_facts
from pipeline.tiny.recipe import BASE, ERRORS
from pipeline.tiny.truth import judge, true_answer
from pipeline.tiny.words import CITIES, EVENTS
from pipeline.tiny.world import MARKERS, is_held_out, sample_world, sample_worlds, worlds
from reward.claims.numbers import find_numbers
from reward.roles.formats import parse_answers, parse_claims
from reward.roles.prompts import load_prompts
from reward.types import Document, RagQuery, Role
from tests.kinds import kinds

PICNIC = Fact("July", "picnic", "Kabul", "raised", 466)
CIRCUS = Fact("May", "circus", "Oslo", "drew", 71)
TWIN = Fact("June", "picnic", "Kabul", "raised", 12)
QUERY = RagQuery(
    id="q",
    query=f"a) {PICNIC.question()} b) {CIRCUS.question()}",
    documents=(
        Document(id="d1", text=f"{TWIN.statement()} {PICNIC.statement()}"),
        Document(id="d2", text=CIRCUS.statement()),
    ),
)


def test_forms_are_the_ones_the_policy_learned():
    assert PICNIC.statement() == "The July picnic in Kabul raised 466 euros."
    assert PICNIC.question() == "The July picnic in Kabul raised how many euros?"
    claimed = [(PICNIC, 466), (CIRCUS, 70)]
    assert write_answer(claimed) == (
        "a) The July picnic in Kabul raised 466 euros. b) The May circus in Oslo drew 70 people."
    )
    assert write_claims(claimed) == (
        "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]\n"
        "- Question: The May circus in Oslo drew how many people? [Answer: 70]"
    )
    assert write_check(claimed[:1]) == "1. Evidence: The July picnic in Kabul raised 466 euros. [Answer: 466]"


def test_prompts_are_the_compact_ones():
    prompts = load_prompts("compact")
    documents = (
        "Doc: The June picnic in Kabul raised 12 euros. The July picnic in Kabul raised 466 euros.\n"
        "Doc: The May circus in Oslo drew 71 people.\n"
    )
    first = "The July picnic in Kabul raised how many euros?"
    second = "The May circus in Oslo drew how many people?"
    query = f"Query: a) {first} b) {second}"
    assert prompts.solver(QUERY) == [
        {"role": "system", "content": "solver"},
        {"role": "user", "content": documents + query},
    ]
    assert prompts.checker(QUERY.documents, [PICNIC.question(), CIRCUS.question()])[1]["content"] == (
        f"{documents}1. {PICNIC.question()}\n2. {CIRCUS.question()}"
    )


@pytest.mark.parametrize(
    ("response", "faithful", "num_values", "num_right", "coverage"),
    [
        (write_answer([(PICNIC, 466), (CIRCUS, 71)]), True, 2, 2, 1.0),
        (write_answer([(PICNIC, 466)]), True, 1, 1, 0.5),
        (write_answer([(PICNIC, 12), (CIRCUS, 71)]), False, 2, 1, 0.5),
        (TWIN.statement(), True, 1, 1, 0.0),  # true, though nobody asked
        ("It was 466.", False, 1, 0, 0.0),  # a number outside any statement
        ("The July picnic in Kabul raised 466 people.", False, 1, 0, 0.0),
        ("The July picnic in Kabul raised 0466 euros.", False, 1, 0, 0.0),
        (f"The July picnic in Kabul raised {'9' * 9000} euros.", False, 1, 0, 0.0),
        ("I cannot say.", False, 0, 0, 0.0),
        ("", False, 0, 0, 0.0),
    ],
)
def test_an_answer_is_held_against_the_documents(response, faithful, num_values, num_right, coverage):
    found = judge(QUERY, response)
    assert (found.faithful, len(found.values), found.coverage) == (faithful, num_values, coverage)
    assert sum(one.is_true for one in found.values) == num_right


def test_of_a_foreign_row_nothing_is_true():
    row = RagQuery(id="q", query="How many?", documents=(Document(id="d1", text="It was 7."),))
    assert not judge(row, "It was 7.").faithful
    assert true_answer(row, "How many?") is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (PICNIC.question(), "466"),
        (TWIN.question(), "12"),
        ("The May picnic in Kabul raised how many euros?", None),
        ("How many euros?", None),
    ],
)
def test_true_answer(question, answer):
    assert true_answer(QUERY, question) == answer


@given(seed=st.integers(), split=st.sampled_from(["train", "held_out"]))
def test_worlds_agree_with_their_documents(seed, split):
    world = sample_world(random.Random(seed), split)
    written = [fact for document in world.query.documents for fact in read_facts(document.text)]
    assert written == list(world.facts)
    assert [document.id for document in world.query.documents] == [
        f"d{i}" for i in range(1, len(world.query.documents) + 1)
    ]
    assert 1 <= len(world.query.documents) <= 5 and 1 <= len(world.asked) <= 3
    assert len({fact.value for fact in world.facts}) == len(world.truth) == len(world.facts)
    assert all(is_held_out(fact.event, fact.place) == (split == "held_out") for fact in world.facts)
    items = (f"{marker}) {fact.question()}" for marker, fact in zip(MARKERS, world.asked, strict=False))
    assert world.query.query == " ".join(items)


@given(seed=st.integers())
def test_true_and_near_duplicate_answers_are_told_apart(seed):
    world = sample_world(random.Random(seed), "train", settings=WorldSettings(p_duplicate=1.0))
    truth = write_answer([(fact, fact.value) for fact in world.asked])
    found = judge(world.query, truth)
    assert found.right and found.coverage == 1.0
    for fact in world.asked:
        twin = world.near_duplicates[fact.key]
        assert sum(a != b for a, b in zip(fact.key, twin.key, strict=True)) == 1
        assert not judge(world.query, fact.statement(twin.value)).faithful
        assert true_answer(world.query, fact.question()) == str(fact.value)


@given(seed=st.integers())
def test_the_audit_reads_what_the_roles_write(seed):
    world = sample_world(random.Random(seed), "held_out")
    claimed = [(fact, fact.value) for fact in world.asked]
    expected = [(fact.question(), str(fact.value)) for fact in world.asked]
    parsed = parse_claims(write_claims(claimed), max_claims=3, kinds=kinds())
    assert [(claim.question, claim.answer) for claim in parsed.claims] == expected
    assert parsed.num_malformed == 0 and not parsed.too_many
    answers = parse_answers(write_check(claimed), len(claimed))
    assert [(answer.value, answer.evidence) for answer in answers] == [
        (str(fact.value), fact.statement()) for fact in world.asked
    ]
    assert [number.value for number in find_numbers(write_answer(claimed))] == [n for _, n in claimed]


@given(st.text())
def test_any_text_is_judged(text):
    found = judge(QUERY, text)
    assert 0.0 <= found.coverage <= 1.0


def test_worlds_are_repeatable_and_named():
    assert worlds(5, 3, "train") == worlds(5, 3, "train")
    assert worlds(5, 3, "train") != worlds(5, 4, "train")
    assert [row.id for row in worlds(2, 3, "held_out")] == ["tiny-held_out-3-0", "tiny-held_out-3-1"]


def test_the_held_out_share_is_a_fifth():
    held_out = [is_held_out(event, city) for event in EVENTS for city in CITIES]
    assert 0.17 < sum(held_out) / len(held_out) < 0.23


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"num_asked": 4}, "num_asked"),
        ({"num_duplicates": 0}, "num_duplicates"),
        ({"unrelated": (5, 2)}, r"unrelated: \[5, 2\] is no range"),
        ({"unrelated": (0, 51)}, "50 at most"),
    ],
)
def test_worlds_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        WorldSettings(**settings)


def test_harder_worlds_are_as_hard_as_they_say():
    hard = WorldSettings(num_asked=3, p_duplicate=1.0, num_duplicates=4, unrelated=(8, 12))
    for world in sample_worlds(50, 0, "held_out", hard):
        assert len(world.asked) == 3 and 3 + 12 + 8 <= len(world.facts) <= 3 + 12 + 12
        assert len({fact.value for fact in world.facts}) == len(world.facts)
        for fact in world.asked:
            distances = (
                sum(a != b for a, b in zip(fact.key, other.key, strict=True)) for other in world.facts
            )
            assert sum(distance == 1 for distance in distances) >= 4
        assert judge(world.query, write_answer([(fact, fact.value) for fact in world.asked])).faithful


def test_the_plain_world_is_what_it_was_before_worlds_had_settings():
    # The shipped start and all published figures are of these worlds.
    rows = [row.model_dump_json() for row in worlds(50, 7, "train")]
    assert hashlib.sha256("".join(rows).encode()).hexdigest()[:16] == "4dd3468fb62bf9fb"


def _demonstrations(stage, n=600):
    rng, prompts = random.Random(1), load_prompts("compact")
    return [demonstrate(rng, stage, 1.0, prompts) for _ in range(n)]


def test_demonstrations_of_the_base_are_true():
    solver = [one for one in _demonstrations(BASE) if one.role is Role.SOLVER]
    for one in solver:
        query = RagQuery(
            id="q",
            query="",
            documents=(Document(id="d", text=one.messages[1]["content"].split("Query:")[0]),),
        )
        assert judge(query, one.completion).faithful


def test_demonstrations_of_the_error_stage_err_after_the_first_item():
    wrong = {0: [], 1: []}
    for one in _demonstrations(ERRORS):
        if one.role is Role.SOLVER:
            known = {fact.key: fact.value for fact in read_facts(one.messages[1]["content"])}
            for i, fact in enumerate(read_facts(one.completion)):
                wrong[min(i, 1)].append(known[fact.key] != fact.value)
    assert sum(wrong[0]) / len(wrong[0]) < 0.2 < 0.4 < sum(wrong[1]) / len(wrong[1])


@pytest.mark.parametrize("stage", [BASE, ERRORS])
def test_proposer_demonstrations_copy_the_answer_as_it_stands(stage):
    for one in _demonstrations(stage):
        if one.role is Role.PROPOSER:
            facts = read_facts(one.messages[1]["content"])
            assert one.completion == write_claims([(fact, fact.value) for fact in facts])
