"""HotpotQA, 2WikiMultihopQA and MuSiQue on real rows, and the examples of the 10-shot style."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark, multihop
from pipeline.evaluate.benchmarks.multihop import MuSiQue
from pipeline.evaluate.benchmarks.prompts import NUM_SHOTS, load_shots, pick_shots
from pipeline.statistics import linked
from reward.types import Document
from tests.benchmark_files import FOLDERS, QA, items_of, text_of
from tests.benchmark_rows import queries_of


@pytest.mark.parametrize(
    ("name", "answers", "slices"),
    [
        (
            "hotpotqa",
            ["writer", "Canada", "no", "1974", "Home Monthly"],
            {"bridge", "comparison"},
        ),
        ("2wikimultihopqa", ["Fomboni", "The Secret Of The Storm Country"], {"compositional"}),
        ("musique", ["1950\u20131953)", "a communist government"], {"2hop", "4hop"}),
    ],
)
def test_rows_of_the_development_sets(name: str, answers: list[str], slices: set[str]) -> None:
    items = items_of(name)
    assert [item.references[0] for item in items][: len(answers)] == answers
    assert slices <= {item.slice for item in items}


def test_only_the_first_rows_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multihop, "NUM_ROWS", 2)
    items = items_of("musique")
    assert [item.id for item in items] == ["2hop__85463_33311", "2hop__85463_54688"]


def test_aliases_of_musique_are_references(tmp_path: Path) -> None:
    line = FOLDERS["musique"].read_text().splitlines()[1]
    file = tmp_path / MuSiQue.file
    file.write_text(line.replace('"answer_aliases": []', '"answer_aliases": ["communism"]'))
    (item,) = MuSiQue().items(tmp_path)
    assert item.references == ("a communist government", "communism")


def test_aliases_of_2wiki_are_read_when_they_lie_beside(tmp_path: Path) -> None:
    shutil.copy(FOLDERS["2wikimultihopqa"] / "dev.json", tmp_path)
    row = next(row for row in json.loads((tmp_path / "dev.json").read_text()) if row["answer"] == "Fomboni")
    alias = {"Q_id": row["answer_id"], "aliases": ["Fomboni", "Mo"], "demonyms": ["Mo", "Fombonian"]}
    (tmp_path / "id_aliases.json").write_text(json.dumps(alias) + "\n")
    found = {item.id: item.references for item in make_benchmark("2wikimultihopqa").items(tmp_path)}
    assert found.pop(row["_id"]) == ("Fomboni", "Mo", "Fombonian")
    assert all(len(references) == 1 for references in found.values())


def test_rows_that_need_a_paragraph_in_common_are_one_cluster() -> None:
    items = items_of("musique")  # three need "Yalu River", four the same three paragraphs about Green Bay
    assert [item.cluster for item in items] == [items[place].id for place in (0, 0, 0, 3, 4, 4, 4, 4)]
    assert linked([["a"], ["b"], ["b", "c"], ["d"], ["c", "a"], []]) == [0, 0, 0, 3, 0, 5]
    assert linked([]) == []


@pytest.mark.parametrize("name", QA)
def test_the_judge_of_an_answer_sees_the_reference_and_no_documents(name: str) -> None:
    benchmark, item = make_benchmark(name), items_of(name)[0]
    (prompt,) = benchmark.prompts(item, PromptStyle.COT)
    request = benchmark.judge_request(item, prompt, "First ...\n**Answer:** Green Bay")
    text = text_of(request)
    assert all(reference in text for reference in item.references)
    assert text.endswith("Response to judge:\nGreen Bay")
    assert item.query.documents[0].text not in text


def test_shots_are_rows_of_the_train_split_with_what_they_need() -> None:
    shots = load_shots()
    assert len(shots) > NUM_SHOTS
    assert len({shot.id for shot in shots}) == len(shots)
    assert all(2 <= len(shot.documents) <= 4 for shot in shots)
    dev = {query.id for query in queries_of("2wikimultihopqa", FOLDERS["2wikimultihopqa"] / "dev.json")}
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
