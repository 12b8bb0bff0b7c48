"""The page of an audit is safe to open, says what it leaves out, and is the same for the same audit."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reward.offline.excerpt import Mark, printable, segment, sentence, windows
from reward.offline.figures import count_figures
from reward.offline.page import anchor
from reward.offline.report import MOST_DOCUMENT_CHARS, render_report, report_row, script_data
from reward.offline.run import audited_rows
from reward.offline.terminal import print_summary
from reward.types import Document, RagQuery
from tests.audit_jobs import pairs, picnic_pair, ragtruth_job, run, shop_file, shop_job, shop_rows

EVIL = "</script><script>alert('5 euros')</script><img src=x onerror=alert(1)>\u2028 http://evil.example"


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_data(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def evil_page(folder: Path) -> str:
    row = {"id": EVIL, "query": EVIL, "response": f"{EVIL} 7", "task_type": EVIL}
    row |= {"documents": [{"id": EVIL, "title": EVIL, "text": f"{EVIL} 7."}], "human_spans": []}
    job = shop_job(folder, input=shop_file(folder, [row, row | {"id": "b", "response": "8"}]))
    return render_report(run(job)[0], audited_rows(job))


def test_the_page_shows_what_others_wrote_as_text(tmp_path: Path) -> None:
    page = Page(evil_page(tmp_path))
    assert [attributes.get("type") for attributes in page.all("script")] == ["application/json", None]
    assert not page.all("img")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not any("style" in attributes for _, attributes in page.elements)
    data = page_data(evil_page(tmp_path))
    assert data["documents"][0]["parts"] == [{"start": 0, "text": f"{EVIL} 7."}]


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    page = Page(evil_page(tmp_path))
    places = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert places and all(place is not None and place.startswith("#") for place in places)
    assert not page.all("link")
    [style] = re.findall("<style>(.*?)</style>", evil_page(tmp_path), re.DOTALL)
    assert "url(" not in style and "@import" not in style


def test_the_policy_allows_the_pages_own_script_and_style_alone(tmp_path: Path) -> None:
    html = evil_page(tmp_path)
    page = Page(html)
    [policy] = [
        one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    for name in ("script", "style"):
        [text] = re.findall(f"<{name}>(.*?)</{name}>", html, re.DOTALL)
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy


def test_the_same_audit_gives_the_same_bytes(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    first = render_report(run(job)[0], audited_rows(job))
    again = ragtruth_job(tmp_path, overwrite=True)
    assert render_report(run(again)[0], audited_rows(again)) == first


def test_the_worst_rows_come_first_and_those_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward.offline.report.MOST_ROWS", 4)
    job = shop_job(tmp_path)
    page = render_report(run(job)[0], audited_rows(job))
    shown = [one.get("data-outcome") for one in Page(page).all("article")]
    assert shown == ["REFUTED"] * 3 + ["SUPPORTED"]
    assert "8 more answers are in the audit but not in this page, which shows the 4 worst" in page


def test_every_claim_of_the_page_has_an_address_and_its_data() -> None:
    one = report_row(*picnic_pair(row_id="a/b c"))
    data = json.loads(script_data([one]))
    assert one.anchor == "row-a%2Fb%20c"
    claims = data["rows"][one.anchor]["claims"]
    assert [claim["state"] for claim in claims] == [found.state for found in one.verdict.claims]
    assert [piece.claim for piece in one.pieces if piece.claim] == [1, 2, 3, 4, 5]
    assert "".join(piece.text for piece in one.pieces) == one.row.response
    assert claims[0]["votes"][0]["evidence_at"] == {"document": "july", "start": 28, "end": 44}


def test_a_number_that_people_marked_in_part_is_one_number(tmp_path: Path) -> None:
    row, verdict = picnic_pair(human_spans=[{"start": 0, "end": 11}])
    summary = run(shop_job(tmp_path))[0].model_copy(update={"figures": count_figures([(row, verdict)])})
    page = render_report(summary, [(row, verdict)])
    pieces = re.findall(r'<a class="([^"]*)" href="#row-p1/1" title="contradicted">([^<]*)</a>', page)
    assert pieces == [("num contradicted human unended", "5"), ("num contradicted", "00")]


def test_a_long_document_is_shown_around_its_evidence() -> None:
    row, verdict = picnic_pair()
    long = "x" * 50_000
    documents = tuple(
        Document(id=one.id, title=one.title, text=one.text + long) for one in row.query.documents
    )
    query = RagQuery(id=row.query.id, query=row.query.query, documents=documents)
    data = json.loads(script_data([report_row(row.model_copy(update={"query": query}), verdict)]))
    for document in data["documents"]:
        assert document["size"] > 50_000
        assert sum(len(part["text"]) for part in document["parts"]) <= MOST_DOCUMENT_CHARS + 100


@given(st.text(max_size=20))
def test_an_address_holds_no_space_and_says_its_id(row_id: str) -> None:
    address = anchor(row_id)
    assert re.fullmatch(r"row-[\w.:@!$,;=~%-]*", address)
    assert unquote(address) == f"row-{row_id}"


@given(
    text=st.text(max_size=30),
    marks=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from("abc")), max_size=6),
)
def test_marked_pieces_joined_are_the_text(text: str, marks: list[tuple[int, int, str]]) -> None:
    pieces = segment(text, [Mark(*mark) for mark in marks])
    assert "".join(piece.text for piece in pieces) == text
    place = 0
    for piece in pieces:
        for at in range(place, place + len(piece.text)):
            assert set(piece.names) == {name for start, end, name in marks if start <= at < end}
        place += len(piece.text)


@given(
    size=st.integers(0, 500),
    places=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=4),
    most=st.integers(1, 600),
)
def test_shown_parts_are_in_order_and_hold_every_place(
    size: int, places: list[tuple[int, int]], most: int
) -> None:
    inside = [(min(start, size), min(start + length, size)) for start, length in places]
    parts = windows(size, inside, most=most)
    assert all(0 <= low <= high <= size for low, high in parts)
    assert all(high < low for (_, high), (low, _) in pairwise(parts))
    assert all(any(low <= start and end <= high for low, high in parts) for start, end in inside)
    if size <= most:
        assert parts == [(0, size)]


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("One. It is 5 euros. Two.", "5", "It is 5 euros."),
        ("a\nIt is 5\nb", "5", "It is 5"),
        ("It is 5.5 now", "5.5", "It is 5.5 now"),
        ("5", "5", "5"),
    ],
)
def test_a_sentence_is_cut_verbatim(text: str, number: str, expected: str) -> None:
    start = text.index(number)
    assert sentence(text, start, start + len(number)) == expected


@given(st.text())
def test_no_terminal_obeys_a_text(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_summary_fits_the_terminal(width: int, tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    console = Console(width=width, record=True, file=StringIO())
    print_summary(run(job)[0], console)
    printed = console.export_text()
    assert all(len(line) <= width for line in printed.splitlines())
    if width >= 80:
        assert "cleaned overall" in printed and "\u2026" not in printed
    assert all(pair[1].id not in printed for pair in pairs(job))


def test_rows_without_labels_have_no_filter_for_people(tmp_path: Path) -> None:
    job = shop_job(tmp_path, input=shop_file(tmp_path, shop_rows(4)))
    assert 'id="filter-people"' not in render_report(run(job)[0], audited_rows(job))
