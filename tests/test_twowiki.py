"""2WikiMultihopQA's official rows become queries without anything that tells the answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from reward.types import RagQuery
from tests.benchmark_rows import queries_of

TWOWIKI = Path(__file__).parent / "data" / "2wikimultihopqa" / "train.json"
ROW: dict[str, Any] = {
    "_id": "a",
    "question": "Who?",
    "context": [["Ann", ["Ann is.", "She was."]], ["Bob", []]],
    "answer": "Ann",
}


def read(path: Path) -> list[RagQuery]:
    return queries_of("2wikimultihopqa", path)


def test_the_fixture_reads_as_published() -> None:
    raw = json.loads(TWOWIKI.read_text())
    queries = read(TWOWIKI)
    assert len(queries) == 24
    for query, row in zip(queries, raw, strict=True):
        assert (query.id, query.query) == (row["_id"], row["question"])
        expected = [(title, " ".join(sentences)) for title, sentences in row["context"]]
        assert [(document.title, document.text) for document in query.documents] == expected


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ROW, ROW | {"_id": "b"}]),
        json.dumps([ROW, ROW | {"_id": "b"}], indent=1),
        json.dumps(ROW) + "\n" + json.dumps(ROW | {"_id": "b"}) + "\n\n",
        "\ufeff \n [" + json.dumps(ROW) + "\n,\n" + json.dumps(ROW | {"_id": "b"}) + "\n]\n",
    ],
)
def test_a_list_and_lines_are_both_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    queries = read(path)
    assert [query.id for query in queries] == ["a", "b"]
    assert [document.text for document in queries[0].documents] == ["Ann is. She was.", ""]
    assert [document.id for document in queries[0].documents] == ["a#0", "a#1"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps([ROW])[:-1], "the list does not end"),
        (json.dumps([ROW]) + "{}", "the list does not end there"),
        (json.dumps([ROW])[:-20], "rows.json:1 (row 1): not JSON"),
        (
            "[\n" + json.dumps(ROW) + ",\n" + json.dumps(ROW | {"context": []}) + "]",
            "rows.json:3 (row 2): context: ",
        ),
        (json.dumps(ROW | {"question": ""}), "rows.json:1: question: "),
        (json.dumps({key: ROW[key] for key in ("question", "context")}), "rows.json:1: _id: missing; add it"),
        (
            json.dumps(ROW | {"context": {"title": ["Ann"], "sentences": [["Ann is."]]}}),
            "rows.json:1: context",
        ),
        ("[1]", "rows.json:1 (row 1): "),
        ("[" * 100_000, "rows.json:1 (row 1): "),
    ],
)
def test_a_damaged_file_is_one_clear_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        read(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "rows.json")
    (tmp_path / "rows.json").write_bytes(b"\x1f\x8b\xff")
    with pytest.raises(ValueError, match="is not UTF-8"):
        read(tmp_path / "rows.json")
