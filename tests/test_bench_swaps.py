"""The exchange of one number or name is wrong for certain; rivals that are not installed are left out."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench.answers import questions, unmarked_answers
from bench.rivals import rivals
from bench.swaps import DEFAULT, Change, Variant, count, variants
from pipeline.evaluate.benchmarks import make_benchmark
from reward.offline.rows import AuditRow
from reward.types import Document, RagQuery
from tests.benchmark_files import FOLDERS

TEXT = "Anna Berg of Oslo sold 120 boats in May. In 1990 she met Carl Dahl. Her 37 cats stayed."
NAMES = ("Zara Quill", "Bergen", "Oslo Berg", "Mona Carl Lind")


def row(response: str, row_id: str = "1", text: str = TEXT) -> AuditRow:
    query = RagQuery(id=row_id, query="Who sold 131 boats?", documents=(Document(id="a", text=text),))
    return AuditRow(place="rows:1", query=query, response=response, human_spans=())


def exchanged(response: str, change: Change) -> Variant | None:
    return next((one for one in variants(row(response), NAMES) if one.change is change), None)


def test_a_changed_number_is_near_and_stands_nowhere() -> None:
    answer = "She sold 120 boats."
    for row_id in map(str, range(50)):
        [changed] = [one for one in variants(row(answer, row_id), NAMES) if one.change is Change.NUMBER]
        [(start, end)] = changed.places
        value = changed.response[start:end]
        assert changed.response == f"She sold {value} boats." and 94 <= int(value) <= 146
        assert value not in ("120", "131") and value not in TEXT


@pytest.mark.parametrize(
    "answer",
    [
        "It was 5 boats.",  # one digit
        "It was 500 boats.",  # not in the documents
        "It was $120 or 120%.",
        "On 1.120 and 120.5 and 120-130 and 3/120 it was.",
    ],
)
def test_only_plain_numbers_of_the_documents_are_changed(answer: str) -> None:
    assert exchanged(answer, Change.NUMBER) is None


def test_a_changed_name_is_changed_in_all_its_mentions() -> None:
    found = exchanged("It was Anna Berg, and Anna Berg alone.", Change.NAME)
    assert found is not None and found.response == "It was Zara Quill, and Zara Quill alone."
    assert [found.response[a:b] for a, b in found.places] == ["Zara Quill", "Zara Quill"]


@pytest.mark.parametrize(
    "answer",
    [
        "It was in May.",
        "It was Dora Lund.",  # not in the documents
        "She said that Oslo's port is large.",
        "Anna sold boats.",  # the first word of a sentence may be any
    ],
)
def test_months_and_what_the_documents_do_not_hold_are_no_names_to_change(answer: str) -> None:
    assert exchanged(answer, Change.NAME) is None


def test_the_same_rows_give_the_same_counts() -> None:
    rows = list(unmarked_answers(DEFAULT[0]))
    found = count(rows)
    assert found == count(rows) and found.keys() == {"overall", "QA", "Summary", "Data2txt"}
    sums = sum(found["overall"].values(), Counter())
    assert sums["as_is"] == len(rows) == 30
    assert sums["number_refuted"] / sums["number"] > 0.95


LAYOUTS = {
    "hotpot.json": [{"_id": "a", "question": "Q?", "answer": "Oslo", "context": [["T", ["It.", " He."]]]}],
    "wiki.json": [
        {"_id": "b", "question": "Q?", "answer": "no", "context": [["T", ["It."]]], "evidences": []},
        {"_id": "c", "question": "Q?", "answer": "5 m", "context": [["T", ["A.", "B."]]], "evidences": []},
    ],
    "bench.json": {
        "samples": [
            {"sample_id": 0, "source": "S", "summary": "Right.", "annotations": []},
            {"sample_id": 1, "source": "S", "summary": "Wrong.", "annotations": [{"label": ["Unwanted"]}]},
        ]
    },
}


def test_unmarked_answers_of_each_layout(tmp_path: Path) -> None:
    for name, content in LAYOUTS.items():
        (tmp_path / name).write_text(json.dumps(content))
    paragraph = {"idx": 0, "title": "T", "paragraph_text": "P."}
    line = {"id": "d", "question": "Q?", "answer": "A. B.", "paragraphs": [paragraph]}
    (tmp_path / "musique.jsonl").write_text(json.dumps(line) + "\n")
    found = {one.query.id: one for one in unmarked_answers(tmp_path)}
    assert {key: one.response for key, one in found.items()} == {
        "a": "The answer is Oslo.",
        "c": "The answer is 5 m.",
        "-0": "Right.",
        "d": "The answer is A. B.",
    }
    assert [found[key].query.documents[0].text for key in ("a", "c", "d")] == ["It. He.", "A. B.", "P."]
    assert {one.task_type for one in found.values()} == {
        "HotpotQA",
        "2WikiMultihopQA",
        "FaithBench",
        "MuSiQue",
    }


def test_questions_are_rows_that_an_evaluation_takes(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    asked = list(questions([FOLDERS["hotpotqa"], FOLDERS["musique"]]))
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    items = make_benchmark("jsonl_compact").read_items(rows)
    assert [item.references[0] for item in items][:2] == ["writer", "Canada"] and len(items) == len(asked)
    assert all(len(item.query.documents) > 1 for item in items)


def test_the_tasks_of_ragtruth_are_rows_without_known_answers(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    asked = list(questions([FOLDERS["ragtruth"]]))
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    items = make_benchmark("jsonl_audit_compact").read_items(rows)
    responses = [
        json.loads(line) for line in (FOLDERS["ragtruth"] / "response.jsonl").read_text().splitlines()
    ]
    assert {item.id for item in items} == {str(one["source_id"]) for one in responses}
    assert not any(item.references for item in items) and all(item.query.documents for item in items)


def test_rows_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('[{"id": 1, "text": "x"}]')
    with pytest.raises(ValueError, match=r"other\.json:1 \(row 1\): no row of the data .* \(keys id, text\)"):
        list(unmarked_answers(tmp_path))


def test_rivals_that_are_not_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("corroborate", "opengate_grounding", "grounded"):
        monkeypatch.setitem(sys.modules, name, None)
    found = dict(rivals())
    assert list(found) == ["everything", "verbatim"]
    assert capsys.readouterr().out.count("not installed, so left out; uv pip install '.[bench]'") == 3
    assert found["everything"](row("It was.")) and not found["verbatim"](row("It was 120."))
    assert found["verbatim"](row("It was 121."))
