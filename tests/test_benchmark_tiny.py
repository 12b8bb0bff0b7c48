"""The benchmark of the tiny world: the same file draws the same worlds, and a rule scores their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.tiny.world import sample_worlds
from tests.benchmark_files import item_scores


@pytest.fixture
def worlds(tmp_path: Path) -> Path:
    path = tmp_path / "worlds.json"
    path.write_text('{"num_worlds": 5, "seed": 3}')
    return path


def test_the_same_file_draws_the_same_held_out_worlds(worlds: Path) -> None:
    benchmark = make_benchmark("tiny")
    items = list(benchmark.items(worlds))
    assert items == list(benchmark.items(worlds))
    assert [item.query for item in items] == [one.query for one in sample_worlds(5, 3, "held_out")]
    assert {item.slice for item in items} <= {"1 asked", "2 asked", "3 asked"}


def test_true_answers_pass_and_others_do_not(worlds: Path) -> None:
    benchmark = make_benchmark("tiny")
    world, item = sample_worlds(1, 3, "held_out")[0], next(iter(benchmark.items(worlds)))
    (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
    right = " ".join(fact.statement() for fact in world.asked)
    wrong = " ".join(fact.statement(fact.value + 1) for fact in world.asked)
    assert benchmark.judge_request(item, prompt, right) == ()
    said = [benchmark.read_judgement(item, prompt, text) for text in (right, wrong, "")]
    assert [one.passed for one in said if one] == [True, False, False]
    judged = [(right, said[0]), ("", said[2])]
    scores = item_scores(benchmark, item, {prompt.name: judged})
    assert scores["right"] == 0.0 and scores["coverage"] == 0.5, "a tie is not passed"
    less = world.asked[0].statement()
    assert benchmark.read_judgement(item, prompt, less).passed is (len(world.asked) == 1), "saying less"
    assert prompt.messages and world.asked[0].question() in prompt.messages[-1]["content"]


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"num_worlds": 0, "seed": 1}', "num_worlds"), ('{"seed": 1}', "num_worlds"), ("worlds", "not JSON")],
)
def test_a_wrong_file_is_told_by_its_field(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "worlds.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        list(make_benchmark("tiny").items(path))
    with pytest.raises(FileNotFoundError, match="num_worlds"):
        list(make_benchmark("tiny").items(tmp_path / "none.json"))
