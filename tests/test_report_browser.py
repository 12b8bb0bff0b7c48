"""The page's script, driven in a real browser: an address opens its claim, and filters filter."""

import re
from pathlib import Path

import pytest

from reward.offline.figures import count_figures
from reward.offline.report import render_report
from reward.offline.run import Summary
from reward.types import Outcome
from tests.audit_jobs import picnic_pair
from tests.browser import BROWSER, MISSING, articles, opened_page, panel

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason=MISSING)]


def opened(folder: Path, address: str) -> str:
    """What a browser makes of the page at an address within it."""
    rows = [
        picnic_pair(row_id="a/b", human_spans=[{"start": 0, "end": 11}], task_type="QA"),
        picnic_pair(Outcome.UNSCORED, row_id="c", human_spans=[], task_type="Summary"),
    ]
    summary = Summary(
        input="answers.jsonl",
        input_sha256="1" * 64,
        output_sha256="2" * 64,
        settings={"auditor": "model", "sampler": {"model": "m"}, "audit": {"voters": 3}},
        settings_sha256="3" * 64,
        num_excluded={},
        num_audited=2,
        audit_s=1.0,
        figures=count_figures(rows),
    )
    page = folder / "report.html"
    page.write_text(render_report(summary, rows), encoding="utf-8")
    return opened_page(page, address)


def test_an_address_opens_its_claim_with_the_evidence_marked(tmp_path: Path) -> None:
    shown = panel(opened(tmp_path, "row-a%2Fb/2"))
    assert "How many, 2?" in shown
    # The emoji before it is one code point and two of JavaScript's units.
    assert re.search(r'<mark data-start="\d+"[^>]*>It drew 50 people</mark>', shown)
    assert "3 of 3" in shown and " 3 votes" in shown
    assert 'class="open"' in shown


def test_each_state_says_what_it_is(tmp_path: Path) -> None:
    shown = panel(opened(tmp_path, "row-c/4"))
    assert "no consensus" in shown and "do not agree" in shown
    assert "is in no document verbatim" in shown


def test_an_address_of_filters_filters(tmp_path: Path) -> None:
    html = opened(tmp_path, "?outcome=UNSCORED")
    assert articles(html) == [("row-a%2Fb", False), ("row-c", True)]
    assert "1 of 2 answers" in html


def test_an_address_that_names_nothing_leaves_the_page_as_it_is(tmp_path: Path) -> None:
    html = opened(tmp_path, "row-nobody/7")
    assert "Choose a coloured claim" in panel(html)
    assert "2 of 2 answers" in html
