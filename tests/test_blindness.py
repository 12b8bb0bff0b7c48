"""The Checker never sees the response or a claimed answer: by signature, and in every prompt it is shown."""

import asyncio
import inspect
import random
import re

import pytest

from reward import audit as audit_module
from reward.auditor import audit
from reward.config import AuditConfig
from reward.prompts import PromptSet, load_prompts
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
        config = AuditConfig(prompts=name)
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
        config = AuditConfig(prompts=name)
        asyncio.run(audit(query, response, sampler=sampler, prompts=prompts, config=config))
        (checker,) = [request for request in sampler.requests if request.n > 1]
        rendered = "\n".join(message["content"] for message in checker.messages)
        assert not any(str(number) in rendered or f"{number:,}" in rendered for number in numbers)
        assert response not in rendered


def test_neither_the_renderer_nor_the_checkers_step_accepts_a_response() -> None:
    assert list(inspect.signature(PromptSet.checker).parameters) == ["self", "documents", "questions"]
    step = inspect.signature(audit_module._check).parameters
    assert list(step) == ["documents", "questions", "sampler", "prompts", "config"]
