"""The benchmark of a user's own rows: known answers, by rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.worlds.known import is_right
from reward.types import Document, RagQuery

ROWS = [
    {"id": "a", "query": "How many came?", "documents": ["50 people came."], "answers": ["50", "fifty"]},
    {"id": "b", "query": "Who sang?", "documents": ["50 people came."], "unanswerable": True},
    {
        "id": "c",
        "query": "Did it rain?",
        "documents": [{"id": "d", "text": "It rained."}],
        "answers": ["yes"],
    },
]


def rows_file(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_row_is_asked_in_the_prompts_it_was_trained_in_and_shows_no_answer(tmp_path: Path) -> None:
    path = rows_file(tmp_path, ROWS)
    asked = {}
    for name in ("jsonl", "jsonl_compact"):
        items = make_benchmark(name).read_items(path)
        assert [(item.id, item.slice) for item in items] == [
            ("a", "answerable"),
            ("b", "no document answers"),
            ("c", "answerable"),
        ]
        assert [item.cluster for item in items] == ["a", "a", "c"], "they share a document"
        assert not any(item.query.unanswerable for item in items), "an audit of the answers must not know it"
        (prompt,) = make_benchmark(name).prompts(items[0], PromptStyle.PLAIN)
        asked[name] = prompt.messages
        assert "fifty" not in str(prompt.messages) and "50 people came." in str(prompt.messages)
    assert asked["jsonl"] != asked["jsonl_compact"]


@pytest.mark.parametrize(
    ("item", "reply", "passed"),
    [
        (0, "In all, 50 people came.", True),
        (0, "Fifty.", True),
        (0, "<think>Were it 40 or 60? No.</think>\nFifty.", True),
        (0, "About 500 came.", False),
        (0, "50 or 60 people came.", False),
        (0, "The documents do not say.", False),
        (0, "", False),
        (1, "The documents do not say.", True),
        (1, "Ella sang.", False),
        (1, "", False),
        (2, "Yes, it did.", True),
        (2, "No.", False),
        (2, "Yesterday.", False),
    ],
)
def test_an_answer_is_right_if_it_states_the_known_one(
    tmp_path: Path, item: int, reply: str, passed: bool
) -> None:
    benchmark = make_benchmark("jsonl")
    asked = benchmark.read_items(rows_file(tmp_path, ROWS))[item]
    (prompt,) = benchmark.prompts(asked, PromptStyle.PLAIN)
    judgement = benchmark.read_judgement(asked, prompt, reply)
    assert judgement is not None and judgement.passed is passed
    assert benchmark.judge_request(asked, prompt, reply) == ()


def test_the_figures_of_short_answers_are_measured_where_an_answer_is_known(tmp_path: Path) -> None:
    benchmark = make_benchmark("jsonl")
    known, unanswerable, _ = benchmark.read_items(rows_file(tmp_path, ROWS))
    assert benchmark.measured(known, "plain", "Fifty.") == {"em": 1.0, "f1": 1.0}, "the best of the answers"
    assert benchmark.measured(known, "plain", "fifty people") == {"em": 0.0, "f1": pytest.approx(2 / 3)}
    assert benchmark.measured(unanswerable, "plain", "Ella sang.") == {"em": None, "f1": None}


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("10 July 1883", "Sam Wood was born on July 10, 1883.", True),
        ("10 July 1883", "Sam Wood was born in 1883.", False),
        ("10 July 1883", "Sam Wood was born on July 10, 1883 or on May 3, 1066.", False),
        ("Casablanca", "Sam Wood directed part of Casablanca.", True),
        ("Casablanca", "Sam Wood directed it.", False),
        ("2,000", "There were 2000 of them.", True),
        ("the first film", "It is the first film.", True),
        ("1883", "Sam Wood was born on July 10, 1883.", True),
        ("1883", "Sam Wood was born on July 10, 1883, or in 1884.", False),
        ("50", "In May 2019 about it were 50 people.", True),
        ("Sam Wood", "sam wood did.", True),
        ("Sam Wood", "It was not Sam Wood.", False),
        ("no", "No, he did not.", True),
        ("no", "The answer is no.", True),
        ("no", "There is no mention of it in the documents.", False),
        ("yes", "The documents do not say yes to that.", False),
    ],
)
def test_a_value_is_compared_by_meaning(answer: str, reply: str, right: bool) -> None:
    query = RagQuery(id="1", query="What of Sam Wood?", documents=(Document(id="1", text="Sam Wood."),))
    assert is_right(query, reply, (answer,)) is right


def test_a_row_without_a_known_answer_is_refused_by_its_line(tmp_path: Path) -> None:
    for row in ({}, {"answers": ["50"], "unanswerable": True}, {"answers": [""]}):
        broken = {"id": "x", "query": "How many?", "documents": ["50 came."], **row}
        with pytest.raises(ValueError, match=r"rows\.jsonl:4: answers"):
            make_benchmark("jsonl").read_items(rows_file(tmp_path, [*ROWS, broken]))


def test_a_row_without_documents_is_refused_by_its_line(tmp_path: Path) -> None:
    rows = [*ROWS, {"id": "x", "query": "How many?", "documents": [], "unanswerable": True}]
    with pytest.raises(ValueError, match=r"rows\.jsonl:4: row 'x': documents: is empty; give one at least"):
        make_benchmark("jsonl").read_items(rows_file(tmp_path, rows))


@pytest.mark.parametrize(
    ("reply", "label", "measured"),
    [
        ("In all, fifty people came.", "SUPPORTED", {"refuted": 0.0, "no_claims": 0.0}),
        ("Sixty came.", "REFUTED", {"refuted": 1.0, "no_claims": 0.0}),
        ("Ella Ward sang for fifty.", "REFUTED", {"refuted": 1.0, "no_claims": 0.0}),
        ("The documents do not say.", "NO_CLAIMS", {"refuted": 0.0, "no_claims": 1.0}),
        ("x" * 100_001, None, {"refuted": None, "no_claims": None}),
    ],
)
def test_where_no_answer_is_known_the_lookup_is_the_rule(
    tmp_path: Path, reply: str, label: str | None, measured: dict[str, float | None]
) -> None:
    benchmark = make_benchmark("jsonl_audit")
    (item,) = benchmark.read_items(
        rows_file(tmp_path, [{"id": "a", "query": "How many?", "documents": ["50 people came."]}])
    )
    (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
    judgement = benchmark.read_judgement(item, prompt, reply)
    assert (judgement and judgement.label) == label
    assert judgement is None or judgement.passed is (label == "SUPPORTED")
    assert benchmark.measured(item, prompt.name, reply) == measured
