"""The page's script, driven in a real browser: an address opens its claim, and filters filter."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reward.offline.figures import count_figures
from reward.offline.report import render_report
from reward.offline.run import Summary
from reward.types import Outcome
from tests.audit_jobs import picnic_pair

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium found (Debian: apt-get install chromium)"),
]


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
    assert BROWSER is not None
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *(
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={folder / 'profile'}",
        ),
        *("--virtual-time-budget=2000", "--dump-dom", f"{page.as_uri()}#{address}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def panel(html: str) -> str:
    found = re.search(r'<aside id="panel".*?</aside>', html, re.DOTALL)
    assert found is not None
    return found[0]


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
    assert "stands in no document verbatim" in shown


def test_an_address_of_filters_filters(tmp_path: Path) -> None:
    html = opened(tmp_path, "?outcome=UNSCORED")
    articles = re.findall(r'<article id="([^"]*)"[^>]*?( hidden="")?>', html)
    assert articles == [("row-a%2Fb", ' hidden=""'), ("row-c", "")]
    assert "1 of 2 answers" in html


def test_an_address_that_names_nothing_leaves_the_page_as_it_is(tmp_path: Path) -> None:
    html = opened(tmp_path, "row-nobody/7")
    assert "Choose a coloured number" in panel(html)
    assert "2 of 2 answers" in html
