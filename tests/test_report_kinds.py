"""Claims of several kinds in the figures, the terminal, the page and the agreement with people."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from reward.offline.agreement import HumanCounts, Target
from reward.offline.figures import Figures, count_figures
from reward.offline.report import render_report, report_row, script_data
from reward.offline.rows import AuditRow
from reward.offline.run import Summary
from reward.offline.terminal import print_summary
from reward.types import Claim, ClaimState, ClaimVerdict, Verdict
from tests.audit_jobs import picnic_pair, run, shop_job
from tests.browser import BROWSER, MISSING, articles, opened_page, panel


def with_kinds(row: AuditRow, verdict: Verdict, *kinds: str) -> tuple[AuditRow, Verdict]:
    """The verdict with its first claims made into claims of these kinds."""
    claims = [
        found.model_copy(update={"claim": found.claim.model_copy(update={"kind": kind})})
        for found, kind in zip(verdict.claims, [*kinds, *["number"] * 5], strict=False)
    ]
    return row, verdict.model_copy(update={"claims": tuple(claims)})


def pair() -> tuple[AuditRow, Verdict]:
    return with_kinds(*picnic_pair(), "name", "name", "date")


def summary_of(folder: Path, *pairs: tuple[AuditRow, Verdict]) -> Summary:
    summary, *_ = run(shop_job(folder, 1))
    return summary.model_copy(update={"figures": count_figures(pairs)})


def test_figures_count_the_states_of_each_kind() -> None:
    figures = count_figures([pair(), picnic_pair()])
    assert list(figures.claim_kinds) == ["number", "name", "date"]
    assert figures.claim_kinds["name"] | {"contradicted": 1, "supported": 1} == figures.claim_kinds["name"]
    sums = {state: sum(one[state] for one in figures.claim_kinds.values()) for state in ClaimState}
    assert sums == figures.claim_states and sum(sums.values()) == figures.num_claims == 10
    assert figures.has_other_kinds and not count_figures([picnic_pair()]).has_other_kinds


def printed(summary: Summary) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    print_summary(summary, console)
    return console.export_text()


def test_the_terminal_has_a_column_a_kind_where_there_are_several(tmp_path: Path) -> None:
    text = printed(summary_of(tmp_path, pair()))
    head = next(line for line in text.splitlines() if "numbers" in line and "share" in line)
    assert head.split()[-3:] == ["names", "numbers", "dates"]
    assert "Numbers, names and dates in the responses: " in text
    text = printed(summary_of(tmp_path, picnic_pair()))
    assert "names" not in text and "dates" not in text


def test_the_page_has_a_table_and_a_filter_of_kinds_where_there_are_several(tmp_path: Path) -> None:
    page = render_report(summary_of(tmp_path, pair()), [pair()])
    assert "claims about" in page and 'id="filter-kind"' in page
    assert 'data-kind="name date number"' in page
    page = render_report(summary_of(tmp_path, picnic_pair()), [picnic_pair()])
    assert "claims about" not in page and 'id="filter-kind"' not in page


def test_the_data_of_the_page_names_the_kind_of_each_claim() -> None:
    data = json.loads(script_data([report_row(*pair())]))
    [entry] = data["rows"].values()
    kinds = [found["claim"]["kind"] for found in entry["claims"]]
    assert kinds == ["name", "name", "date", "number", "number"]


@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_a_browser_filters_by_kind_and_names_it(tmp_path: Path) -> None:
    pairs = [pair(), picnic_pair(row_id="p2")]
    page = tmp_path / "page.html"
    page.write_text(render_report(summary_of(tmp_path, *pairs), pairs))
    assert articles(opened_page(page, "?kind=date")) == [("row-p1", True), ("row-p2", False)]
    assert "no such date" in panel(opened_page(page, "row-p1/3"))


def labelled(kinds: tuple[str, ...], states: tuple[ClaimState, ...], mark: str) -> tuple[AuditRow, Verdict]:
    """An answer of which people marked one text, refuted by claims of these kinds and states."""
    row, verdict = picnic_pair()
    start = row.response.index(mark)
    spans = ({"start": start, "end": start + len(mark)},)
    row = AuditRow.model_validate(row.model_dump() | {"human_spans": spans})
    claims = [
        ClaimVerdict(claim=Claim(index=i, question="?", answer="x", kind=kind), state=state)
        for i, (kind, state) in enumerate(zip(kinds, states, strict=True), start=1)
    ]
    return row, verdict.model_copy(update={"claims": tuple(claims), "uncovered": ()})


WRONG, RIGHT = ClaimState.NOT_IN_DOCUMENTS, ClaimState.SUPPORTED


@pytest.mark.parametrize(
    ("kinds", "states", "mark", "plain", "any_mark"),
    [
        (("number",), (WRONG,), "500", (1, 0), (1, 0)),
        (("number", "name"), (RIGHT, WRONG), "drew", (0, 0), (1, 0)),  # no number is wrong, by either
        (("number", "name"), (RIGHT, WRONG), "500", (0, 0), (1, 0)),
        (("date", "name"), (WRONG, WRONG), "500", (1, 0), (1, 0)),
        (("number",), (WRONG,), "drew", (0, 1), (1, 0)),
    ],
)
def test_a_wrong_name_alone_says_nothing_of_numbers(
    kinds: tuple[str, ...],
    states: tuple[ClaimState, ...],
    mark: str,
    plain: tuple[int, int],
    any_mark: tuple[int, int],
) -> None:
    counts = HumanCounts()
    counts.add(*labelled(kinds, states, mark))
    targets = counts.figures()["overall"].targets
    found = {name: (one.true_positives, one.false_positives) for name, one in targets.items()}
    assert (found[Target.PLAIN], found[Target.ANY]) == (plain, any_mark)


def test_figures_of_numbers_alone_are_those_of_before() -> None:
    figures = count_figures([picnic_pair()])
    assert figures.claim_kinds == {"number": figures.claim_states}
    assert Figures.model_validate_json(figures.model_dump_json()) == figures
