"""What evaluation sets have, too, is found by question and by document, equal or nearly; nothing else is."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.duplicates import Match, Reason, fingerprint
from pipeline.data.evaluation_sets import OverlapIndex, evaluation_queries
from reward.types import Document, RagQuery
from tests.benchmark_rows import DATA, SLICES, TWOWIKI_DEV, write_bioasq

TEXT = (
    "The last British troops departed New York City on November 25, 1783, marking the end of British rule in "
    "the new United States, after which the city became the capital of the nation for some years."
)
QUESTION = "During which span of years was the war where UN troops approached the Yalu River?"


def query(name: str, question: str, *texts: str) -> RagQuery:
    documents = tuple(Document(id=f"d{place}", text=text) for place, text in enumerate(texts))
    return RagQuery(id=name, query=question, documents=documents)


def found(
    folder: Path, evaluation: list[RagQuery], row: RagQuery, **options: Any
) -> tuple[Reason, Match] | None:
    file = folder / "dev.jsonl"
    file.write_text("".join(f"{one.model_dump_json()}\n" for one in evaluation))
    index = OverlapIndex([file] if evaluation else [])
    overlap = index.find(*fingerprint(row), 0.8, **({"max_shared_documents": 0} | options))
    return (overlap.reason, overlap.match) if overlap.reason and overlap.match else None


@pytest.mark.parametrize(
    ("question", "text", "reason", "similar"),
    [
        (QUESTION, "Something else.", Reason.OVERLAP_QUESTION, 1.0),
        (QUESTION.lower().replace("?", " ?!"), "Something else.", Reason.OVERLAP_QUESTION, 1.0),
        (QUESTION.replace("During which", "In which"), "Something else.", Reason.OVERLAP_QUESTION, 0.9),
        ("Who?", TEXT, Reason.OVERLAP_DOCUMENT, 1.0),
        ("Who?", TEXT.upper(), Reason.OVERLAP_DOCUMENT, 1.0),
        ("Who?", TEXT + " That is all.", Reason.OVERLAP_DOCUMENT, 0.9),
        ("Who?", " ".join(TEXT.split()[:20]), None, None),  # a half of it is another document
        ("Who fought at the Yalu River, and in which years?", "Something else.", None, None),
    ],
)
def test_equal_and_nearly_equal_texts_are_found(
    question: str, text: str, reason: Reason | None, similar: float | None, tmp_path: Path
) -> None:
    overlap = found(tmp_path, [query("e1", QUESTION, "Nothing here.", TEXT)], query("t", question, text))
    if reason is None:
        assert overlap is None
        return
    assert overlap is not None and overlap[0] is reason
    assert overlap[1].dataset == "dev.jsonl"
    assert overlap[1].id == ("e1" if reason is Reason.OVERLAP_QUESTION else "e1: d1")
    assert overlap[1].similarity == pytest.approx(similar, abs=0.09)
    assert (overlap[1].similarity == 1.0) == (similar == 1.0)


def test_an_instruction_is_no_question(tmp_path: Path) -> None:
    sets = [
        query(f"e{i}", "Summarize the following news.", f"Article {i} of the day's news.") for i in range(3)
    ]
    row = query("t", "Summarize the following news.", "Another article.")
    assert found(tmp_path, sets, row) is None
    assert found(tmp_path, sets[:2], row) is not None


def test_a_list_of_questions_alone_is_held_out(tmp_path: Path) -> None:
    file = tmp_path / "held_out.jsonl"
    file.write_text(json.dumps({"id": "e", "query": QUESTION, "documents": []}))
    index = OverlapIndex([file])
    overlap = index.find(*fingerprint(query("t", QUESTION, TEXT)), 0.8, max_shared_documents=0)
    assert (overlap.reason, overlap.num_documents) == (Reason.OVERLAP_QUESTION, 0)
    assert (index.sets[0].num_questions, index.sets[0].num_documents) == (1, 0)


def test_another_file_never_lets_a_question_through(tmp_path: Path) -> None:
    """Three versions of one set, as of HotpotQA's, or three orders of its documents."""
    files = [tmp_path / f"{name}.jsonl" for name in ("distractor", "fullwiki", "gold")]
    for place, file in enumerate(files):
        file.write_text(query("e", QUESTION, TEXT, f"Page {place}.").model_dump_json())
    index = OverlapIndex(files)
    assert index.find(*fingerprint(query("t", QUESTION, "Else.")), 0.8, max_shared_documents=0).reason
    assert [one.num_instructions for one in index.sets] == [0, 0, 0]
    orders = [
        query(f"e{i}", QUESTION, *texts) for i, texts in enumerate(permutations(("One.", "Two.", "Three.")))
    ]
    assert found(tmp_path, orders, query("t", QUESTION, "Else.")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3042\u308b\u3002\u4eba\u53e3\u306f\u7d04\u5343\u56db\u767e\u4e07\u4eba\u3002",
        "\u5317\u4eac\u662f\u4e2d\u56fd\u7684\u9996\u90fd\uff0c\u6709\u4e24\u5343\u591a\u4e07\u4eba\u53e3\u3002",
    ],
)
def test_documents_without_spaces_between_words_are_compared(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, [query("e", "?", text)], query("t", "Who?", text)) is not None


def test_short_documents_tell_nothing(tmp_path: Path) -> None:
    row = query("t", "How much?", "Net sales")
    assert found(tmp_path, [query("e", QUESTION, "Net sales")], row) is None


def test_as_many_documents_as_allowed_may_be_shared(tmp_path: Path) -> None:
    evaluation = [query("e", QUESTION, TEXT, TEXT[::-1])]
    row = query("t", "Who?", TEXT, "Something else.", TEXT[::-1])
    assert found(tmp_path, evaluation, row, max_shared_documents=2) is None
    overlap = found(tmp_path, evaluation, row, max_shared_documents=1)
    assert overlap is not None and overlap[1].num_documents == 2


def test_an_empty_evaluation_set_has_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, [], query("t", QUESTION, TEXT)) is None


def test_the_estimate_is_near_the_jaccard_similarity() -> None:
    words = [f"w{i}" for i in range(304)]
    one, other = words[:204], words[100:]  # 200 pieces each, 100 shared: 1/3
    _, (_, first, second) = fingerprint(query("a", "Who?", " ".join(one), " ".join(other)))
    assert first.jaccard(second) == pytest.approx(1 / 3, abs=0.12)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            {"question_id": "7", "question": "Who?", "context": "Ann."}
            | {"positive_response": "x", "negative_response": "y"},
            RagQuery(id="7", query="Who?", documents=(Document(id="7", text="Ann."),)),
        ),
        (
            {"user_request": "Who?", "context_document": "Ann.", "system_instruction": "x"},
            RagQuery(id="set.jsonl:1", query="Who?", documents=(Document(id="set.jsonl:1", text="Ann."),)),
        ),
    ],
)
def test_evaluation_layouts_are_known_by_their_first_row(
    row: dict[str, Any], expected: RagQuery, tmp_path: Path
) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(row))
    assert list(evaluation_queries(path)) == [expected]


def test_faithbenchs_batches_and_training_layouts_are_known(tmp_path: Path) -> None:
    path = tmp_path / "batch_1.json"
    path.write_text(
        json.dumps({"samples": [{"sample_id": 3, "source": "An article.", "summary": "x"}]}, indent=1)
    )
    assert [one.documents[0].text for one in evaluation_queries(path)] == ["An article."]
    assert len(list(evaluation_queries(TWOWIKI_DEV))) == 6
    assert len(list(evaluation_queries(SLICES["musique"]))) == 8
    assert len(list(evaluation_queries(SLICES["tatqa"]))) == 24
    assert len(list(evaluation_queries(write_bioasq(tmp_path)))) == 40
    assert len(list(evaluation_queries(SLICES["ragtruth"]))) == 3  # the test split


def test_files_that_are_no_json_are_known_as_published() -> None:
    assert len(list(evaluation_queries(DATA / "facts_grounding_layout" / "examples.csv"))) == 3
    pairs = DATA / "contextual_judge_bench_layout" / "data" / "faithfulness_qa-00000-of-00001.parquet"
    assert len(list(evaluation_queries(pairs))) == 2


def test_an_unknown_layout_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"text": "x"}\n')
    with pytest.raises(ValueError, match="its first row is in no layout that is known"):
        list(evaluation_queries(path))
    path.write_text('{"id": "1", "query": "Who?", "documents": ["Ann came."], "answrs": "Ann"}\n')
    with pytest.raises(ValueError, match=r"set\.jsonl:1: answrs: is no key of a row, but answers is"):
        list(evaluation_queries(path))
