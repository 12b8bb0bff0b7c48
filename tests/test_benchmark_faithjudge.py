"""RAGTruth and FaithBench: their rows, what their judge sees, and its calibration."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import Item, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from tests.benchmark_files import CALIBRATION_NAMES, DATA, FOLDERS, items_of, text_of

RAGTRUTH = make_benchmark("ragtruth")


@pytest.fixture
def all_items(tmp_path: Path) -> list[Item]:
    """RAGTruth's sources as if all were of the test split."""
    shutil.copytree(DATA / "ragtruth", tmp_path, dirs_exist_ok=True)
    answers = tmp_path / "response.jsonl"
    answers.write_text(answers.read_text().replace('"split": "train"', '"split": "test"'))
    return list(RAGTRUTH.items(tmp_path))


def test_ragtruth_takes_the_test_split_of_its_own_files(all_items: list[Item]) -> None:
    assert Counter(item.slice for item in items_of("ragtruth")) == {"data2txt": 3}
    assert Counter(item.slice for item in all_items) == {"qa": 3, "summary": 3, "data2txt": 3}
    labels = [one.consistent for item in all_items for one in item.responses]
    rows = [json.loads(line) for line in (DATA / "ragtruth" / "response.jsonl").read_text().splitlines()]
    assert Counter(labels) == Counter(not row["labels"] for row in rows)


def test_the_judge_sees_source_marks_and_answer_and_never_its_own_copy(all_items: list[Item]) -> None:
    for item in all_items:
        (prompt,) = RAGTRUTH.prompts(item, PromptStyle.PLAIN)
        request = RAGTRUTH.judge_request(item, prompt, "An answer that stands nowhere.")
        text = text_of(request)
        for response in item.responses:
            assert response.text in text
            assert all(note in text for note in response.notes)
        assert text.endswith("An answer that stands nowhere.")
        copied = item.responses[2]
        again = text_of(RAGTRUTH.judge_request(item, prompt, f" {copied.text}\n"))
        assert again.count(copied.text) == 1
        assert not any(note in again for note in copied.notes)


def test_marks_of_ragtruth_are_told_with_their_kind(all_items: list[Item]) -> None:
    notes = [note for item in all_items for response in item.responses for note in response.notes]
    assert len(notes) > 20
    kinds = {"Evident Conflict", "Subtle Conflict", "Evident Baseless Info", "Subtle Baseless Info"}
    assert {note.partition(":")[0] for note in notes} <= kinds
    assert not any("\n" in note for note in notes)


def test_answers_of_bad_quality_are_no_examples(tmp_path: Path) -> None:
    shutil.copytree(DATA / "ragtruth", tmp_path, dirs_exist_ok=True)
    lines = [json.loads(line) for line in (tmp_path / "response.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["split"] == "test"]
    lines[0]["quality"], lines[1]["quality"] = "truncated", "good"
    (tmp_path / "response.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    items = {item.id: item for item in RAGTRUTH.items(tmp_path)}
    ids = [one.id for one in items[lines[0]["source_id"]].responses]
    assert lines[0]["id"] not in ids
    assert lines[1]["id"] in ids


# Worst label of the annotations, Questionable and Unwanted being hallucinated: the rule of the official
# scripts/binarize.py, worked out by hand on made-up rows.
FAITHBENCH_LABELS = {"1-0": True, "1-1": False, "1-2": True, "1-3": False, "1-4": False, "1-5": True}


def test_people_label_a_summary_by_its_worst_mark() -> None:
    items = items_of("faithbench")
    assert [item.id for item in items] == ["1-0", "1-4"]
    found = {one.id: one.consistent for item in items for one in item.responses}
    assert found == FAITHBENCH_LABELS
    first = items[0].responses
    assert first[1].notes[0] == 'Annotator A: Unwanted: "1920" (source: "1902") - 1902, not 1920'
    assert first[0].notes == ()
    assert items[1].responses[0].notes[0].startswith("Annotator A: Benign")  # FaithJudge shows Benign first


def test_a_folder_of_batches_is_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2):
        shutil.copy(FOLDERS["faithbench"] / "batch_1.json", tmp_path / f"batch_{number}.json")
    assert [item.id for item in make_benchmark("faithbench").items(tmp_path)] == [
        "2-0",
        "2-4",
        "10-0",
        "10-4",
    ]


def test_calibration_gives_each_labelled_answer_to_the_judge() -> None:
    for name in CALIBRATION_NAMES:
        benchmark = make_benchmark(name)
        base = {one.id: item for item in items_of(name.removesuffix("_judge")) for one in item.responses}
        items = items_of(name)
        assert len(items) == len(base)
        for item in items:
            judged, *others = item.responses
            (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
            assert (prompt.given, prompt.messages) == (judged.text, ())
            request = benchmark.judge_request(item, prompt, judged.text)
            text = text_of(request)
            assert all(one.text in text for one in others)
            assert not any(note in text for note in judged.notes if not any(note in o.notes for o in others))
            assert item.cluster == base[judged.id].cluster


def test_benign_marks_have_a_slice_of_their_own() -> None:
    slices = {item.id: item.slice for item in items_of("faithbench_judge")}
    assert slices["1-0/1-2"] == "summary (worst label benign)"
    assert slices["1-0/1-0"] == slices["1-0/1-1"] == "summary"
