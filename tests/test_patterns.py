"""What a constrained model writes always parses."""

import asyncio
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward.auditor import audit
from reward.claims.numbers import parse_number
from reward.claims.numbers.questions import shown_by, shown_in
from reward.config import AuditConfig
from reward.roles.formats import checker_pattern, parse_answers, parse_claims, proposer_pattern
from reward.roles.prompts import load_prompts
from tests.kinds import kinds

QUICK = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.from_regex(proposer_pattern(3), fullmatch=True))
def test_every_match_of_the_proposers_pattern_parses_completely(text: str) -> None:
    parsed = parse_claims(text, max_claims=3, kinds=kinds())
    assert not parsed.too_many
    lines = text.split("\n")
    assert len(parsed.claims) + parsed.num_malformed == len(lines)
    for line in lines:
        question, _, answer = line.removeprefix("- Question: ").rpartition(" [Answer: ")
        number = parse_number(answer.removesuffix("]"))
        assert number is not None, answer
        leaks = bool(shown_by([number]) & shown_in(question))
        assert leaks or any(claim.answer == answer.removesuffix("]") for claim in parsed.claims)


@pytest.mark.parametrize("answer", ["012345678", "012345.678", "000,000.000"])
def test_no_answer_begins_with_a_nought_that_a_telephone_number_has(answer: str) -> None:
    assert not re.fullmatch(proposer_pattern(1), f"- Question: Which number is it? [Answer: {answer}]")


@QUICK
@given(
    st.integers(1, 4).flatmap(
        lambda q: st.tuples(st.just(q), st.from_regex(checker_pattern(q), fullmatch=True))
    )
)
def test_every_match_of_the_checkers_pattern_parses_completely(drawn: tuple[int, str]) -> None:
    num_questions, text = drawn
    answers = parse_answers(text, num_questions)
    assert None not in answers
    tags = re.findall(r"\[Answer: ([^\]]*)\]$", text, re.MULTILINE)
    assert [answer and (answer.value or "Cannot answer") for answer in answers] == tags


@pytest.mark.parametrize(
    "text",
    [
        '1. Evidence: "The ferry carries 84 cars [1]." [Answer: 84]',
        "1. Evidence: It says nothing. [Answer: Cannot answer]",
        '1. Evidence: "On 3 May 2031" [Answer: 3 May 2031]',
        '1. Evidence: "at 5:30 pm" [Answer: 5:30 pm]',
        '1. Evidence: "12,5" [Answer: -1,234.5]',
        '1. Evidence: "52 to 59 percent" [Answer: 52-59]',
    ],
)
def test_what_a_checker_may_write(text: str) -> None:
    assert re.fullmatch(checker_pattern(1), text)
    assert parse_answers(text, 1) != [None]


@pytest.mark.parametrize(
    "text",
    [
        "1. Evidence: a [Answer: 84] [Answer: 85]",
        "2. Evidence: a [Answer: 84]",
        "1. Evidence: a [Answer: many]",
        "1. Evidence: a [Answer: 84]\n",
        "Evidence: a [Answer: 84]",
    ],
)
def test_what_a_checker_may_not_write(text: str) -> None:
    assert not re.fullmatch(checker_pattern(1), text)


def test_the_proposers_list_is_bounded() -> None:
    line = "- Question: How many? [Answer: 5]"
    assert re.fullmatch(proposer_pattern(2), f"{line}\n{line}")
    assert not re.fullmatch(proposer_pattern(2), f"{line}\n{line}\n{line}")
    assert not re.fullmatch(proposer_pattern(1), f"{line}\n{line}")


@pytest.mark.parametrize(("structured", "constrained"), [("none", []), ("proposer", [1]), ("all", [1, 3])])
def test_the_setting_says_which_roles_are_constrained(structured, constrained, scripted, picnic) -> None:
    claim = "- Question: The July picnic raised how many euros? [Answer: 466]"
    checked = "1. Evidence: it says so [Answer: 466]"
    sampler = scripted([claim, checked, checked, checked])
    config = AuditConfig(structured=structured)
    asyncio.run(
        audit(picnic, "It raised 466 euros.", sampler=sampler, prompts=load_prompts("compact"), config=config)
    )
    assert [request.n for request in sampler.requests if request.pattern] == constrained
    for request, text in zip(sampler.requests, [claim, checked], strict=True):
        assert request.pattern is None or re.fullmatch(request.pattern, text)


@pytest.mark.slow
def test_vllms_grammar_engine_compiles_them() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    vocabulary = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(vocabulary, stop_token_ids=[256]))
    for pattern, text in (
        (proposer_pattern(64), "- Question: How many? [Answer: 5]"),
        (checker_pattern(64), "1. Evidence: \u00e9 [1]"),
    ):
        matcher = xgrammar.GrammarMatcher(compiler.compile_regex(pattern))
        assert matcher.accept_string(text)


@pytest.mark.parametrize(
    "name",
    [
        "50 Cent",
        "eBay",
        "\u1e28oseyn\u0101b\u0101d",
        "\u0391\u03b8\u03ae\u03bd\u03b1",
        "\u041c\u043e\u0441\u043a\u0432\u0430",
        "\u5317\u4eac",
    ],
)
def test_names_of_any_script_may_be_written(name: str) -> None:
    every = ("number", "name", "date")
    assert re.fullmatch(checker_pattern(1, every), f"1. Evidence: it says so [Answer: {name}]")
    line = f"- Question: Who was it? [Answer: {name}]"
    assert re.fullmatch(proposer_pattern(1, every), line)
    (claim,) = parse_claims(line, max_claims=1, kinds=kinds(*every)).claims
    assert claim.answer == name
