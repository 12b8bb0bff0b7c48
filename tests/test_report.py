"""The figures of an audit are what its files say, and the page that shows them is safe to open."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.offline.figures import count_figures
from reward.offline.plan import AuditJob
from reward.offline.report import render_report, segment
from reward.offline.rows import AuditRow, RowFormat, read_rows
from reward.offline.run import Summary, audited_rows, run_audit
from reward.types import Outcome, Verdict

RAGTRUTH = Path(__file__).parent / "data" / "ragtruth"


class Unwatched:
    """A progress that nobody looks at."""

    def start(self, total: int, done: int) -> None:
        pass

    def advance(self, verdict: Verdict) -> None:
        pass


def shop_row(price: int, said: int | None = None) -> dict[str, Any]:
    document = {"id": "d", "title": "", "text": f"It costs {price} euros."}
    response = f"It is {price if said is None else said} euros."
    return {"id": f"r{price}", "query": "How much?", "documents": [document], "response": response}


def shop_job(folder: Path, rows: list[dict[str, Any]]) -> AuditJob:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return AuditJob(input=path, output=folder / "out.jsonl")


def run(job: AuditJob) -> Summary:
    return run_audit(job, Unwatched())[0]


def test_agreement_with_people_is_what_the_files_say(tmp_path: Path) -> None:
    job = AuditJob(input=RAGTRUTH, output=tmp_path / "out.jsonl", row_format=RowFormat.RAGTRUTH)
    figures = run(job).figures
    raw = [json.loads(line) for line in (RAGTRUTH / "response.jsonl").read_text().splitlines()]
    marked = {row["id"]: any(re.search(r"\d", span["text"]) for span in row["labels"]) for row in raw}
    refuted = {row.id: row.outcome is Outcome.REFUTED for _, row in audited_rows(job)}
    hits = sum(marked[i] and refuted[i] for i in marked)
    found = figures.agreement["overall"]
    assert (found.n, found.num_unscored, found.true_positives) == (54, 0, hits)
    assert found.precision == pytest.approx(hits / sum(refuted.values()))
    assert found.recall == pytest.approx(hits / sum(marked.values()))
    assert found.f1 == pytest.approx(2 * hits / (sum(refuted.values()) + sum(marked.values())))
    assert figures.agreement.keys() == {"overall", "QA", "Summary", "Data2txt"}
    assert sum(found.n for name, found in figures.agreement.items() if name != "overall") == 54


def labelled(outcome: Outcome, marked: bool) -> tuple[AuditRow, Verdict]:
    row = next(read_rows(RAGTRUTH, RowFormat.RAGTRUTH))
    spans = ({"start": 0, "end": len(row.response)},) if marked else ()
    row = AuditRow.model_validate(row.model_dump() | {"human_spans": spans})
    reward = None if outcome is Outcome.UNSCORED else 0.0
    return row, Verdict(id=row.query.id, outcome=outcome, reward=reward, reason="timeout")


def test_unscored_rows_are_no_prediction_and_undefined_ratios_are_none() -> None:
    found = count_figures([labelled(Outcome.UNSCORED, True), labelled(Outcome.UNSCORED, False)])
    overall = found.agreement["overall"]
    assert (overall.n, overall.num_unscored) == (0, 2)
    assert (overall.precision, overall.recall, overall.f1) == (None, None, None)
    overall = count_figures([labelled(Outcome.NO_CLAIMS, True)]).agreement["overall"]
    assert (overall.precision, overall.recall, overall.f1) == (None, 0.0, 0.0)


def test_without_human_labels_there_is_no_agreement(tmp_path: Path) -> None:
    assert run(shop_job(tmp_path, [shop_row(5)])).figures.agreement == {}


def test_the_page_escapes_what_others_wrote(tmp_path: Path) -> None:
    evil = "<script>alert('5 euros')</script>"
    row = {"id": evil, "query": evil, "response": f"{evil} 7", "documents": [{"id": evil, "text": evil}]}
    job = shop_job(tmp_path, [row])
    page = render_report(run(job), audited_rows(job))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in re.sub(r"&[^;]*;", "", page)


def test_the_page_shows_the_worst_rows_and_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward.offline.report.MOST_ROWS", 4)
    job = shop_job(tmp_path, [shop_row(100 + i, said=7 if i % 4 == 3 else None) for i in range(12)])
    summary = run(job)
    page = render_report(summary, audited_rows(job))
    assert re.findall(r'<article data-outcome="(\w+)"', page) == ["REFUTED"] * 3 + ["SUPPORTED"]
    assert "4 of 12 are shown" in page
    assert page == render_report(summary, audited_rows(job))


@given(
    text=st.text(max_size=30),
    marks=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from("abc")), max_size=6),
)
def test_marked_pieces_joined_are_the_text(text: str, marks: list[tuple[int, int, str]]) -> None:
    pieces = segment(text, marks)
    assert "".join(piece.text for piece in pieces) == text
    place = 0
    for piece in pieces:
        for at in range(place, place + len(piece.text)):
            assert set(piece.marks) == {name for start, end, name in marks if start <= at < end}
        place += len(piece.text)
