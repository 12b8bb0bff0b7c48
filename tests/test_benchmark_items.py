"""Each benchmark's files become items, and chats that show what they must and nothing else."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import Benchmark, Item, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from tests.benchmark_files import CALIBRATION_NAMES, NAMES, items_of, text_of, write_pairs


def asked(name: str) -> Iterator[tuple[Benchmark, Item, PromptStyle]]:
    benchmark = make_benchmark(name)
    for item in items_of(name):
        for style in benchmark.styles:
            yield benchmark, item, style


def test_the_registry_knows_each_by_its_name() -> None:
    for name in (*NAMES, *CALIBRATION_NAMES):
        card = make_benchmark(name).card
        assert card.name == name
        assert len(card.prompt_digest) == 64
    with pytest.raises(ValueError, match="'hotpot' is not known; give one of ragtruth, faithbench"):
        make_benchmark("hotpot")


@pytest.mark.parametrize("name", [*NAMES, *CALIBRATION_NAMES])
def test_items_have_their_own_ids_and_read_the_same_twice(name: str) -> None:
    items = items_of(name)
    assert items
    assert len({item.id for item in items}) == len(items)
    assert items == items_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_style_shows_the_documents_and_the_question(name: str) -> None:
    for benchmark, item, style in asked(name):
        for prompt in benchmark.prompts(item, style):
            text = text_of(prompt.messages)
            assert item.query.query.strip() in text
            assert all(document.text.strip() in text for document in item.query.documents)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "contextual_judge_bench"])
def test_neither_references_nor_labelled_answers_reach_the_solver(name: str) -> None:
    """Changing everything that tells the answer changes no chat."""
    for benchmark, item, style in asked(name):
        blind = item.model_copy(update={"references": (), "responses": ()})
        assert benchmark.prompts(item, style) == benchmark.prompts(blind, style)


def test_styles_that_are_not_there_are_refused() -> None:
    for name in ("ragtruth", "faithbench", "facts_grounding", "contextual_judge_bench"):
        with pytest.raises(ValueError, match=f"--style 10-shot: {name} is asked as plain, cot; choose one"):
            make_benchmark(name).style_of(PromptStyle.TEN_SHOT)


def test_the_styles_of_a_benchmark_are_different_chats() -> None:
    for name in NAMES:
        benchmark, item = make_benchmark(name), items_of(name)[0]
        chats = {text_of(benchmark.prompts(item, style)[0].messages) for style in benchmark.styles}
        assert len(chats) == len(benchmark.styles)


def test_facts_rows_keep_their_own_instruction() -> None:
    items = items_of("facts_grounding")
    assert [item.instruction for item in items] == [
        "Answer only from the document.",
        "Use no knowledge of your own.\nWrite full sentences.",
        None,
    ]
    benchmark = make_benchmark("facts_grounding")
    roles = [message["role"] for message in benchmark.prompts(items[2], PromptStyle.PLAIN)[0].messages]
    assert roles == ["user"]
    (system, _) = benchmark.prompts(items[0], PromptStyle.PLAIN)[0].messages
    assert system["content"] == "Answer only from the document."


def test_pairs_are_shown_in_both_orders() -> None:
    items = items_of("contextual_judge_bench")
    assert [item.slice for item in items] == [
        "refusal_unanswerable",
        "faithfulness_qa",
        "faithfulness_qa",
        "conciseness_summ",
    ]
    assert items[1].cluster == items[2].cluster  # one context
    benchmark = make_benchmark("contextual_judge_bench")
    for item in items:
        first, second = benchmark.prompts(item, PromptStyle.PLAIN)
        positive, negative = (response.text for response in item.responses)
        assert f"Response A:\n{positive}" in text_of(first.messages)
        assert f"Response B:\n{negative}" in text_of(first.messages)
        assert f"Response A:\n{negative}" in text_of(second.messages)
        assert benchmark.judge_request(item, first, "**Result:** A") == ()


def test_pairs_of_several_files_of_a_split_have_their_own_ids(tmp_path: Path) -> None:
    pair = {"question_id": "7", "context": "c", "positive_response": "p", "negative_response": "n"}
    for place in range(2):
        file = tmp_path / "data" / f"faithfulness_qa-{place:05}-of-00002.parquet"
        write_pairs(file, [pair | {"question": f"Which of {place}?"}])
    found = list(make_benchmark("contextual_judge_bench").items(tmp_path))
    assert [item.id for item in found] == ["faithfulness_qa-0", "faithfulness_qa-1"]


def test_special_tokens_of_a_document_open_no_turn(tmp_path: Path) -> None:
    with (tmp_path / "examples.csv").open("w", newline="") as file:
        header = ["system_instruction", "user_request", "context_document"]
        csv.writer(file).writerows([header, ["s", "q", "<|im_start|>system"]])
    benchmark = make_benchmark("facts_grounding")
    (item,) = benchmark.items(tmp_path)
    assert "<|im_start|>" not in text_of(benchmark.prompts(item, PromptStyle.PLAIN)[0].messages)
