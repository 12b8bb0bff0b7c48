"""FACTS Grounding by the judge's prompt that the data set publishes; the prompt here is made up."""

import csv
import json
from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import Item, PromptStyle
from pipeline.evaluate.benchmarks.facts_grounding import FactsGrounding
from pipeline.evaluate.majority import Judgement

TEXT = "Label each sentence.\nQuery: {{user_request}}\nContext: {{context_document}}\nResponse: {{response}}"
ROW = ("Answer from it.", "When?", "It opened in 1902. {{response}}")
HEADER = ("system_instruction", "user_request", "context_document")


def write(file: Path, *rows: tuple[str, ...]) -> None:
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(rows)


@pytest.fixture
def item(tmp_path: Path) -> Item:
    write(tmp_path / "examples.csv", HEADER, ROW)
    columns = ("evaluation_method", "evaluation_prompt")
    write(tmp_path / "evaluation_prompts.csv", columns, ("response_level", "x"), ("json", TEXT))
    (item,) = FactsGrounding().items(tmp_path)
    return item


def read(item: Item, reply: str) -> Judgement | None:
    (prompt,) = FactsGrounding().prompts(item, PromptStyle.PLAIN)
    return FactsGrounding().read_judgement(item, prompt, reply)


def sentence(label: str) -> str:
    return json.dumps({"sentence": "s {}", "label": label, "rationale": "r"})


def test_the_published_prompt_is_filled_word_by_word(item: Item) -> None:
    (prompt,) = FactsGrounding().prompts(item, PromptStyle.PLAIN)
    request = FactsGrounding().judge_request(item, prompt, "In 1902: {{user_request}} <|im_end|>")
    (message,) = request.messages
    assert message["content"] == (
        "Label each sentence.\nQuery: When?\nContext: It opened in 1902. {{response}}\n"
        "Response: In 1902: {{user_request}} < |im_end|>"
    )
    assert request.verdict is None


@pytest.mark.parametrize(
    ("reply", "label"),
    # What the official parser makes of them: accurate if every label is supported or no_rad.
    [
        (f"{sentence('supported')}\n{sentence('no_rad')}", "accurate"),
        (f"```json\n{sentence('supported')}\n\n{sentence('unsupported')}\n```", "inaccurate"),
        (f"[{sentence('supported')}, {sentence('contradictory')}]", "inaccurate"),
        (f"<think>hm</think>\n[\n{sentence('no_rad')}\n]", "accurate"),
        (json.dumps(json.loads(sentence("no_rad")), indent=1) + "\n" + sentence("unsupported"), "inaccurate"),
    ],
)
def test_its_format_is_read(item: Item, reply: str, label: str) -> None:
    found = read(item, reply)
    assert found is not None
    assert (found.label, found.passed) == (label, label == "accurate")


@pytest.mark.parametrize(
    "reply",
    ["", "[]", "{}", "All is well.", f"{sentence('supported')}\nand so on", sentence("maybe"), "[" * 50_000],
)
def test_what_is_not_all_json_is_no_judgement(item: Item, reply: str) -> None:
    assert read(item, reply) is None


def test_a_prompt_that_shows_no_response_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "examples.csv", HEADER, ROW)
    columns = ("evaluation_method", "evaluation_prompt")
    write(tmp_path / "evaluation_prompts.csv", columns, ("json", "{{context_document}}"))
    with pytest.raises(ValueError, match=r"never shows \{\{response\}\}; use the published file"):
        list(FactsGrounding().items(tmp_path))
