"""The page of `march inspect`: figures by step, what it leaves out, and that it is safe to open."""

import re
from pathlib import Path

import pytest

from orchestration.inspect.page import render_run
from orchestration.inspect.run import Run, few, open_run, read_answers, read_entries, totals
from tests.rollout_runs import evil_run, picnic_run
from tests.test_report import Page, page_data


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return picnic_run(tmp_path)


@pytest.fixture
def evil(tmp_path: Path) -> Run:
    return open_run(evil_run(tmp_path))


def test_the_page_shows_what_others_wrote_as_text(evil: Run) -> None:
    entries = read_entries(evil)
    html = render_run(evil, read_answers(evil, entries), totals(entries))
    page = Page(html)
    assert [one.get("type") for one in page.all("script")] == ["application/json", None]
    assert not page.all("img") and not page.all("link")
    assert not any(name.startswith("on") or name == "style" for _, at in page.elements for name in at)
    places = [value for _, at in page.elements for name, value in at.items() if name in ("src", "href")]
    assert places and all(place is not None and place.startswith("#") for place in places)
    [policy] = [one["content"] or "" for one in page.all("meta") if "http-equiv" in one]
    assert html.startswith("<!doctype html>") and policy.startswith("default-src 'none'; style-src 'sha256-")
    assert page_data(html)["rows"]["row-1-1"]["claims"][0]["claim"]["question"] == "How many, 1?"


def test_the_page_counts_what_it_leaves_out(run_dir: Path) -> None:
    run = open_run(run_dir)
    entries = read_entries(run)
    html = render_run(run, read_answers(run, few(entries, 5)), totals(entries))
    assert "shows 5 of 12 answers; 7 are left out" in html
    articles = Page(html).all("article")
    assert [one["id"] for one in articles] == ["row-1-1", "row-1-3", "row-2-3", "row-2-4", "row-3-4"]
    assert [one["data-step"] for one in articles] == ["1", "1", "2", "2", "3"]
    whole = render_run(run, read_answers(run, entries), totals(entries))
    assert "are left out" not in whole


def test_documents_of_several_answers_stand_in_the_page_once(run_dir: Path) -> None:
    run = open_run(run_dir)
    entries = read_entries(run)
    data = page_data(render_run(run, read_answers(run, entries), totals(entries)))
    assert len(data["documents"]) == 2 and len(data["rows"]) == 12


def test_the_page_has_the_figures_of_each_step(run_dir: Path) -> None:
    run = open_run(run_dir)
    table = render_run(run, [], totals([])).partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row)[:4] for row in table.split("</tr>")[:3]]
    assert rows == [["1", "-0.50", "25%", "50%"], ["2", "0.00", "75%", "0%"], ["3", "0.00", "50%", "0%"]]
