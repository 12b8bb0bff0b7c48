"""Files of a benchmark that are damaged or missing: one clear line."""

import json
import re
from pathlib import Path

import pytest

from pipeline.evaluate.benchmarks import make_benchmark
from tests.benchmark_files import CALIBRATION_NAMES, FOLDERS, NAMES, write_pairs

MUSIQUE = FOLDERS["musique"].read_text().splitlines()[0]
PAIR = {"question": "q", "context": "c", "positive_response": "p", "negative_response": "n"}
SAMPLE = json.loads((FOLDERS["faithbench"] / "batch_1.json").read_text())["samples"][1]


@pytest.mark.parametrize(
    ("name", "file", "text", "says"),
    [
        (
            "musique",
            "x.jsonl",
            MUSIQUE.replace('"answer":', '"reply":'),
            "x.jsonl:1: answer: none is known",
        ),
        (
            "musique",
            "x.jsonl",
            MUSIQUE.replace('"answerable": true', '"answerable": false'),
            "x.jsonl:1: answer: none is known; give the answerable development set",
        ),
        ("hotpotqa", "x.json", '[{"_id": "a", "question": "q", "answer": "b"}]', "context: missing"),
        ("hotpotqa", "x.json", '[{"_id": "a"', "not JSON"),
        ("2wikimultihopqa", "x.json", '[{"_id": "a", "question": "", "context": []}]', "question: "),
        (
            "facts_grounding",
            "x.csv",
            "user_request,context_document\na,b\n",
            "x.csv:2: system_instruction: missing",
        ),
        (
            "facts_grounding",
            "x.csv",
            "system_instruction,user_request,context_document\na,b,\n",
            "x.csv:2: context_document: ",
        ),
        (
            "faithbench",
            "batch_3.json",
            json.dumps({"samples": [SAMPLE]}).replace("Unwanted.Intrinsic", "Horrid"),
            "'Horrid' is no label of FaithBench",
        ),
        ("faithbench", "batch_3.json", json.dumps({"samples": [SAMPLE]})[:-9], "not JSON"),
        ("ragtruth", "response.jsonl", '{"id": 1, "source_id": 1}', "response.jsonl:1: split: missing"),
    ],
)
def test_a_damaged_file_is_one_clear_line(name: str, file: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        list(make_benchmark(name).items(tmp_path / file))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [*NAMES, *CALIBRATION_NAMES])
def test_a_folder_without_the_files_says_where_they_are_published(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="https://"):
        list(make_benchmark(name).items(tmp_path))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"context": None}, ".parquet:1: context: "),
        ({"question_id": None}, ".parquet:1: question_id: "),
        (None, "not a Parquet file"),
    ],
)
def test_damaged_pairs_are_one_clear_line(changes: dict[str, None] | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data" / "faithfulness_qa-00000-of-00001.parquet"
    write_pairs(file, [PAIR | {"question_id": "1"} | (changes or {})])
    if changes is None:
        file.write_bytes(b"PAR0")
    with pytest.raises(ValueError, match=re.escape(says)):
        list(make_benchmark("contextual_judge_bench").items(tmp_path))
