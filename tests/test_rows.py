"""Rows to audit are read strictly: what is wrong is one line with file, line, field and fix."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward.offline.agreement import Target, marked
from reward.offline.inputs import RowFormat, format_of, read_rows
from reward.offline.rows import AuditRow

RAGTRUTH = Path(__file__).parent / "data" / "ragtruth"
ROW: dict[str, Any] = {
    "id": "a",
    "query": "How much?",
    "documents": [{"id": "d1", "title": "Prices", "text": "It costs 5 euros."}],
    "response": "5 euros.",
}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path, row_format: RowFormat = RowFormat.JSONL) -> list[AuditRow]:
    return list(read_rows(path, row_format))


def test_a_row_is_read_as_it_stands(tmp_path: Path) -> None:
    [row] = read(write(tmp_path / "in.jsonl", ROW))
    assert row.query.model_dump(mode="json") == {key: ROW[key] for key in ("id", "query", "documents")}
    assert (row.response, row.place) == ("5 euros.", f"{tmp_path / 'in.jsonl'}:1")
    assert (row.human_spans, marked(row, Target.PLAIN), row.task_type) == (None, None, None)


def test_exports_need_no_rewriting(tmp_path: Path) -> None:
    documents = [{"id": 7, "text": "Five.", "score": 0.9}]
    [row] = read(write(tmp_path / "in.jsonl", ROW | {"id": 12, "documents": documents, "model": "m"}))
    assert (row.query.id, row.query.documents[0].id, row.query.documents[0].title) == ("12", "7", "")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("unanswerabel", "unanswerable"), ("Unanswerable", "unanswerable"), ("human_span", "human_spans")],
)
def test_a_misspelt_key_is_named_with_the_right_one(wrong: str, right: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", ROW, ROW | {wrong: None})
    with pytest.raises(
        ValueError, match=rf"in\.jsonl:2: {wrong}: is no key of a row, but {right} is; fix the"
    ):
        read(path)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (json.dumps(ROW)[:-1] + ', "response": "6 euros."}', "response"),
        (json.dumps(ROW)[:-1] + ', "model": "a", "model": "b"}', "model"),
        (json.dumps(ROW).replace('"text":', '"text": "Six.", "text":'), "text"),
    ],
    ids=["that is read", "that is not read", "of a document"],
)
def test_a_key_that_is_there_twice_is_named(line: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(f"\ufeff{line}\n")
    with pytest.raises(ValueError, match=rf"in\.jsonl:1: {key}: is given twice; keep one of the two"):
        read(path)


def test_other_keys_are_not_read_and_named(tmp_path: Path) -> None:
    own = {"source_file": "a.txt", "source": "web", "answer": "5", "task": "QA"}
    [row] = read(write(tmp_path / "in.jsonl", ROW | own))
    assert row.unused_keys == tuple(own)


@pytest.mark.parametrize(
    "raw",
    [
        "\ufeff" + json.dumps(ROW) + "\n",
        "\n  \n" + json.dumps(ROW) + "\r\n\n",
        json.dumps(ROW),
        json.dumps(ROW | {"x": "\u2028 \x85 \x0b"}, ensure_ascii=False) + "\n",
    ],
    ids=["byte order mark", "blank lines", "no last line end", "other line ends inside a text"],
)
def test_layouts_of_a_file(raw: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(raw.encode())
    assert [row.query.id for row in read(path)] == ["a"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", ', "not JSON"),
        ("[]", "fix the row"),
        ("null", "fix the row"),
        (json.dumps({key: ROW[key] for key in ("id", "query", "documents")}), "response: missing; add it"),
        (json.dumps(ROW | {"response": 5}), "response: Input should be a valid string (found 5)"),
        (json.dumps(ROW | {"id": ""}), "id: "),
        (json.dumps(ROW | {"id": "i" * 2_049}), "id: has over 2048 characters; shorten it (found 'iii"),
        (json.dumps(ROW | {"id": None}), "id: "),
        (
            json.dumps(ROW | {"documents": [5]}),
            "documents.0: is neither a text nor an object with id and ",
        ),
        (json.dumps(ROW | {"documents": "It costs 5 euros."}), "documents: "),
        (json.dumps(ROW | {"human_spans": [{"start": -1, "end": 2}]}), "human_spans.0.start: "),
        (json.dumps(ROW | {"documents": [{"id": "d1"}]}), "documents.0.text: missing; add it"),
        (json.dumps(ROW | {"documents": ROW["documents"] * 2}), "documents: id 'd1' is used twice"),
        (json.dumps(ROW | {"response": "\ud800"}), "not JSON"),
        ('{"id": ' + "[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_row_is_one_clear_line(line: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + line + "\n")
    rows = read_rows(path, RowFormat.JSONL)
    next(rows)
    with pytest.raises(ValueError, match=r".") as caught:
        next(rows)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"id": "\xff"}\n', "byte 9 of the line (0xff) is not UTF-8; save the file as UTF-8"),
        (json.dumps(ROW).encode("utf-16"), "byte 1 of the line (0xff) is not UTF-8; save the file as UTF-8"),
        (gzip.compress(json.dumps(ROW).encode()), "is gzipped; unpack it with gunzip"),
        (json.dumps([ROW]).encode(), "is a JSON list; write one row a line, as jq -c '.[]' does"),
        (json.dumps([ROW], indent=2).encode("utf-8-sig"), "is a JSON list; write one row a line"),
    ],
    ids=["Latin-1", "UTF-16", "gzip", "list", "list of several lines"],
)
def test_a_file_that_is_something_else_says_what_it_is(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{path}:1: {says}")):
        read(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary() | st.dictionaries(st.sampled_from(sorted(ROW)), st.none() | st.text()).map(json.dumps)
)
def test_whatever_a_file_holds_the_error_is_one_line(content: bytes | str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        read(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}:")
        assert "\n" not in str(error)


def test_a_document_may_be_a_text(tmp_path: Path) -> None:
    [row] = read(write(tmp_path / "in.jsonl", ROW | {"documents": ["It costs 5.", "Or 6."]}))
    assert [(document.id, document.text) for document in row.query.documents] == [
        ("1", "It costs 5."),
        ("2", "Or 6."),
    ]


def test_rows_may_say_what_people_marked_and_where_they_come_from(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 1}]
    more = {"task_type": "QA", "source_id": 7, "human_spans": spans}
    [row] = read(write(tmp_path / "in.jsonl", ROW | more))
    assert (row.task_type, row.source_id, row.cluster, marked(row, Target.PLAIN)) == ("QA", "7", "7", True)


def test_without_a_source_rows_on_the_same_documents_are_one_cluster(tmp_path: Path) -> None:
    rows = [ROW, ROW | {"id": "b", "response": "6"}, ROW | {"id": "c", "query": "Why?"}]
    first, second, third = read(write(tmp_path / "in.jsonl", *rows))
    assert first.cluster == second.cluster != third.cluster


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", RowFormat.JSONL),
        ("a.NDJSON", RowFormat.JSONL),
        ("a.json", RowFormat.JSONL),
        ("a.csv", RowFormat.CSV),
        ("a.tsv", RowFormat.CSV),
        ("a.parquet", RowFormat.PARQUET),
        ("response.jsonl", RowFormat.JSONL),
    ],
)
def test_a_format_is_told_by_the_name(name: str, expected: RowFormat, tmp_path: Path) -> None:
    assert format_of(tmp_path / name) is expected


def test_ragtruth_is_told_by_its_two_files() -> None:
    assert format_of(RAGTRUTH) is format_of(RAGTRUTH / "response.jsonl") is RowFormat.RAGTRUTH


def test_a_name_that_says_nothing_needs_a_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"suffix '\.txt' does not say what it is; add --format"):
        format_of(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz: is gzipped; unpack it with gunzip"):
        format_of(tmp_path / "a.jsonl.gz")
    with pytest.raises(ValueError, match=r"is a folder without RAGTruth's response\.jsonl"):
        format_of(tmp_path)


def test_missing_files_and_folders_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "in.jsonl")
    with pytest.raises(ValueError, match="--format ragtruth"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"response\.jsonl|source_info\.jsonl"):
        read(tmp_path, RowFormat.RAGTRUTH)


def test_a_pipe_is_said_to_be_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for row_format in (RowFormat.JSONL, RowFormat.CSV, RowFormat.PARQUET):
        with pytest.raises(ValueError, match="pipe: is a pipe or a device, and is read twice; give a file"):
            list(read_rows(tmp_path / "pipe", row_format))


def test_the_digest_is_of_what_is_audited(tmp_path: Path) -> None:
    changed = [ROW | {"response": "6"}, ROW | {"query": "?"}, ROW | {"id": "b"}, ROW | {"model": "m"}]
    first, *others = read(write(tmp_path / "in.jsonl", ROW, *changed))
    assert [row.digest == first.digest for row in others] == [False, False, False, True]


def test_ragtruth_is_read_from_its_folder_or_its_file() -> None:
    rows = read(RAGTRUTH, RowFormat.RAGTRUTH)
    assert read(RAGTRUTH / "response.jsonl", RowFormat.RAGTRUTH) == rows
    assert len(rows) == 54
    assert {row.task_type for row in rows} == {"QA", "Summary", "Data2txt"}
    assert not any(row.excluded for row in rows)


def test_ragtruths_human_labels_are_its_spans() -> None:
    raw = [json.loads(line) for line in (RAGTRUTH / "response.jsonl").read_text().splitlines()]
    for row, source in zip(read(RAGTRUTH, RowFormat.RAGTRUTH), raw, strict=True):
        assert row.human_spans is not None
        texts = [row.response[span.start : span.end] for span in row.human_spans]
        assert texts == [label["text"] for label in source["labels"]]
        assert marked(row, Target.PLAIN) == any(c.isdigit() for text in texts for c in text)


def test_ragtruths_tasks_become_queries_with_documents() -> None:
    rows = {row.task_type: row.query for row in read(RAGTRUTH, RowFormat.RAGTRUTH)}
    sources = [json.loads(line) for line in (RAGTRUTH / "source_info.jsonl").read_text().splitlines()]
    info = {row["task_type"]: row["source_info"] for row in sources}
    assert rows["QA"].query == info["QA"]["question"]
    assert [document.title for document in rows["QA"].documents] == ["passage 1", "passage 2", "passage 3"]
    assert all(document.text in info["QA"]["passages"] for document in rows["QA"].documents)
    assert not any("passage 1:" in document.text for document in rows["QA"].documents)
    assert [document.text for document in rows["Summary"].documents] == [info["Summary"]]
    assert json.loads(rows["Data2txt"].documents[0].text) == info["Data2txt"]


def ragtruth_folder(folder: Path, response: dict[str, Any], source: dict[str, Any]) -> Path:
    labels = [{"start": 0, "end": 4, "text": "1999"}]
    row = {"id": 1, "source_id": 9, "labels": labels, "quality": "good", "response": "1999 it was."}
    info = {"source_id": "9", "task_type": "Summary", "source_info": "It was 1998.", "prompt": None}
    write(folder / "response.jsonl", row | response)
    write(folder / "source_info.jsonl", info | source)
    return folder


@pytest.mark.parametrize(("quality", "takes_part"), [("good", True), (None, True), ("truncated", False)])
def test_ragtruths_bad_answers_take_no_part(quality: str | None, takes_part: bool, tmp_path: Path) -> None:
    [row] = read(ragtruth_folder(tmp_path, {"quality": quality}, {}), RowFormat.RAGTRUTH)
    assert (row.excluded == "") == takes_part


@pytest.mark.parametrize(
    ("source", "query"),
    [
        (
            {"prompt": "Summarize within 86 words:\nIt was 1998.\n\noutput:"},
            "within 86 words:",
        ),
        (
            {
                "task_type": "Data2txt",
                "source_info": {"name": "Inn"},
                "prompt": "Instruction:\nWrite an overview. Structured data:\n{'name': 'Inn'}\nOverview:",
            },
            "Write an overview.",
        ),
        ({}, "Summarize the following news."),
    ],
)
def test_ragtruths_query_is_the_instruction_of_its_prompt(
    source: dict[str, Any], query: str, tmp_path: Path
) -> None:
    [row] = read(ragtruth_folder(tmp_path, {}, source), RowFormat.RAGTRUTH)
    assert row.query.query.endswith(query)
    assert "1998" not in row.query.query


@pytest.mark.parametrize(
    ("response", "source", "says"),
    [
        ({"source_id": "8"}, {}, "response.jsonl:1: source_id: '8' is not in source_info.jsonl"),
        ({"labels": None}, {}, "response.jsonl:1: labels: "),
        ({}, {"task_type": "Chat"}, "source_info.jsonl:1: task_type: "),
        ({}, {"task_type": "QA"}, "source_info.jsonl:1: source_info: is not what task_type QA has"),
    ],
)
def test_damaged_ragtruth_files_are_named(
    response: dict[str, Any], source: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read(ragtruth_folder(tmp_path, response, source), RowFormat.RAGTRUTH)
    assert says in str(caught.value)
