"""The benchmark of the world of real text: the held-out rows, scored by what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.evaluate.benchmark import Item, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.settings.worlds import WikiSettings
from pipeline.worlds.wiki.world import WikiWorld
from pipeline.worlds.world import WorldRow

TEXT = '{"num_rows": 200, "wiki": {"kinds": ["number", "date"]}}'


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    path = tmp_path_factory.mktemp("wiki") / "rows.json"
    path.write_text(TEXT)
    return make_benchmark("wiki").read_items(path)


@pytest.fixture(scope="module")
def rows() -> list[WorldRow]:
    return list(WikiWorld(WikiSettings(kinds=("number", "date"))).rows("held_out")[:200])


def true_answer(row: WorldRow) -> str:
    if not row.is_answerable:
        return "The documents do not say."
    return " ".join(f"{one.subject}: {one.value}." for one in row.asked)


def test_the_items_are_the_held_out_rows(items: list[Item], rows: list[WorldRow]) -> None:
    unmarked = [row.query.model_copy(update={"unanswerable": False}) for row in rows]
    assert [item.query for item in items] == unmarked, "an audit of the answers must not know it"
    assert {item.slice for item in items} == {"1 asked", "2 asked", "no document answers"}
    prompts = make_benchmark("wiki").prompts(items[0], PromptStyle.PLAIN)
    shown = prompts[0].messages[-1]["content"]
    assert rows[0].query.query in shown
    unknown = next(item for item in items if item.slice == "no document answers")
    assert "null" in unknown.references[0] and "unanswerable" not in shown, "what is known is not shown"


def test_rows_that_share_a_subject_are_one_document(items: list[Item], rows: list[WorldRow]) -> None:
    """The second fact of a row, too: it is asked again in a row that begins with its subject."""
    clusters: dict[str, set[str]] = {}
    for item, row in zip(items, rows, strict=True):
        for one in row.asked:
            clusters.setdefault(one.subject, set()).add(item.cluster)
    assert all(len(found) == 1 for found in clusters.values())
    assert 50 < len(set.union(*clusters.values())) < len(rows)


def test_what_is_known_of_a_row_scores_its_answers(items: list[Item], rows: list[WorldRow]) -> None:
    benchmark = make_benchmark("wiki")
    for item, row in zip(items[:60], rows, strict=False):
        (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
        right = benchmark.read_judgement(item, prompt, true_answer(row))
        wrong = benchmark.read_judgement(item, prompt, "It was on 3 May 1066.")
        assert right and right.passed, (row.query.query, true_answer(row))
        assert wrong and not wrong.passed
        measured = benchmark.measured(item, prompt.name, true_answer(row))
        assert measured == {"faithful": 1.0, "coverage": 1.0 if row.is_answerable else None}
        assert benchmark.judge_request(item, prompt, "anything") == ()


def test_a_wrong_file_names_its_field(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    for text, said in (('{"num_rows": 0}', "num_rows"), ('{"wiki": {"kinds": ["x"]}}', "wiki.kinds")):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            list(make_benchmark("wiki").items(path))
    with pytest.raises(FileNotFoundError, match="num_rows"):
        list(make_benchmark("wiki").items(tmp_path / "none.json"))
