"""The page of an evaluation: what it shows, that it is inert, and how it looks in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
import yaml

pytest.importorskip("inspect_ai")
from pipeline.evaluate.compare import compare
from pipeline.evaluate.plan import EvaluationJob
from pipeline.evaluate.report import PAPER, beside_paper, render_report
from pipeline.evaluate.results import Manifest
from pipeline.evaluate.run import run_evaluation
from tests.benchmark_files import NAMES
from tests.browser import BROWSER, MISSING, opened_page
from tests.evaluations import QUESTIONS, ChatServer, drawn_answers, drawn_verdict, small_job

ATTACK = "</code><img src=x onerror=alert(1)>"
Evaluated = tuple[EvaluationJob, Manifest, Path]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluated]:
    """An evaluation of a model whose name is markup, and the folder of another one."""
    folder = tmp_path_factory.mktemp("evaluated")
    model, judge = ChatServer(drawn_answers, "tested"), ChatServer(drawn_verdict, "judge")
    other = small_job(folder / "other", model, judge, cache=False)
    run_evaluation(other)
    model.model += ATTACK
    job = small_job(folder / "out", model, judge, cache=False)
    manifest = run_evaluation(job)[0]
    assert manifest is not None
    yield job, manifest, other.out
    model.close()
    judge.close()


def page_of(evaluated: Evaluated) -> str:
    job, manifest, other = evaluated
    comparison = compare(job.out, other)
    html = render_report(manifest, comparison, log_dir="out/logs/judge", viewer="page-items/index.html")
    (job.out.parent / "page.html").write_text(html)
    return html


def test_the_page_shows_figures_changes_and_warnings(evaluated: Evaluated) -> None:
    html = page_of(evaluated)
    accuracy = evaluated[1].benchmarks[QUESTIONS].primary
    assert accuracy is not None and accuracy.value is not None
    assert f'<span class="figure">{100 * accuracy.value:.1f}</span>' in html
    assert "fewer than 50" in html and "Changes are paired" in html and "Apache-2.0" in html
    assert "inspect view --log-dir out/logs/judge" in html and 'href="page-items/index.html"' in html
    assert html == page_of(evaluated), "the same evaluation gives the same bytes"


def test_what_others_wrote_is_never_markup(evaluated: Evaluated) -> None:
    html = page_of(evaluated)
    assert ATTACK not in html and "<script" not in html
    assert "default-src 'none'" in unescape(html) and "unsafe-inline" not in html


def test_the_papers_tables_are_whole_and_their_means_are_what_is_printed() -> None:
    tables = yaml.safe_load(PAPER.read_text())["tables"]
    assert [len(table["columns"]) for table in tables] == [10, 20, 12, 24, 12]
    for table in tables:
        known = (*NAMES, None)
        assert table["source"] and all(line.get("benchmark") in known for line in table["lines"])
        for column in table["columns"]:
            values, model = column["values"], column["model"]
            assert len(values) == len(table["lines"])
            if "benchmark" not in table["lines"][-1]:
                mean = sum(values[:-1]) / (len(values) - 1)
                # The paper prints 71.01 for a mean of 72.01.
                misprint = 1.0 if model == "o4-mini-medium-2025-04-16" else 0.0
                assert mean == pytest.approx(values[-1] + misprint, abs=0.11), model


def test_our_figures_stand_in_a_column_of_their_own(evaluated: Evaluated) -> None:
    _, manifest, _ = evaluated
    found = manifest.benchmarks[QUESTIONS]
    estimates = {"overall": {"consistent": found.estimates["overall"]["accuracy"]}}
    estimates |= dict.fromkeys(("summary", "qa", "data2txt"), estimates["overall"])
    card = found.card.model_copy(update={"primary": "consistent"})
    known = found.model_copy(update={"estimates": estimates, "card": card})
    ours = manifest.model_copy(update={"benchmarks": {"ragtruth": known}})
    lines = yaml.safe_load(PAPER.read_text())["tables"][0]["lines"]
    values = beside_paper(ours, lines)
    assert [value and value.value for value in values[:3]] == [estimates["qa"]["consistent"].value] * 3
    assert values[3] is None and values[4] is None, "no mean over lines that are not all there"
    mean = beside_paper(ours, [*lines[:3], {"label": "Average"}])[-1]
    assert mean is not None and mean.value == pytest.approx(estimates["qa"]["consistent"].value)
    html = render_report(ours)
    assert html.count('class="paper"') == 2, "tables of which it has a line"
    row = re.search(r"RAGTruth Summary</td>(.*?)</tr>", html, re.DOTALL)
    assert row is not None and row[1].count('class="ours"') == 1 and row[1].count('class="n"') == 10


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_a_browser_shows_it(evaluated: Evaluated) -> None:
    page_of(evaluated)
    html = opened_page(evaluated[0].out.parent / "page.html", "items")
    assert "Every item in Inspect" in html and "<h2>Items</h2>" in html
