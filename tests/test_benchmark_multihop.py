"""HotpotQA, 2WikiMultihopQA and MuSiQue on real rows, and the examples of the 10-shot style."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.data.rows import read_rows
from pipeline.data.twowiki import TwoWikiRow
from pipeline.evaluate.benchmark import JudgeRequest, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.multihop import MultiHopBenchmark, linked
from pipeline.evaluate.benchmarks.musique import MuSiQue
from pipeline.evaluate.benchmarks.prompts import NUM_SHOTS, load_shots, pick_shots
from reward.types import Document
from tests.benchmark_files import FOLDERS, QA, items_of, text_of


@pytest.mark.parametrize(
    ("name", "answers", "slices"),
    [
        ("hotpotqa", ["writer", "no", "1974", "25 million", "Canada", "yes"], {"bridge", "comparison"}),
        ("2wikimultihopqa", ["2 May 1934", "1127", "no"], {"comparison", "bridge_comparison"}),
        ("musique", ["Brooklyn Nets NBA", "Brooklyn Nets NBA", "48%"], {"2hop", "3hop"}),
    ],
)
def test_rows_of_the_development_sets(name: str, answers: list[str], slices: set[str]) -> None:
    items = items_of(name)
    assert [item.references[0] for item in items][: len(answers)] == answers
    assert slices <= {item.slice for item in items}


def test_only_the_first_rows_are_asked() -> None:
    items = list(MuSiQue(num_rows=2).items(FOLDERS["musique"]))
    assert [item.id for item in items] == ["2hop__2148_78851", "2hop__840174_78851"]


def test_aliases_are_references() -> None:
    assert items_of("musique")[0].references == ("Brooklyn Nets NBA", "Brooklyn")


def test_aliases_of_2wiki_are_read_when_they_lie_beside(tmp_path: Path) -> None:
    shutil.copy(FOLDERS["2wikimultihopqa"] / "dev.json", tmp_path)
    row = next(row for row in json.loads((tmp_path / "dev.json").read_text()) if row["answer"] == "Italian")
    alias = {"Q_id": row["answer_id"], "aliases": ["Italy", "Italian"], "demonyms": ["Italy", "Italians"]}
    (tmp_path / "id_aliases.json").write_text(json.dumps(alias) + "\n")
    found = {item.id: item.references for item in make_benchmark("2wikimultihopqa").items(tmp_path)}
    assert found.pop(row["_id"]) == ("Italian", "Italy", "Italians")
    assert all(len(references) == 1 for references in found.values())


def test_rows_that_need_a_paragraph_in_common_are_one_cluster() -> None:
    clusters = [item.cluster for item in items_of("musique")]
    assert clusters[0] == clusters[1] == "2hop__2148_78851"
    assert len(set(clusters[1:])) == len(clusters) - 1
    assert linked([["a"], ["b"], ["b", "c"], ["d"], ["c", "a"], []]) == [0, 0, 0, 3, 0, 5]
    assert linked([]) == []


def test_the_hub_layout_of_hotpotqa_is_read(tmp_path: Path) -> None:
    rows = json.loads((FOLDERS["hotpotqa"] / "hotpot_dev_distractor_v1.json").read_text())
    lines = [
        {
            "id": row["_id"],
            **{key: row[key] for key in ("question", "answer", "type")},
            "context": {"title": [t for t, _ in row["context"]], "sentences": [s for _, s in row["context"]]},
            "supporting_facts": {
                "title": [title for title, _ in row["supporting_facts"]],
                "sent_id": [place for _, place in row["supporting_facts"]],
            },
        }
        for row in rows
    ]
    (tmp_path / "validation.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(make_benchmark("hotpotqa").items(tmp_path / "validation.jsonl")) == items_of("hotpotqa")


@pytest.mark.parametrize("name", QA)
def test_the_judge_of_an_answer_sees_the_reference_and_no_documents(name: str) -> None:
    benchmark, item = make_benchmark(name), items_of(name)[0]
    (prompt,) = benchmark.prompts(item, PromptStyle.COT)
    request = benchmark.judge_request(item, prompt, "First ...\n**Answer:** Green Bay")
    assert isinstance(request, JudgeRequest)
    text = text_of(request.messages)
    assert all(reference in text for reference in item.references)
    assert text.endswith("Response to judge:\nGreen Bay")
    assert item.query.documents[0].text not in text


def test_shots_are_rows_of_the_train_split_with_what_they_need() -> None:
    shots = load_shots()
    assert len(shots) > NUM_SHOTS
    assert len({shot.id for shot in shots}) == len(shots)
    assert all(2 <= len(shot.documents) <= 4 for shot in shots)
    dev = {row.id for _, row in read_rows(FOLDERS["2wikimultihopqa"] / "dev.json", TwoWikiRow)}
    assert not dev & {shot.id for shot in shots}


def test_ten_shots_are_shown_and_the_question_comes_last() -> None:
    for name in QA:
        benchmark, item = make_benchmark(name), items_of(name)[0]
        text = text_of(benchmark.prompts(item, PromptStyle.TEN_SHOT)[0].messages)
        assert text.count("\nAnswer: ") == NUM_SHOTS
        assert text.endswith(f"Question: {item.query.query}")


def test_a_shot_that_overlaps_the_item_is_not_shown() -> None:
    first, second, third, *_ = load_shots()
    same_title = Document(id="1", title=first.documents[0].title.upper(), text="Another text.")
    same_text = Document(id="2", title="Another", text=f"  {second.documents[1].text}\n")
    shown = pick_shots(third.question.lower(), [same_title, same_text])
    assert len(shown) == NUM_SHOTS
    assert not {first.id, second.id, third.id} & {shot.id for shot in shown}


def test_every_qa_benchmark_names_its_published_file() -> None:
    for name in QA:
        benchmark = make_benchmark(name)
        assert isinstance(benchmark, MultiHopBenchmark)
        assert (FOLDERS[name] / benchmark.file).is_file()
