"""What is read out of model output: the part that is judged, a choice between two, a judge's JSON."""

import json
from typing import Any

import pytest

from pipeline.evaluate.benchmark import Benchmark, Item, Prompt
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.contextual_judge_bench import POSITIVE_FIRST
from pipeline.evaluate.benchmarks.prompts import ANSWER, REASONED_ANSWER, judged_text, last_answer
from pipeline.evaluate.majority import Judgement
from tests.benchmark_files import NAMES, items_of


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**Result:** A", "positive"),
        ("x **Result:** A but then\n**Result:** B\n", "negative"),
        ("**Result:**\n**B**", "negative"),
        ("<think>**Result:** B</think>\n**Result:** A.", "positive"),
        ("**Result:** A or B", None),
        ("**Result:** AB", None),
        ("Result: A", None),
        ("A", None),
        ("", None),
        ("**Result:** " + "A " * 50_000, None),
    ],
)
def test_a_choice_is_read_off_the_end_or_not_at_all(text: str, label: str | None) -> None:
    benchmark, item = make_benchmark("contextual_judge_bench"), items_of("contextual_judge_bench")[0]
    found = benchmark.read_judgement(item, Prompt(name=POSITIVE_FIRST), text)
    assert (found and found.label) == label


@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        (ANSWER, " An answer. ", "An answer."),
        (ANSWER, "Notes.\nAnswer: x", "Notes.\nAnswer: x"),
        (ANSWER, "<think>Answer: y</think>\n\nx", "x"),
        (REASONED_ANSWER, "Notes.\nAnswer: x", "x"),
        (REASONED_ANSWER, "Answer: y\nmore\n **Answer:**\nx\ny", "x\ny"),
        (REASONED_ANSWER, "**Answer**: x", "x"),
        (REASONED_ANSWER, "No mark at all", "No mark at all"),
        (REASONED_ANSWER, "Notes.\nAnswer:", "Notes.\nAnswer:"),
        (REASONED_ANSWER, "The answer: x", "The answer: x"),
    ],
)
def test_which_part_of_a_generation_is_judged(prompt: str, text: str, expected: str) -> None:
    assert judged_text(prompt, text) == expected


def test_the_last_answer_line() -> None:
    assert last_answer("answer: 1\nAnswer: 2\n") == "2"
    assert last_answer("none") is None


JUDGED = [name for name in NAMES if name != "contextual_judge_bench"]
REPLIES: dict[str, dict[str, Any]] = {
    "ragtruth": {"reasoning": "so", "classification": "Consistent"},
    "faithbench": {"reasoning": "so", "classification": "Consistent"},
    "facts_grounding": {
        "sentences": [{"sentence": "s", "label": "supported", "rationale": "r", "excerpt": "e"}],
        "instruction_following": "No Issues",
    },
    **{
        name: {"reasoning": "so", "verdict": "correct"} for name in ("hotpotqa", "2wikimultihopqa", "musique")
    },
}


def read(name: str, reply: str) -> Judgement | None:
    benchmark, item = make_benchmark(name), items_of(name)[0]
    return benchmark.read_judgement(item, Prompt(name=ANSWER), reply)


@pytest.mark.parametrize("name", JUDGED)
def test_a_verdict_is_json_of_its_schema_or_none(name: str) -> None:
    good = json.dumps(REPLIES[name])
    for reply in (good, f"```json\n{good}\n```", f"<think>hm</think>\n{good}"):
        found = read(name, reply)
        assert found is not None and found.passed
    first = next(iter(REPLIES[name]))
    bad = [
        "",
        "Final classification: Consistent",
        f"Here it is: {good}",
        f"{good}\n{good}",
        good[:-1],
        json.dumps({**REPLIES[name], "score": 1}),
        json.dumps({key: value for key, value in REPLIES[name].items() if key != first}),
        good.replace("onsistent", "onfused").replace("correct", "right").replace("supported", "fine"),
        "[" * 100_000,
    ]
    assert [read(name, reply) for reply in bad] == [None] * len(bad)


@pytest.mark.parametrize("name", JUDGED)
def test_the_schema_is_strict(name: str) -> None:
    benchmark: Benchmark = make_benchmark(name)
    item: Item = items_of(name)[0]
    request = benchmark.judge_request(item, Prompt(name=ANSWER), "An answer.")
    assert request and benchmark.verdict is not None
    schema = benchmark.verdict.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(REPLIES[name]) == set(schema["required"])
