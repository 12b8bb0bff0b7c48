"""Training rows hold the prompt and the documents and nothing that tells the answer; the manifest is last."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.prepare import Manifest, write_rows
from pipeline.data.tokenizer_digest import tokenizer_sha256
from reward.roles.prompts import load_prompts
from reward.types import Document, RagQuery
from tests.benchmark_rows import queries_of

TWOWIKI = Path(__file__).parent / "data" / "2wikimultihopqa" / "train.json"
PROMPTS = load_prompts("compact")


def query(name: str, text: str = "It costs 5 euros.", question: str = "How much?") -> RagQuery:
    return RagQuery(id=name, query=question, documents=(Document(id=f"{name}#0", text=text),))


def prepare(queries: list[RagQuery], out: Path, **options: Any) -> Manifest:
    given = {"prompts": PROMPTS, "tokenizer_path": None, "max_prompt_tokens": None, "source": "test"}
    return write_rows(queries, out, **(given | options))


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One token a word, and a template with two special tokens a message."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = (
        "{% for m in messages %}< {{ m.content }} > {% endfor %}{% if add_generation_prompt %}<{% endif %}"
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(tokenizer_object=words, chat_template=template).save_pretrained(folder)
    return folder


def test_rows_are_what_openrlhf_reads(tmp_path: Path) -> None:
    queries = queries_of("2wikimultihopqa", TWOWIKI)
    manifest = prepare(queries, tmp_path, source="2wikimultihopqa")
    written = rows(tmp_path)
    assert [list(row) for row in written] == [["input", "label", "datasource"]] * 24
    assert [RagQuery.model_validate_json(row["label"]) for row in written] == queries
    assert [row["input"] for row in written] == [PROMPTS.solver(query) for query in queries]
    assert {row["datasource"] for row in written} == {"2wikimultihopqa"}
    assert (manifest.num_read, manifest.num_rows, manifest.source) == (24, 24, "2wikimultihopqa")


def test_nothing_that_tells_the_answer_is_written(tmp_path: Path) -> None:
    marked = []
    for i, row in enumerate(json.loads(TWOWIKI.read_text())):
        secrets = {key: f"SECRET-{key}-{i}" for key in row if key not in ("_id", "question", "context")}
        secrets["supporting_facts"] = [[f"SECRET-title-{i}", 0]]
        marked.append(row | secrets)
    assert {"answer", "supporting_facts", "evidences", "answer_id", "type"} <= marked[0].keys()
    (tmp_path / "rows.json").write_text(json.dumps(marked))
    prepare(queries_of("2wikimultihopqa", tmp_path / "rows.json"), tmp_path / "out")
    text = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "SECRET" not in text
    for row in rows(tmp_path / "out"):
        label = json.loads(row["label"])
        assert label.keys() == {"id", "query", "documents"}
        assert all(document.keys() == {"id", "title", "text"} for document in label["documents"])
        assert all(message.keys() == {"role", "content"} for message in row["input"])


def test_the_manifest_tells_what_was_made_of_what(tmp_path: Path) -> None:
    manifest = prepare([query("a")], tmp_path)
    assert Manifest.model_validate_json((tmp_path / "manifest.json").read_text()) == manifest
    assert manifest.rows_sha256 == hashlib.sha256((tmp_path / "train.jsonl").read_bytes()).hexdigest()
    assert manifest.prompt_digest == PROMPTS.digest
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "manifest.json",
        "removed.jsonl",
        "train.jsonl",
    ]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first = prepare([query("a"), query("b", text="é \u2028")], tmp_path / "1")
    second = prepare([query("a"), query("b", text="é \u2028")], tmp_path / "2")
    assert first == second
    assert (tmp_path / "1/train.jsonl").read_bytes() == (tmp_path / "2/train.jsonl").read_bytes()


def test_copies_are_written_once_and_counted(tmp_path: Path) -> None:
    manifest = prepare([query("a"), query("b"), query("c", question="What?"), query("a")], tmp_path)
    assert [json.loads(row["label"])["id"] for row in rows(tmp_path)] == ["a", "c"]
    assert (manifest.num_read, manifest.num_duplicates, manifest.num_rows) == (4, 2, 2)


def test_one_id_for_two_queries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="id: 'a' belongs to two different queries"):
        prepare([query("a"), query("a", question="What?")], tmp_path)


def test_overlong_prompts_are_left_out_by_the_policys_own_template(tokenizer: Path, tmp_path: Path) -> None:
    # "< solver > < Doc: w w w Query: How much? > <" is 5 tokens of the template, 5 of the prompt, and the w
    queries = [query(f"q{n}", text=" ".join(["w"] * n)) for n in (3, 10, 11, 40)]
    manifest = prepare(queries, tmp_path, tokenizer_path=str(tokenizer), max_prompt_tokens=20)
    assert [json.loads(row["label"])["id"] for row in rows(tmp_path)] == ["q3", "q10"]
    assert (manifest.num_overlong, manifest.longest_prompt_tokens, manifest.max_prompt_tokens) == (2, 20, 20)
    assert manifest.tokenizer_sha256 == tokenizer_sha256(str(tokenizer)) is not None


def test_a_failed_preparation_leaves_the_old_rows_whole(tokenizer: Path, tmp_path: Path) -> None:
    prepare([query("a")], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def breaks() -> Any:
        yield query("b")
        raise ValueError("rows.json:2: not JSON")

    with pytest.raises(ValueError, match="not JSON"):
        prepare(breaks(), tmp_path)
    with pytest.raises(ValueError, match=r"none of 1 rows is left \(1 overlong; limit 2 prompt tokens\)"):
        prepare([query("b")], tmp_path, tokenizer_path=str(tokenizer), max_prompt_tokens=2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("options", [{"tokenizer_path": "x"}, {"max_prompt_tokens": 5}])
def test_limit_and_tokenizer_go_together(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give both or neither"):
        prepare([query("a")], tmp_path, **options)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tokenizer: '/no/such/folder' is not a folder"):
        prepare([query("a")], tmp_path, tokenizer_path="/no/such/folder", max_prompt_tokens=5)
