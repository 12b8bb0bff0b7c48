"""The Checker never sees the response or a claimed answer: by signature, and in every prompt it is shown."""

import asyncio
import dataclasses
import inspect
import random
import re
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward.auditor import audit
from reward.claims.numbers import parse_number
from reward.claims.numbers.questions import shown_by, shown_in
from reward.config import AuditConfig, UncoveredPolicy
from reward.roles.asking import Means
from reward.roles.checker import check, plan_parts
from reward.roles.prompts import PromptSet, load_prompts
from reward.types import Document, Outcome, RagQuery

SENTINELS = range(700_001, 700_999)  # stand in no document, no query and no shipped prompt
TEMPLATES = (
    "- Question: How many items did depot {w} count? [Answer: {n}]",
    "- Question: How many items did depot {w} count, given it is {n}? [Answer: {n}]",  # its own answer
    "- Question: Beside {other} items, how many did depot {w} count? [Answer: {n}]",  # another claim's answer
    '- Question: As depot {w} says, "{response}", how many? [Answer: {n}]',  # the response
    "- Question: How many items did depot {w} count? [Answer: {n}] [Answer: {n}]",
    "- Question: {n:,}.0 items in depot {w} or not? [Answer: {n}]",
    "Depot {w} counted {n}.",
)
LURES = (
    "[Answer: {}]",
    "1. Evidence: {} [Answer: {}]",
    "{{{{ response }}}} {}",
    "Doc: {}\n",
    "Query: {} zebra",
)
DOCUMENTS = (Document(id="a", text="The depot counted 31 crates."), Document(id="b", text="It holds 32."))
COMPACT = load_prompts("compact")
QUERY = RagQuery(id="q", query="How many items were counted?", documents=DOCUMENTS)


def response_with(numbers: list[int], rng: random.Random) -> str:
    """A response that holds the numbers, and text that looks like a part of a prompt."""
    sentences = [f"Zebra {w} counted {n} items. " for w, n in zip("abc", numbers, strict=True)]
    return "".join(sentences) + rng.choice(LURES).format(numbers[0], numbers[0])


def proposal(response: str, numbers: list[int], rng: random.Random) -> str:
    lines = []
    for w, number in zip("abc", numbers, strict=True):
        other = rng.choice([n for n in numbers if n != number])
        flat = " ".join(response.split())
        lines.append(rng.choice(TEMPLATES).format(w=w, n=number, other=other, response=flat))
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["compact", "full"])
def test_no_checker_prompt_holds_the_response_or_an_answer_that_it_asks_for(name, scripted) -> None:
    prompts, num_prompts = load_prompts(name), 0
    for seed in range(150):
        rng = random.Random(seed)
        numbers = rng.sample(SENTINELS, 3)
        response = response_with(numbers, rng)
        attempts = [proposal(response, numbers, rng) for _ in range(2)]
        sampler = scripted(
            lambda _, n, left=attempts: [left.pop()] if n == 1 else ["1. Evidence: x [Answer: 31]"] * n
        )
        config = AuditConfig(kinds=("number",), prompts=name)
        result = asyncio.run(audit(QUERY, response, sampler=sampler, prompts=prompts, config=config))
        assert result.verdict.outcome is not Outcome.SUPPORTED
        for request in (request for request in sampler.requests if request.n > 1):
            num_prompts += 1
            prompt = "\n".join(message["content"] for message in request.messages)
            assert response not in prompt
            assert "Zebra" not in prompt
            asked = [v.claim for v in result.verdict.claims if v.claim.question in prompt]
            assert asked
            shown = {int(digits) for digits in re.findall(r"\d{6}", prompt.replace(",", ""))}
            assert shown.isdisjoint(int(claim.answer) for claim in asked)
    assert num_prompts > 100


@pytest.mark.parametrize("name", ["compact", "full"])
def test_with_honest_questions_no_claimed_number_stands_in_any_checker_prompt(name, scripted) -> None:
    prompts = load_prompts(name)
    for seed in range(50):
        rng = random.Random(seed)
        numbers = rng.sample(SENTINELS, 3)
        response = response_with(numbers, rng)
        query = RagQuery(id="q", query="How many?", documents=(Document(id="d", text="The depot holds 31."),))
        lines = [
            f"- Question: How many items did zebra-free depot {w} count? [Answer: {n}]"
            for w, n in zip("abc", numbers, strict=True)
        ]
        text = "\n".join(lines)
        sampler = scripted(lambda messages, n, text=text: [text] if n == 1 else ["1. [Answer: 31]"] * n)
        config = AuditConfig(kinds=("number",), prompts=name)
        asyncio.run(audit(query, response, sampler=sampler, prompts=prompts, config=config))
        (checker,) = [request for request in sampler.requests if request.n > 1]
        rendered = "\n".join(message["content"] for message in checker.messages)
        assert not any(str(number) in rendered or f"{number:,}" in rendered for number in numbers)
        assert response not in rendered


def test_neither_the_renderer_nor_the_checkers_steps_accept_a_response() -> None:
    assert list(inspect.signature(PromptSet.checker).parameters) == [
        "self",
        "documents",
        "questions",
        "kinds",
    ]
    assert list(inspect.signature(plan_parts).parameters) == ["documents", "questions", "means"]
    assert list(inspect.signature(check).parameters) == ["parts", "questions", "n", "attempt", "means"]
    # The observer is only told of turns; it gives nothing back.
    fields = {field.name for field in dataclasses.fields(Means)}
    assert fields == {"sampler", "prompts", "config", "observer"}


TAGS = ["[Answer:", "]", "- Question:", "1.", "Evidence:", "{{ response }}", '"', "\n", "\n\n"]
PLAIN = [
    "zebra",
    "depot",
    "counted",
    "about",
    "over",
    "between",
    "twelve",
    "half a million",
    "%",
    "May",
    "p.m.",
]
WORDS = st.sampled_from([*TAGS, *PLAIN])
SECRETS = st.integers(700_001, 799_999).map(lambda n: n if n % 2 else f"{n:,}").map(str)
PIECES = st.lists(st.one_of(WORDS, SECRETS, st.text(max_size=6)), min_size=1, max_size=25)
QUESTIONS = st.lists(st.one_of(WORDS, SECRETS, st.text(max_size=6)), max_size=8)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    pieces=PIECES,
    secret=SECRETS,
    questions=st.lists(QUESTIONS, max_size=5),
    policy=st.sampled_from(UncoveredPolicy),
)
def test_blindness_holds_for_any_response_and_any_proposer(
    pieces: list[str], secret: str, questions: list[list[str]], policy: UncoveredPolicy, scripted
) -> None:
    response = " ".join([*pieces, secret, "items"])
    answers = [*re.findall(r"7\d\d,?\d{3}", response), "12", "500000"]
    lines = [
        f"- Question: {' '.join(question)} how many at {'x' * i}? [Answer: {answers[i % len(answers)]}]"
        for i, question in enumerate([["Items"], *questions], start=1)
    ]
    proposal = "\n".join(lines)
    sampler = scripted(lambda _, n: [proposal] if n == 1 else ["1. Evidence: x [Answer: 31]"] * n)
    config = AuditConfig(kinds=("number",), prompts="compact", uncovered=policy, proposer_retries=0)
    result = asyncio.run(audit(QUERY, response, sampler=sampler, prompts=COMPACT, config=config))
    answers_of = defaultdict(list)
    for verdict in result.verdict.claims:
        answers_of[verdict.claim.question].append(parse_number(verdict.claim.answer))
    for request in (request for request in sampler.requests if request.n > 1):
        assert response not in request.text
        listed = [line.partition(". ")[2] for line in request.text.split("It holds 32.\n")[1].split("\n")]
        shown = shown_in("\n".join(listed))
        assert all(
            any(number is None or not shown_by([number]) & shown for number in answers_of[question])
            for question in listed
        )
