"""Each benchmark's official rows become queries, and nothing that tells an answer gets through."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.bioasq import BioasqRow
from pipeline.data.job import run_job
from pipeline.data.rows import SourceRow
from pipeline.data.sources import SOURCES
from pipeline.data.work import Choices, Input, PrepareJob
from reward.types import RagQuery
from tests.benchmark_rows import SLICES, bioasq_row, queries_of, write_bioasq

# Counted and hashed here, on the slices of tests/data; a change of a reader changes them.
READ = {
    "2wikimultihopqa": (24, 240, "658733db8fa02338"),
    "musique": (8, 160, "544dbc4a7baad4ce"),
    "hotpotqa": (8, 80, "5abf6bbd833b045e"),
    "ragtruth": (6, 12, "5b61eeeee0d80747"),
    "tatqa": (24, 144, "27ea61b202564086"),
}


def digest(values: list[str]) -> str:
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", READ)
def test_the_slices_read_as_counted(name: str) -> None:
    queries = queries_of(name, SLICES[name])
    num_documents = sum(len(query.documents) for query in queries)
    found = (len(queries), num_documents, digest([query.model_dump_json() for query in queries]))
    assert found == READ[name]


def test_musique_is_read_as_published() -> None:
    raw = [json.loads(line) for line in SLICES["musique"].read_text().splitlines()]
    for query, row in zip(queries_of("musique", SLICES["musique"]), raw, strict=True):
        assert (query.id, query.query) == (row["id"], row["question"])
        expected = [(p["title"], p["paragraph_text"]) for p in row["paragraphs"]]
        assert [(document.title, document.text) for document in query.documents] == expected


def test_sentences_of_hotpotqa_bring_their_own_spaces() -> None:
    text = queries_of("hotpotqa", SLICES["hotpotqa"])[0].documents[0].text
    assert "New York City. It was constructed" in text


def test_a_table_is_a_document_with_its_cells_between_bars() -> None:
    raw = json.loads(SLICES["tatqa"].read_text())
    queries = queries_of("tatqa", SLICES["tatqa"])
    table, first = queries[0].documents[:2]
    assert table.title == "table"
    assert table.text.splitlines()[2] == " | ".join(raw[0]["table"]["table"][2])
    assert first.text == min(raw[0]["paragraphs"], key=lambda paragraph: paragraph["order"])["text"]
    assert [query.id for query in queries] == [q["uid"] for context in raw for q in context["questions"]]


def test_bioasqs_abstracts_are_documents_of_their_snippets() -> None:
    row = bioasq_row("abc", {"7": ["It has 50.", "Much more.", "It has 50."], "9": ["Another."]})
    (query,) = BioasqRow.model_validate_json(json.dumps(row)).queries("f:1")
    assert query.query == "How many exons has the gene abc?"
    assert [(d.id, d.text) for d in query.documents] == [("7", "It has 50.\nMuch more."), ("9", "Another.")]


def test_a_question_without_snippets_asks_nothing() -> None:
    row = BioasqRow.model_validate_json(json.dumps(bioasq_row("abc", {})))
    assert row.queries("f:1") == ()


def test_of_ragtruth_only_the_train_split_is_read() -> None:
    responses = [json.loads(line) for line in (SLICES["ragtruth"] / "response.jsonl").open()]
    train = {row["source_id"] for row in responses if row["split"] == "train"}
    assert {query.id for query in queries_of("ragtruth", SLICES["ragtruth"])} == train


def marked(value: Any, path: str, shown: frozenset[str]) -> Any:
    """The value with every text that a row must not show turned into a secret; `shown` are keys to leave."""
    if isinstance(value, dict):
        return {
            key: part if key in shown else marked(part, f"{path}-{key}", shown) for key, part in value.items()
        }
    if isinstance(value, list):
        return [marked(part, path, shown) for part in value]
    return f"SECRET{path}" if isinstance(value, str) else value


SHOWN = {
    "2wikimultihopqa": {"_id", "question", "context"},
    "hotpotqa": {"_id", "question", "context"},
    "musique": {"id", "question", "title", "paragraph_text"},
    "ragtruth": {"source_id", "task_type", "source_info", "split", "prompt"},
    "tatqa": {"uid", "question", "table", "text"},
    "bioasq": {"id", "body", "document", "text"},
    "jsonl": {"id", "query", "title", "text"},
}


def official(name: str, folder: Path) -> list[dict[str, Any]]:
    """Rows of a source with all of their official fields."""
    if name == "bioasq":
        rows: list[dict[str, Any]] = json.loads(write_bioasq(folder, 8).read_text())["questions"]
        return rows
    if name == "jsonl":
        documents = [{"id": "d", "title": "t", "text": "50 people came."}]
        return [{"id": "1", "query": "How many?", "documents": documents, "answer": "50", "response": "50"}]
    text = SLICES[name].read_text() if name != "ragtruth" else ""
    return [json.loads(line) for line in text.splitlines()] if name == "musique" else json.loads(text)


@pytest.mark.parametrize("name", [name for name in SHOWN if name != "ragtruth"])
def test_nothing_that_tells_an_answer_reaches_a_row(name: str, tmp_path: Path) -> None:
    rows = marked(official(name, tmp_path), "", frozenset(SHOWN[name]))
    assert "SECRET" in json.dumps(rows)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "out"
    accepted = Choices(noise=0.3, accepted_licences=("bioasq",))
    run_job(
        PrepareJob((Input(SOURCES[name], path),), out, prompts="compact", choices=accepted, num_workers=0)
    )
    assert "SECRET" not in "".join(file.read_text() for file in out.iterdir())
    for line in (out / "train.jsonl").open():
        row = json.loads(line)
        assert row.keys() == {"input", "label", "datasource"}
        assert json.loads(row["label"]).keys() == {"id", "query", "documents"}


def test_nothing_that_ragtruths_models_answered_reaches_a_row(tmp_path: Path) -> None:
    for name in ("response.jsonl", "source_info.jsonl"):
        rows = [json.loads(line) for line in (SLICES["ragtruth"] / name).open()]
        shown = frozenset(SHOWN["ragtruth"])
        (tmp_path / name).write_text("\n".join(json.dumps(marked(row, "", shown)) for row in rows))
    given = (Input(SOURCES["ragtruth"], tmp_path),)
    job = PrepareJob(given, tmp_path / "out", Choices(near_duplicates=0.8), num_workers=0)
    assert run_job(job).num_rows == READ["ragtruth"][0]
    assert "SECRET" not in "".join(file.read_text() for file in (tmp_path / "out").iterdir())


def test_a_query_has_no_place_for_an_answer() -> None:
    assert RagQuery.model_fields.keys() == {"id", "query", "documents", "unanswerable"}


HOTPOT = {"_id": "a", "question": "Who?", "context": {"title": ["Ann"], "sentences": [["A"]]}}
PARAGRAPH = {"idx": 0, "title": "t", "paragraph_text": "x"}


@pytest.mark.parametrize(
    ("name", "row", "says"),
    [
        ("musique", {"id": "a", "question": "Who?"}, "rows.jsonl:2: paragraphs: missing; add it"),
        (
            "musique",
            {"id": "a", "question": 7, "paragraphs": [PARAGRAPH]},
            "question: Input should be a valid",
        ),
        ("musique", {"id": "a", "question": "Who?", "paragraphs": []}, "rows.jsonl:2: paragraphs: "),
        (
            "musique",
            {"id": "a", "question": "Who?", "paragraphs": [PARAGRAPH, PARAGRAPH]},
            "rows.jsonl:2: row 'a': documents: id 'a#0' is used twice",
        ),
        ("hotpotqa", HOTPOT, "rows.jsonl:2: context: "),
        (
            "tatqa",
            {"table": {"uid": "a", "table": [[7]]}},
            "rows.jsonl:2: table.table.0.0: Input should be a",
        ),
        ("bioasq", {"id": "a", "body": "Who?", "snippets": [{}]}, "snippets.0.document: missing"),
        ("jsonl", {"id": "a", "query": "", "documents": ["x"]}, "rows.jsonl:2: query: "),
        ("jsonl", [1], "rows.jsonl:2 (row 1): is no object"),
    ],
    ids=str,
)
def test_a_changed_format_is_one_clear_line(name: str, row: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n" + json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=r".") as caught:
        queries_of(name, path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_both_files_of_ragtruth_are_needed(tmp_path: Path) -> None:
    (tmp_path / "source_info.jsonl").write_text("")
    with pytest.raises(FileNotFoundError, match=r"response\.jsonl: no such file"):
        queries_of("ragtruth", tmp_path)


@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda source: source.name)
def test_every_source_says_what_it_is(source: Any) -> None:
    import sys

    documented = sys.modules[source.model.__module__].__doc__ or ""
    assert issubclass(source.model, SourceRow)
    assert source.licence and (source.files or source.by_hand)
    assert "icence" in documented or source.licence.replace("-", " ")[:5] in documented.replace("-", " ")
