"""Rows that nearly repeat a row before are found; rows that ask something else are kept."""

import pytest

from pipeline.data.duplicates import Match, RowsBefore, fingerprint
from reward.types import Document, RagQuery

QUESTION = "What was the total revenue of the company in fiscal year 2017, before the sale of its branch?"
TEXTS = [" ".join(f"word{i * 7 + j * j}" for j in range(60)) for i in range(5)]


@pytest.fixture
def before() -> RowsBefore:
    return RowsBefore()


def keep(
    before: RowsBefore, name: str, question: str, texts: list[str], threshold: float = 0.8
) -> Match | None:
    documents = tuple(Document(id=str(place), text=text) for place, text in enumerate(texts))
    keys, found = fingerprint(RagQuery(id=name, query=question, documents=documents))
    return before.add_kept(name, "jsonl", keys, found, threshold)


@pytest.mark.parametrize(
    ("question", "texts", "is_near"),
    [
        (QUESTION, TEXTS, True),
        (QUESTION, TEXTS[::-1], True),  # in another order
        (QUESTION.upper() + " ", [*TEXTS[:4], TEXTS[4] + " more"], True),
        (QUESTION.replace("2017", "2018"), TEXTS, False),
        (QUESTION.replace("before", "after"), TEXTS, False),  # nearly the same, and not the same
        (QUESTION, TEXTS[:2], False),
    ],
)
def test_near_duplicates(question: str, texts: list[str], is_near: bool, before: RowsBefore) -> None:
    assert keep(before, "a", QUESTION, TEXTS) is None
    match = keep(before, "b", question, texts)
    assert (match is not None) == is_near
    if match is not None:
        assert (match.id, match.dataset) == ("a", "jsonl") and match.similarity >= 0.8


@pytest.mark.parametrize(
    ("question", "another"),
    [
        ("Who designed the language C?", "Who designed the language C++?"),
        ("Who designed the language C?", "Who designed the language C#?"),
        (
            "\u0909\u0938\u0915\u093e \u092a\u0941\u0924\u094d\u0930",
            "\u0909\u0938\u0915\u0940 \u092a\u0941\u0924\u094d\u0930\u0940",
        ),
    ],
)
def test_what_a_mark_tells_apart_is_asked_twice(question: str, another: str, before: RowsBefore) -> None:
    assert keep(before, "a", question, TEXTS) is None
    assert keep(before, "b", another, TEXTS) is None


def test_a_threshold_of_one_is_for_equal_words_alone(before: RowsBefore) -> None:
    words = [f"word{number}" for number in range(6_000)]
    texts = [" ".join([*words, number, *words]) for number in ("2000", "2001")]
    queries = [RagQuery(id="", query="Q", documents=(Document(id="", text=one),)) for one in texts]
    hashes = [fingerprint(one)[1][1] for one in queries]
    assert hashes[0].jaccard(hashes[1]) == 1, "the estimate cannot tell them apart"
    assert keep(before, "a", QUESTION, texts[:1], 1.0) is None
    assert keep(before, "b", QUESTION, texts[1:], 1.0) is None
    match = keep(before, "c", QUESTION, [texts[1].upper()], 1.0)
    assert match == Match(id="b", dataset="jsonl", similarity=1.0)
    assert keep(before, "d", QUESTION, ["In 1912."], 1.0) is None
    assert keep(before, "e", QUESTION, ["In 1913."], 1.0) is None


def test_the_first_of_several_is_named(before: RowsBefore) -> None:
    keep(before, "a", QUESTION, TEXTS)
    assert keep(before, "other", "Who founded the company, and when?", TEXTS) is None
    for name in "bc":
        match = keep(before, name, QUESTION, TEXTS)
        assert match is not None and match.id == "a"


def test_equal_content_and_one_id_for_two_contents(before: RowsBefore) -> None:
    assert before.add("a", "musique", b"1", "a.jsonl:1") is None
    assert before.add("a", "musique", b"1") == Match(id="a", dataset="musique", similarity=1.0)
    assert before.add("b", "tatqa", b"1") == Match(id="a", dataset="musique", similarity=1.0)
    with pytest.raises(
        ValueError, match=r"^a\.jsonl:1, b\.jsonl:7: id: 'a' belongs to two different queries"
    ):
        before.add("a", "musique", b"2", "b.jsonl:7")
    with pytest.raises(ValueError, match=r"^a\.jsonl:1, b\.jsonl:8: unanswerable: true for one row and not"):
        before.add("c", "musique", b"1", "b.jsonl:8", unanswerable=True)
