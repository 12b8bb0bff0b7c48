"""Tables are read record by record; what is wrong with one is one line with file, line, field and fix."""

import csv
import io
import json
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward.offline.inputs import RowFormat, read_rows
from reward.offline.rows import AuditRow
from reward.types import Document
from tests.audit_jobs import pairs, ragtruth_job, run, shop_job, shop_rows

DOCUMENTS = [{"id": "d1", "title": "Prices", "text": "It costs 5 euros."}, {"id": "d2", "text": "Or 6."}]
CELLS = {"id": "a", "query": "How much?", "response": "5 euros.", "documents": json.dumps(DOCUMENTS)}


def table(path: Path, *rows: dict[str, str], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path: Path, row_format: RowFormat = RowFormat.CSV) -> list[AuditRow]:
    return list(read_rows(path, row_format))


def problem(path: Path, row_format: RowFormat = RowFormat.CSV) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read(path, row_format)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 500
    return said.removeprefix(str(path.parent)).removeprefix("/")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_row_with_documents_in_json(delimiter: str, tmp_path: Path) -> None:
    [row] = read(table(tmp_path / "in.csv", CELLS, delimiter=delimiter))
    assert (row.query.id, row.query.query, row.response) == ("a", "How much?", "5 euros.")
    assert row.query.documents == tuple(Document.model_validate(one) for one in DOCUMENTS)
    assert row.place == f"{tmp_path / 'in.csv'}:2"


def test_a_csv_row_with_a_column_a_document(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(
        "id,context,query,response,note,context,document_2\na,One.,q,r,n,Two.,\nb,,q,r,n,,Three.\n"
    )
    first, second = read(path)
    assert [(d.id, d.text) for d in first.query.documents] == [("context", "One."), ("context#2", "Two.")]
    assert [(d.id, d.text) for d in second.query.documents] == [("document_2", "Three.")]


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(",id,query,response,context,document_ids,model\n0,a,q,r,c,1,\n")
    [row] = read(path)
    assert row.unused_keys == ("", "document_ids", "model")


def test_quotes_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    text = '\ufeffid,query,response,context\r\na,"one\r\ntwo ""q"", x",5,c\r\n\r\nb,q,6,c\r\n'
    path.write_bytes(text.encode())
    first, second = read(path)
    assert first.query.query == 'one\r\ntwo "q", x'
    assert (first.place[-2:], second.place[-2:]) == (":2", ":5")


def test_an_empty_response_has_no_claims(tmp_path: Path) -> None:
    path = table(tmp_path / "in.csv", CELLS | {"response": ""})
    job = shop_job(tmp_path, input=path)
    assert run(job)[0].figures.outcomes["NO_CLAIMS"] == 1


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "in.csv:1: holds no header; name the columns"),
        (b"id,query,response\n", "in.csv:1: documents: no such column; add it, or a column context for each"),
        (b"id,query,context\n", "in.csv:1: response: no such column; add it (found id, query, context)"),
        (b"id,id,query,response,context\n", "in.csv:1: id: two columns have this name; remove one"),
        (
            b"id,query,response,context,documents\n",
            "in.csv:1: documents: given beside context; keep one way",
        ),
        *(
            (
                f"id,query,response,context,{name}\n".encode(),
                f"in.csv:1: {name}: is no column of a document, but looks like one; rename it to context, ",
            )
            for name in ("context2", "Context", "context.1", "Document 2", "document", "contexts")
        ),
        (
            b"id,query,response,context,Unanswerable\n",
            "in.csv:1: Unanswerable: is no key of a row, but unanswerable is; rename the column or remove it",
        ),
        (b"id,query,response,document\n", "in.csv:1: document: is no key of a row, but documents is; rename"),
        (b"id,query,response,context\na,q,r\n", "in.csv:2: 3 cells, but the header has 4; quote cells"),
        (b"id,query,response,context\na,q,r,c,d\n", "in.csv:2: 5 cells, but the header has 4"),
        (b"id,query,response,context\n,q,r,c\n", "in.csv:2: id: "),
        (b"id,query,response,documents\na,q,r,It costs 5.\n", "in.csv:2: documents: not JSON ("),
        (
            b"id,query,response,documents\na,q,r," + b"[" * 100_000 + b"\n",
            "in.csv:2: documents: not JSON (recursion limit exceeded",
        ),
        (
            b'id,query,response,documents\na,q,r,"[{""id"": 1}]"\n',
            "in.csv:2: documents.0.text: missing; add it",
        ),
        (
            b"id,query,response,context\na,q,r,c\nb,q,\xff,c\n",
            "in.csv:3: byte 5 of the line (0xff) is not UTF-8",
        ),
        (b"\xff\xfei\x00d\x00\n", "in.csv:1: byte 1 of the line (0xff) is not UTF-8; save the file as UTF-8"),
        (b"\x1f\x8b\x08\x00", "in.csv:1: is gzipped; unpack it with gunzip"),
        (b'id,query,response,context\na,q,"r,c\n', "in.csv:2: not CSV ("),
        (b'id,query,response,context\na,q,"r"x,c\n', "in.csv:2: not CSV ("),
    ],
)
def test_a_bad_table_is_one_clear_line(raw: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(raw)
    assert problem(path).startswith(says)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("in.csv", "id,query,response,context\na,q,It costs 5.,\n"),
        ("in.csv", "id,query,response,documents\na,q,It costs 5.,[]\n"),
        ("in.csv", "id,query,response,documents\na,q,It costs 5.,\n"),
        ("in.jsonl", '{"id": "a", "query": "q", "response": "It costs 5.", "documents": []}\n'),
        ("in.jsonl", '{"id": "a", "query": "q", "response": "It costs 5.", "documents": [""]}\n'),
    ],
)
def test_what_is_stated_where_nothing_was_retrieved_is_refuted(name: str, raw: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(raw)
    job = shop_job(tmp_path, input=tmp_path / name)
    summary, *_ = run(job)
    assert summary.figures.outcomes == {"SUPPORTED": 0, "REFUTED": 1, "NO_CLAIMS": 0, "UNSCORED": 0}


def test_an_id_that_is_used_twice_is_named_with_both_places(tmp_path: Path) -> None:
    job = shop_job(tmp_path, input=table(tmp_path / "in.csv", CELLS, CELLS))
    with pytest.raises(
        ValueError, match=r"in\.csv:3: id: 'a' is used at .*in\.csv:2 already; give each row its own"
    ):
        run(job)


def test_a_quote_that_is_never_closed_swallows_a_bounded_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward.offline.inputs._LARGEST_CELL", 1000)
    path = tmp_path / "in.csv"
    path.write_text('id,query,response,context\na,q,"r,c\n' + "b,q,r,c\n" * 1000)
    assert problem(path).startswith("in.csv:2: not CSV (field larger than field limit")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary() | st.text().map(lambda text: f"id,query,response,context\n{text}".encode()))
def test_whatever_a_table_holds_the_error_is_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    try:
        read(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}:")
        assert "\n" not in str(error)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(texts=st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), min_size=1)] * 4))
def test_what_is_written_as_csv_is_read_back(texts: tuple[str, ...], tmp_path: Path) -> None:
    line = io.StringIO()
    csv.writer(line).writerow(texts)
    path = tmp_path / "in.csv"
    path.write_bytes(b"id,query,response,context\r\n" + line.getvalue().encode())
    if any(text.strip() for text in texts):
        [row] = read(path)
        assert (row.query.id, row.query.query, row.response, row.query.documents[0].text) == texts


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (march-pipeline[parquet])")
    from pyarrow.parquet import write_table

    write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "documents",
    [DOCUMENTS, json.dumps(DOCUMENTS), ["It costs 5 euros.", "Or 6."]],
    ids=["nested", "JSON", "texts"],
)
def test_parquet_holds_documents_nested_or_in_json(documents: Any, tmp_path: Path) -> None:
    columns = {
        "id": [1, 2],
        "query": ["q"] * 2,
        "response": ["r"] * 2,
        "documents": [documents] * 2,
        "x": [0, 1],
    }
    rows = read(parquet(tmp_path / "in.parquet", columns), RowFormat.PARQUET)
    assert [row.query.id for row in rows] == ["1", "2"]
    assert [document.text for document in rows[0].query.documents] == ["It costs 5 euros.", "Or 6."]
    assert rows[1].place.endswith("in.parquet:2")
    assert rows[1].unused_keys == ("x",)


def test_parquet_says_which_queries_nobody_can_answer(tmp_path: Path) -> None:
    columns = {"id": ["a", "b"], "query": ["q"] * 2, "response": ["r"] * 2, "documents": [DOCUMENTS] * 2}
    rows = read(
        parquet(tmp_path / "in.parquet", columns | {"unanswerable": [True, False]}), RowFormat.PARQUET
    )
    assert [row.query.unanswerable for row in rows] == [True, False]


def test_parquet_with_a_column_a_document(tmp_path: Path) -> None:
    columns = {"id": ["a"], "query": ["q"], "response": ["r"], "context_1": ["One."], "context_2": [None]}
    [row] = read(parquet(tmp_path / "in.parquet", columns), RowFormat.PARQUET)
    assert [(d.id, d.text) for d in row.query.documents] == [("context_1", "One.")]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"response": [None]}, "in.parquet:1: response: Input should be a valid string (found None)"),
        ({"documents": [[{"id": "1"}]]}, "in.parquet:1: documents.0.text: missing; add it"),
    ],
)
def test_a_bad_parquet_row_is_one_clear_line(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    columns = {"id": ["a"], "query": ["q"], "response": ["r"], "documents": [DOCUMENTS]} | changes
    assert problem(parquet(tmp_path / "in.parquet", columns), RowFormat.PARQUET).startswith(says)


def test_a_parquet_file_without_a_column_or_that_is_none(tmp_path: Path) -> None:
    path = parquet(tmp_path / "in.parquet", {"id": ["a"], "query": ["q"]})
    assert problem(path, RowFormat.PARQUET).startswith("in.parquet:1: response: no such column; add it")
    path.write_bytes(b"PAR1 no")
    assert problem(path, RowFormat.PARQUET).startswith("in.parquet: not a whole Parquet file (")


def test_a_damaged_page_of_a_parquet_file_is_named_with_its_file(tmp_path: Path) -> None:
    columns = {"id": ["a"] * 1000, "query": ["q"] * 1000, "response": ["r"] * 1000, "context": ["c"] * 1000}
    path = parquet(tmp_path / "in.parquet", columns)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    assert problem(path, RowFormat.PARQUET).startswith("in.parquet: not a whole Parquet file (")
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(PermissionError):
            read(path, RowFormat.PARQUET)


def test_parquet_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    offsets = pa.py_buffer(b"\x00\x00\x00\x00\x01\x00\x00\x00")
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    columns = {"id": ["a"], "query": ["q"], "response": bad, "context": ["c"]}
    path = parquet(tmp_path / "in.parquet", columns)
    assert problem(path, RowFormat.PARQUET).startswith("in.parquet:1: holds bytes that are not UTF-8")


def test_without_pyarrow_the_fix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path / "in.parquet", {"id": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert problem(path, RowFormat.PARQUET).endswith(
        "pyarrow is not installed; pip install '.[parquet]' to read Parquet files"
    )


@pytest.mark.parametrize("row_format", [RowFormat.JSONL, RowFormat.CSV, RowFormat.PARQUET])
def test_memory_does_not_grow_with_the_file(row_format: RowFormat, tmp_path: Path) -> None:
    text = "x" * 20_000
    rows = [{"id": str(i), "query": "q", "response": "r", "context": text} for i in range(500)]
    path = tmp_path / "in"
    if row_format is RowFormat.PARQUET:
        parquet(path, {name: [row[name] for row in rows] for name in rows[0]})
    elif row_format is RowFormat.CSV:
        table(path, *rows)
    else:
        lines = [json.dumps({**row, "documents": [text]}) for row in rows]
        path.write_text("\n".join(lines))
    tracemalloc.start()
    assert sum(1 for _ in read_rows(path, row_format)) == 500
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 1024**2  # of 10 MB


def test_every_format_gives_the_same_verdicts(tmp_path: Path) -> None:
    rows = shop_rows(8)
    cells = [row | {"documents": json.dumps(row["documents"])} for row in rows]
    names = {
        "in.csv": table(tmp_path / "in.csv", *cells),
        "in.parquet": parquet(
            tmp_path / "in.parquet", {name: [row[name] for row in rows] for name in rows[0]}
        ),
    }
    expected = shop_job(tmp_path, num_rows=8)
    run(expected)
    for name, path in names.items():
        job = shop_job(tmp_path, num_rows=8, input=path, output=tmp_path / f"{name}.jsonl")
        run(job)
        assert job.output.read_bytes() == expected.output.read_bytes()


def test_ragtruths_sources_are_its_clusters(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    run(job)
    assert len({row.cluster for row, _ in pairs(job)}) == 9
