"""The page of an evaluation: what it shows, that it is inert, and that thousands of items fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from pipeline.evaluate.compare import compare
from pipeline.evaluate.manifest import Manifest, read_all_results
from pipeline.evaluate.paper import Beside, beside_paper, load_paper
from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.report import render_report, write_report
from pipeline.evaluate.report_items import cut, items_data, state_of
from pipeline.evaluate.results import ItemResult
from pipeline.evaluate.statistics import Estimate
from tests.browser import BROWSER, MISSING, opened_page, panel
from tests.evaluations import ChatServer, make, ruled, run, said_price, shops_job

ATTACK = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EvaluationJob, Manifest, Path]]:
    """An evaluation whose model writes markup, and the folder of another one."""
    folder = tmp_path_factory.mktemp("evaluated")
    model, judge = ChatServer(said_price, "tested"), ChatServer(ruled, "judge")
    other = shops_job(folder / "other", model, judge)
    run(other)
    model.complete = lambda body: [f"{text} {ATTACK}" for text in said_price({**body, "seed": 5})]
    job = shops_job(folder / "out", model, judge)
    manifest = run(job)[0].manifest
    assert manifest is not None
    yield job, manifest, other.out
    model.close()
    judge.close()


def page_of(evaluated: tuple[EvaluationJob, Manifest, Path]) -> str:
    job, manifest, other = evaluated
    comparison = compare(manifest, read_all_results(job.out, manifest), other)
    path = job.out.parent / "page.html"
    write_report(path, job, make, manifest, comparison)
    return path.read_text()


def test_the_page_shows_figures_changes_and_warnings(
    evaluated: tuple[EvaluationJob, Manifest, Path],
) -> None:
    html = page_of(evaluated)
    right = evaluated[1].benchmarks["shops"].primary
    assert right is not None and right.value is not None
    assert f'<span class="figure">{100 * right.value:.1f}</span>' in html
    assert "fewer than 50" in html and "Changes are paired" in html and "CC0-1.0" in html
    assert html == page_of(evaluated), "the same evaluation gives the same bytes"


def test_what_a_model_wrote_is_never_markup(evaluated: tuple[EvaluationJob, Manifest, Path]) -> None:
    html = page_of(evaluated)
    assert ATTACK not in html and "onerror=alert(1)\\u003e" in html
    assert "default-src 'none'" in unescape(html) and "unsafe-inline" not in html


def test_items_stand_in_the_data_with_every_answer(evaluated: tuple[EvaluationJob, Manifest, Path]) -> None:
    found = re.search(r'id="data">(.*?)</script>', page_of(evaluated), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["benchmarks"] == ["shops"] and len(data["documents"]) == 10
    assert [(item[1], item[6], len(item[13])) for item in data["items"]] == [
        (str(i), 8, 8) for i in range(10)
    ]


def test_thousands_of_items_are_cut_to_fit(evaluated: tuple[EvaluationJob, Manifest, Path]) -> None:
    job, manifest, _ = evaluated
    item = next(iter(make("shops").items(job.benchmarks[0].path)))
    (result, *_) = read_all_results(job.out, manifest)["shops"]
    long = result.generations[0].model_copy(update={"text": "word " * 4_000})
    result = result.model_copy(update={"generations": (long,) * 8})
    pairs = [
        (item.model_copy(update={"id": str(i)}), result.model_copy(update={"item": str(i)}))
        for i in range(3_000)
    ]
    text = items_data({"shops": pairs}, {"shops": "right"})
    assert len(text) < 45_000_000
    assert "more characters)" in text and len(json.loads(text)["items"]) == 3_000
    assert cut("abc", 3) == "abc" and cut("abcd", 3) == "abc\u2026 (1 more characters)"


@pytest.mark.parametrize(("score", "state"), [(1.0, "passed"), (0.0, "failed"), (None, "unscored")])
def test_an_item_without_a_score_has_neither_passed_nor_failed(score: float | None, state: str) -> None:
    result = ItemResult(item="1", slice="s", cluster="c", scores={"right": score})
    assert state_of(result, "right") == state


def test_the_papers_tables_are_whole_and_their_means_are_what_is_printed() -> None:
    tables = load_paper()
    assert [len(table.columns) for table in tables] == [10, 20, 12, 24, 12]
    for table in tables:
        for column in table.columns:
            assert len(column.values) == len(table.lines)
            if table.lines[-1].benchmark is None:
                mean = sum(column.values[:-1]) / (len(column.values) - 1)
                # The paper prints 71.01 for a mean of 72.01.
                misprint = 1.0 if column.model == "o4-mini-medium-2025-04-16" else 0.0
                assert mean == pytest.approx(column.values[-1] + misprint, abs=0.11), column.model


def test_our_figures_stand_in_a_column_of_their_own(evaluated: tuple[EvaluationJob, Manifest, Path]) -> None:
    _, manifest, _ = evaluated
    shops = manifest.benchmarks["shops"]
    estimates = {"overall": {"consistent": shops.estimates["overall"]["right"]}}
    estimates |= dict.fromkeys(("summary", "qa", "data2txt"), estimates["overall"])
    card = shops.card.model_copy(update={"primary": "consistent"})
    known = shops.model_copy(update={"estimates": estimates, "card": card})
    table = beside_paper(manifest.model_copy(update={"benchmarks": {"ragtruth": known}}))[0]
    assert isinstance(table, Beside)
    assert [isinstance(value, Estimate) for value in table.ours] == [True, True, True, False, False]
    assert table.ours[3] is None and table.ours[4] is None, "no mean over lines that are not all there"
    assert beside_paper(manifest) == []
    html = render_report(manifest.model_copy(update={"benchmarks": {"ragtruth": known}}), {"ragtruth": []})
    row = re.search(r"RAGTruth Summary</td>(.*?)</tr>", html, re.DOTALL)
    assert row is not None and row[1].count('class="ours"') == 1 and row[1].count('class="n"') == 10


browser = pytest.mark.skipif(BROWSER is None, reason=MISSING)


@pytest.mark.slow
@browser
def test_an_address_opens_its_item_with_every_answer(
    evaluated: tuple[EvaluationJob, Manifest, Path],
) -> None:
    page_of(evaluated)
    html = opened_page(evaluated[0].out.parent / "page.html", "item-3")
    shown = panel(html)
    assert shown.count("<summary>Answer ") == 8 and "How much is a lamp?" in shown
    assert "Reference: 103" in shown and "The shop number 3 sells lamps" in shown
    assert "&lt;img src=x" in shown and "<img" not in shown
    assert 'class="open"' in shown


@pytest.mark.slow
@browser
def test_filters_and_pages_of_items(evaluated: tuple[EvaluationJob, Manifest, Path]) -> None:
    page_of(evaluated)
    page = evaluated[0].out.parent / "page.html"
    east = opened_page(page, "?part=east")
    assert "5 of 10 items" in east and east.count('<article class="item') == 5
    nothing = opened_page(page, "?text=nowhere")
    assert "0 of 10 items" in nothing and '<p id="none" class="soft">' in nothing
    divided = opened_page(page, "?mark=split")
    results = read_all_results(evaluated[0].out, evaluated[1])["shops"]
    num_split = sum(0 < (one.scores["right_mean"] or 0) < 1 for one in results)
    assert f"{num_split} of 10 items" in divided
