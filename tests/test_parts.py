"""Long documents, read in parts under a budget of tokens; what nobody read is told."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.auditor import audit
from reward.config import AuditConfig
from reward.judging.coverage import CoveredClaim
from reward.roles.checker import merged_parts
from reward.roles.parts import Parts, split_documents
from reward.roles.prompts import load_prompts
from reward.types import Answer, AuditResult, Claim, ClaimState, Document, DocumentSpan, Outcome, RagQuery
from tests.kinds import targets

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic raised 466 euros."
CLAIM = "- Question: How many euros did the July picnic raise? [Answer: 466]"
FOUND = '1. Evidence: "The July picnic raised 466 euros." [Answer: 466]'
ABSENT = "1. Evidence: nothing is said. [Answer: Cannot answer]"


def split(documents: list[Document], limit: int, max_parts: int = 8) -> Parts:
    """Splits where a word is a token."""

    async def fits(some) -> bool:
        return sum(len(document.text.split()) for document in some) <= limit

    return asyncio.run(split_documents(documents, fits=fits, max_parts=max_parts, max_chars=16 * limit))


def texts(parts: Parts) -> list[list[str]]:
    return [[document.text for document in part] for part in parts.parts]


def docs(*contents: str) -> list[Document]:
    return [Document(id=f"d{i}", title=f"t{i}", text=text) for i, text in enumerate(contents)]


@pytest.mark.parametrize(
    ("contents", "limit", "expected"),
    [
        (["a b", "c d", "e f"], 6, [["a b", "c d", "e f"]]),
        (["a b", "c d", "e f"], 4, [["a b", "c d"], ["e f"]]),  # whole documents first
        (["a b", "c d e", "f"], 3, [["a b"], ["c d e"], ["f"]]),
        (["a b c d e", "f"], 3, [["a b c"], ["d e", "f"]]),  # the rest of one goes with the next
        (["one two. three four"], 3, [["one two."], ["three four"]]),  # at a sentence
        (
            ["one two three\n\nfour. five six"],
            5,
            [["one two three\n\n"], ["four. five six"]],
        ),  # at a paragraph
        (["", "a"], 4, [["", "a"]]),
    ],
)
def test_documents_are_kept_whole_and_cut_at_the_best_place(contents, limit, expected) -> None:
    parts = split(docs(*contents), limit)
    assert (texts(parts), parts.unread) == (expected, ())
    assert all(document.title for part in parts.parts for document in part)


def test_what_no_part_has_room_for_is_unread() -> None:
    parts = split(docs("a b c d e f", "g h"), 2, max_parts=2)
    assert texts(parts) == [["a b"], ["c d"]]
    assert parts.unread == (
        DocumentSpan(document="d0", start=8, end=11),
        DocumentSpan(document="d1", start=0, end=3),
    )


def test_a_word_that_is_too_long_is_unread_and_not_cut() -> None:
    parts = split(docs("a " + "x" * 200 + " b 12345"), 2)
    assert "x" * 200 not in str(texts(parts)) and "xx" not in str(texts(parts))
    assert parts.unread == (DocumentSpan(document="d0", start=2, end=203),)


@given(
    st.lists(st.text(alphabet="ab1. \n", max_size=60), min_size=1, max_size=4),
    st.integers(1, 12),
    st.integers(1, 5),
)
def test_every_word_is_read_once_in_order_or_listed_as_unread(contents, limit, max_parts) -> None:
    documents = docs(*contents)
    parts = split(documents, limit, max_parts)
    assert len(parts.parts) <= max_parts
    for document in documents:
        read = [piece.text for part in parts.parts for piece in part if piece.id == document.id]
        left = [document.text[s.start : s.end] for s in parts.unread if s.document == document.id]
        assert sorted(" ".join(read + left).split()) == sorted(document.text.split())


@pytest.mark.parametrize(
    ("values", "merged"),
    [
        (["466", None, None], "466"),
        ([None, "466", "466.0"], "466"),
        (["12%", "12"], "12%"),
        ([None, None], None),
        (["466", "unreadable"], "466"),
        (["466", "120"], "unreadable"),
        ([None, "unreadable"], "unreadable"),
        (["unreadable", "unreadable"], "unreadable"),
    ],
)
def test_what_one_voter_says_of_the_parts_is_brought_together(values, merged) -> None:
    answers = [None if value == "unreadable" else Answer(value=value) for value in values]
    (target,) = targets(f"It raised {next((v for v in values if v and v[0].isdigit()), 5)}.")
    result = merged_parts(answers, CoveredClaim(Claim(index=1, question="How much?", answer="466"), target))
    assert ("unreadable" if result is None else result.value) == merged


FILLER = "Nothing of note was said about that on this day. " * 12
QUERY = RagQuery(
    id="q",
    query="How much?",
    documents=(
        Document(id="a", text=FILLER),
        Document(id="b", text=FILLER + "\n\nThe  July picnic\nraised 466 euros. " + FILLER),
    ),
)


def run(sampler, **settings) -> AuditResult:
    config = AuditConfig(**{"kinds": ["number"], "max_prompt_tokens": 130, **settings})
    return asyncio.run(audit(QUERY, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config))


def by_content(messages, n: int) -> list[str]:
    """Answers as a Checker does who reads only its own prompt."""
    text = messages[-1]["content"]
    if messages[0]["content"] == "proposer":
        return [CLAIM]
    return [FOUND if "466 euros" in text else ABSENT] * n


def test_row_11_long_documents_are_read_in_parts_with_all_questions(scripted) -> None:
    sampler = scripted(by_content, with_tokens=True)
    result = run(sampler)
    checked = sampler.requests[1:]
    assert len(checked) > 1
    assert all(request.text.endswith("1. How many euros did the July picnic raise?") for request in checked)
    assert all(len(request.text.split()) <= 130 and request.n == 3 for request in checked)
    assert len(result.trajectories) == 1 + 3 * len(checked)
    verdict = result.verdict
    assert (verdict.outcome, verdict.num_voters, verdict.unread) == (Outcome.SUPPORTED, 3, ())
    place = verdict.claims[0].votes[0].evidence_at
    text = QUERY.documents[1].text
    assert place.document == "b" and text[place.start : place.end] == "The  July picnic\nraised 466 euros."


def test_a_voter_is_paid_alike_for_each_part_that_it_read(scripted) -> None:
    def other_at_last(messages, n: int) -> list[str]:
        answers = by_content(messages, n)
        return [*answers[:-1], answers[-1].replace("466]", "46]")] if n > 1 else answers

    sampler = scripted(other_at_last, with_tokens=True)
    rewards = [turn.own_reward for turn in run(sampler).trajectories]
    num_parts = len(sampler.requests) - 1
    assert num_parts > 1 and rewards == [None, *[0, 0, -1] * num_parts]


def test_a_voter_who_could_not_read_all_has_no_reward_for_finding_nothing(scripted) -> None:
    sampler = scripted(by_content, with_tokens=True)
    assert [turn.own_reward for turn in run(sampler, max_parts=1).trajectories] == [None] * 4


def test_row_11_what_nobody_read_is_in_the_verdict_and_absence_is_then_no_refutation(scripted) -> None:
    verdict = run(scripted(by_content), max_parts=1).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "unread_documents")
    assert {span.document for span in verdict.unread} == {"a", "b"} or verdict.unread[0].document == "b"
    (claim,) = verdict.claims
    assert claim.state is ClaimState.FAILED and "read" in claim.note


def test_a_number_that_was_found_stands_though_not_all_was_read(scripted) -> None:
    verdict = run(scripted(lambda m, n: by_content(m, n) if n == 1 else [FOUND] * n), max_parts=1).verdict
    assert verdict.outcome is Outcome.SUPPORTED and verdict.unread


def test_questions_that_fill_the_prompt_alone_fail_the_audit(scripted) -> None:
    long = CLAIM.replace("picnic", "picnic " + "so " * 140)
    verdict = run(scripted(lambda m, n: [long] if n == 1 else [FOUND] * n)).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSCORED, "prompt_too_long")


def test_short_documents_are_asked_about_in_one_request(scripted, picnic) -> None:
    sampler = scripted([CLAIM, FOUND, FOUND, FOUND])
    config = AuditConfig(kinds=("number",), max_prompt_tokens=130)
    asyncio.run(audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config))
    assert len(sampler.requests) == 2
