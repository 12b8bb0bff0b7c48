"""Claims out of the Proposer's text, answers out of the Checker's."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.judging.vote import vote
from reward.roles.formats import normal_question, parse_answers, parse_claims, quoted_questions
from reward.types import Answer, Claim, ClaimState
from tests.kinds import kinds


def claims_of(text: str, max_claims: int = 64) -> list[tuple[int, str, str]]:
    return [
        (c.index, c.question, c.answer)
        for c in parse_claims(text, max_claims=max_claims, kinds=kinds()).claims
    ]


def values_of(text: str, num_questions: int, *, complete: bool = True) -> list[str | None]:
    """The answers as text; "-" for a missing one and None for "cannot answer"."""
    answers = parse_answers(text, num_questions, complete=complete)
    return ["-" if answer is None else answer.value for answer in answers]


def test_claims_in_the_papers_format() -> None:
    text = "- Question: How much did it raise? [Answer: 466]\n- Question: How many came? [Answer: 1,200]"
    assert claims_of(text) == [(1, "How much did it raise?", "466"), (2, "How many came?", "1,200")]
    assert parse_claims(text, max_claims=64, kinds=kinds()).num_malformed == 0


@pytest.mark.parametrize(
    "text",
    [
        "- Question: How much?\n[Answer: 466]",
        "- Question: How much?\r\n\r\n[Answer: 466]\r\n",
        "* question:  How   much? [ANSWER:466].",
        "1. Question: How much? [Answer: 466]",
    ],
)
def test_harmless_variants_of_a_claim(text: str) -> None:
    assert claims_of(text) == [(1, "How much?", "466")]


@pytest.mark.parametrize(
    ("text", "num_malformed"),
    [
        ("", 0),
        ("Here are the questions:", 1),
        ("- Question: How much?", 1),
        ("- Question: How much? [Answer: ]", 1),
        ("- Question: How much? [Answer: 50 or 52]", 1),
        ("- Question: How much? [Answer: 10-20-30]", 1),
        ("- Question: How much? [Answer: many]", 1),
        ("- Question: How much? [Answer: 466", 1),
        ("- Question: [Answer: 466]", 1),
        ("[Answer: 466]", 1),
        ("- Question: How much? [Answer: 466] I think", 1),
        ("- Question: How much [Answer: 1] or? [Answer: 466]", 1),
        ("They say: Question: How much? [Answer: 466]", 1),
    ],
)
def test_what_is_no_claim_is_counted(text: str, num_malformed: int) -> None:
    parsed = parse_claims(text, max_claims=64, kinds=kinds())
    assert parsed.claims == ()
    assert parsed.num_malformed == num_malformed


def test_row_07_a_question_without_a_tag_does_not_take_the_next_ones() -> None:
    text = "- Question: How much?\n- Question: How many came? [Answer: 50]"
    assert claims_of(text) == [(1, "How many came?", "50")]
    assert parse_claims(text, max_claims=64, kinds=kinds()).num_malformed == 1


@pytest.mark.parametrize(
    "question",
    [
        "Did it raise 466 euros?",
        "Did it raise €466.00?",
        "Did it raise four hundred sixty-six euros?",
        "How many of the 466 rooms burnt?",  # by chance: nobody can tell
        "What is COVID-466?",
        "466. How much?",
        "Did it raise ④⑥⑥ euros?",
        "Did it raise ⁴⁶⁶ euros?",
        "Did it raise 四百六十六 euros?",
    ],
)
def test_a_question_that_holds_its_own_answer_is_refused(question: str) -> None:
    parsed = parse_claims(f"- Question: {question} [Answer: 466]", max_claims=64, kinds=kinds())
    assert parsed.claims == ()
    assert parsed.num_malformed == 1


def test_a_claim_about_a_composite_is_one_and_its_question_holds_no_part_of_it() -> None:
    text = "- Question: {} [Answer: 52-59]"
    assert claims_of(text.format("Between which shares?")) == [(1, "Between which shares?", "52-59")]
    assert claims_of(text.format("From 52 to which share?")) == []


@pytest.mark.parametrize(
    "response",
    [
        "It drew 50.\n- Question: How many  came? [Answer: 50]",
        "question: x Question: how many came? [answer: 50]",
        "- QUESTION: *How many came?*\n[Answer: 50]",
        "- Question: How many came? [ Answer : 50]",
        "- Question : How many came?\n\nas follows [answer\n: [50]]",
    ],
)
def test_the_questions_that_a_response_holds_itself(response: str) -> None:
    assert normal_question("How many came?") in quoted_questions(response)


def test_a_bracket_in_a_question_hides_nothing_of_it() -> None:
    response = "- Question: Who was [again] a guest? [Answer: Karl Berg]"
    assert quoted_questions(response) == {normal_question("Who was [again] a guest?")}


def test_a_question_without_a_tag_is_only_a_question() -> None:
    assert quoted_questions("Question: how many came? 50 [1] came. [Answer]") == set()


def test_an_enumerator_gives_no_answer_away_by_itself() -> None:
    assert (
        parse_claims("- Question: 1. How many came? [Answer: 1]", max_claims=9, kinds=kinds()).num_malformed
        == 1
    )


def test_more_claims_than_allowed_are_told() -> None:
    text = "\n".join(f"- Question: How much is {'x' * i}? [Answer: {i}]" for i in range(1, 6))
    assert not parse_claims(text, max_claims=5, kinds=kinds()).too_many
    parsed = parse_claims(text, max_claims=4, kinds=kinds())
    assert parsed.too_many
    assert len(parsed.claims) == 4


def test_answers_in_the_papers_format() -> None:
    text = (
        "1. Evidence: Document 1 states that 50 people will take the bar exam in Beijing in 2024.\n"
        "[Answer: 50]\n"
        "2. Evidence: The materials say nothing about 2025.\n[Answer: Cannot answer]"
    )
    assert parse_answers(text, 2) == [
        Answer(
            value="50", evidence="Document 1 states that 50 people will take the bar exam in Beijing in 2024."
        ),
        Answer(value=None, evidence="The materials say nothing about 2025."),
    ]


def test_answers_as_in_the_papers_case_study() -> None:
    text = "1. Evidence: Document-5 states that 52% had them.\nAnswer: 52\n\n2. Evidence: 59%.\nAnswer: 59 \n"
    assert values_of(text, 2) == ["52", "59"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2. Evidence: b [Answer: 2]\n1. Evidence: a [Answer: 1]", ["1", "2", "-"]),
        ("3. Evidence: c [Answer: 3]", ["-", "-", "3"]),
        ("1. Evidence: a [Answer: 1]\n3. Evidence: c [Answer: 3]", ["1", "-", "3"]),
        ("[Answer: 7]\n2. Evidence: b [Answer: 2]", ["-", "2", "-"]),
        ("0. Evidence: z [Answer: 9]\n4. Evidence: d [Answer: 4]", ["-", "-", "-"]),
    ],
)
def test_row_06_answers_go_by_question_number_and_never_by_position(text: str, expected: list[str]) -> None:
    assert values_of(text, 3) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Evidence: no tag here\n2. Evidence: b [Answer: 2]", ["-", "2"]),
        ("1. Evidence: a [Answer: 1\n2. Evidence: b [Answer: 2]", ["-", "2"]),
        ("1. no heading\n2. [Answer: 2]", ["-", "2"]),
        ("1. Evidence: a [Answer: 1]\n2. Evidence: none\n3. Evidence: made up [Answer: 3]", ["1", "-"]),
    ],
)
def test_row_07_item_without_a_tag_does_not_swallow_the_next(text: str, expected: list[str]) -> None:
    assert values_of(text, 2) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Evidence: it says [Answer: 7] there, but [Answer: 5]", ["5"]),
        ("1. Evidence: it says\n[Answer: 7]\nbut really\n[Answer: 5]", ["5"]),
        ("1. Evidence: it says [Answer: 7] in the text", ["-"]),
        ("1. Evidence: a [Answer: 7]\n[Answer: 5 or 6]", ["5 or 6"]),
    ],
)
def test_row_07_the_last_tag_of_an_item_wins(text: str, expected: list[str]) -> None:
    assert values_of(text, 1) == expected


@pytest.mark.parametrize("tag", ["", " ", "n" * 401])
def test_an_empty_or_endless_answer_is_missing(tag: str) -> None:
    assert values_of(f"1. Evidence: a [Answer: {tag}]", 1) == ["-"]


@pytest.mark.parametrize("tag", ["many", "50 or 52", "n", "Cannot answer 5", "unknown"])
def test_what_is_no_number_is_no_vote_on_one(tag: str) -> None:
    claim = Claim(index=1, question="How many?", answer="5")
    (answer,) = parse_answers(f"1. Evidence: a [Answer: {tag}]", 1)
    assert vote(claim, [answer], num_valid_needed=1).state is ClaimState.FAILED


@pytest.mark.parametrize("tag", ["Cannot answer", "cannot answer", "Cannot answer."])
def test_cannot_answer_is_an_answer(tag: str) -> None:
    assert values_of(f"1. Evidence: a [Answer: {tag}]", 1) == [None]


def test_a_number_answered_twice_counts_only_when_both_agree() -> None:
    twice = "1. Evidence: a [Answer: {}]\n1. Evidence: b [Answer: {}]"
    assert values_of(twice.format(5, 5), 1) == ["5"]
    assert values_of(twice.format(5, 6), 1) == ["-"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Evidence: a [Answer: 5]\n2. Evidence: b [Answer: 46", ["5", "-"]),
        ("1. Evidence: a [Answer: 5]\n2. Evidence: b\nAnswer: 46", ["5", "-"]),
        ("1. Evidence: a [Answer: 5]\n2. Evidence: b [Answer: 46]", ["5", "46"]),
        ("1. Evidence: a [Answer: 5]", ["5", "-"]),
    ],
)
def test_a_cut_text_gives_only_its_complete_answers(text: str, expected: list[str]) -> None:
    assert values_of(text, 2, complete=False) == expected


def test_a_decimal_at_a_line_start_opens_no_item() -> None:
    text = "1. Evidence: it says\n2.5 million came [Answer: 2500000]"
    assert values_of(text, 2) == ["2500000", "-"]


ODD = st.text(alphabet=st.sampled_from("[]Answer: 12.-\nQuestionEvidc\r\t*"), max_size=200)


@given(ODD | st.text(max_size=200), st.integers(0, 5), st.booleans())
def test_answers_of_any_text(text: str, num_questions: int, complete: bool) -> None:
    assert len(parse_answers(text, num_questions, complete=complete)) == num_questions


@given(ODD | st.text(max_size=200), st.integers(1, 5))
def test_claims_of_any_text(text: str, max_claims: int) -> None:
    parsed = parse_claims(text, max_claims=max_claims, kinds=kinds())
    assert [claim.index for claim in parsed.claims] == list(range(1, len(parsed.claims) + 1))
    assert len(parsed.claims) <= max_claims
    assert all("\n" not in claim.question and "[Answer:" not in claim.question for claim in parsed.claims)


@given(st.permutations(range(1, 8)), st.data())
def test_answers_do_not_depend_on_the_order_of_the_items(order: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-999, 999), min_size=7, max_size=7))
    text = "\n".join(f"{place}. Evidence: it says so. [Answer: {values[place - 1]}]" for place in order)
    assert values_of(text, 7) == [str(value) for value in values]


@pytest.mark.parametrize(
    "piece",
    [
        "[Answer: ",
        "[Answer: 1]",
        "1. ",
        "1. Evidence: a\n",
        "- Question: ",
        "- Question: a\n",
        "[",
        " ",
        "\n",
        "*",
        "1",
        "Answer:\n",
    ],
)
def test_row_07_parsing_a_megabyte_takes_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    parse_answers(text, 64)
    parse_claims(text, max_claims=64, kinds=kinds())
    quoted_questions(text)
    assert time.process_time() - start < 5.0  # a quadratic pattern takes minutes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('1. Evidence: "x" [Answer: 84] 2. Evidence: "y" [Answer: 12]', ["84", "12"]),
        ('1. Evidence: "the [1] 2. deck" [Answer: 84]\n2. Evidence: "y" [Answer: 12]', ["84", "12"]),
        ('1. Evidence: "x" [Answer: 84] **2.** Evidence: "y" [Answer: 12]', ["84", "12"]),
        ('1. Evidence: "x" [Answer: 84]\n(2) Evidence: "y" [Answer: 12]', ["-", "-"]),
        ('1. Evidence: "x" [Answer: 84]\n2: Evidence: "y" [Answer: 12]', ["-", "-"]),
        ('1. Evidence: "x" [Answer: 84]\nEvidence: "y" [Answer: 12]', ["-", "-"]),
        (
            "1. Evidence: x [Answer: **Cannot answer**]\n2. Evidence: y [Answer: \u201c12\u201d]",
            ["cannot", "12"],
        ),
        ("1. Evidence: x [Answer : 84]\n2. Evidence: y [Answer: Cannot be answered.]", ["84", "cannot"]),
    ],
)
def test_no_answer_goes_to_another_question(text: str, expected: list[str]) -> None:
    found = parse_answers(text, 2)
    assert ["-" if one is None else one.value or "cannot" for one in found] == expected


@pytest.mark.parametrize(
    "line", ["- **Question:** How many came? [Answer: 50]", '- Question: How many came? **[Answer: "50"]**']
)
def test_a_question_in_bold_is_one(line: str) -> None:
    (claim,) = parse_claims(line, max_claims=4, kinds=kinds()).claims
    assert (claim.question, claim.answer) == ("How many came?", "50")
