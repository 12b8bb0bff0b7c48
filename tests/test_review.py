"""Claims go out to people as a harmless spreadsheet and come back as agreement and kappa."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reward.offline.resume import AuditedRow
from reward.offline.review import COLUMNS, HumanAnswer, cohens_kappa, refuse_filled, review_csv, score_review
from reward.offline.rows import AuditRow
from reward.offline.run import audited_rows
from reward.offline.terminal import print_review
from reward.types import ClaimState
from tests.audit_jobs import picnic_pair, run, shop_job


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def written(*pairs: tuple[AuditRow, AuditedRow]) -> list[dict[str, str]]:
    return records("".join(review_csv(pairs)))


def fill(path: Path, rows: list[dict[str, str]], humans: Mapping[int, str], **layout: str) -> Path:
    """Writes rows with answers by place; `layout` is what a spreadsheet may change."""
    for place, human in humans.items():
        rows[place]["human"] = human
    with path.open("w", encoding=layout.get("encoding", "utf-8"), newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=layout.get("delimiter", ","))
        writer.writeheader()
        writer.writerows(rows)
    return path


def audit_of(folder: Path, *pairs: tuple[AuditRow, AuditedRow]) -> Path:
    path = folder / "out.jsonl"
    path.write_text("".join(line.model_dump_json() + "\n" for _, line in pairs))
    return path


def test_each_claim_is_a_line_with_an_empty_answer() -> None:
    rows = written(picnic_pair())
    assert list(rows[0]) == list(COLUMNS)
    assert [(row["row"], row["claim"], row["number"], row["state"]) for row in rows] == [
        ("p1", "1", "500", "contradicted"),
        ("p1", "2", "50", "supported"),
        ("p1", "3", "17", "not_in_documents"),
        ("p1", "4", "3", "no_consensus"),
        ("p1", "5", "9", "failed"),
    ]
    assert all(row["human"] == "" for row in rows)
    assert (rows[0]["consensus"], rows[0]["evidence"], rows[0]["document"]) == (
        "466",
        "raised 466 euros",
        "july",
    )
    assert "500 euros" in rows[0]["sentence"]


def test_a_spreadsheet_opens_it_as_utf_8() -> None:
    assert next(iter(review_csv([]))).startswith("\ufeffkey,row,")


@given(
    st.text(max_size=12) | st.text("=-1a \t\r\n\"';,", max_size=12),
    st.sampled_from(["", " ", "=", "+", "-", "@", "\t", "\r", "\uff1d", "50;=", '50;"=', "50\t=", "50;\n -"]),
)
def test_no_cell_is_a_formula_whatever_separates_the_cells(text: str, sign: str) -> None:
    row, line = picnic_pair()
    claim = line.claims[0]
    asked = claim.claim.model_copy(update={"question": sign + text, "answer": f"{sign}5"})
    claims = (claim.model_copy(update={"claim": asked, "consensus": f"{sign}{text}"}),)
    renamed = line.model_copy(update={"id": f"{sign}id", "claims": claims})
    for cells in written((row, renamed)):
        for cell in cells.values():
            assert not cell.lstrip(" ").startswith(tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
    file = "".join(review_csv([(row, renamed)]))
    for delimiter in ";\t":
        for record in csv.reader(io.StringIO(file, newline=""), delimiter=delimiter):
            assert not any(cell.lstrip().startswith(tuple("=+-@\uff1d\uff0b\uff0d\uff20")) for cell in record)


def test_a_sign_within_a_sentence_stays_as_it_is() -> None:
    row, line = picnic_pair()
    claim = line.claims[0]
    asked = claim.claim.model_copy(update={"question": "What is 50 - 40; or 5 +\t5?"})
    claims = (claim.model_copy(update={"claim": asked}),)
    (cells,) = written((row, line.model_copy(update={"claims": claims})))
    assert cells["question"] == asked.question


@pytest.mark.parametrize(
    "layout", [{}, {"delimiter": ";"}, {"delimiter": "\t"}, {"encoding": "utf-8-sig"}], ids=str
)
def test_a_filled_file_is_scored(layout: dict[str, str], tmp_path: Path) -> None:
    pairs = [picnic_pair(row_id=f"p{i}") for i in range(4)]
    humans = {5 * i + k: answer for i in range(4) for k, answer in enumerate(("unsupported", "supported"))}
    humans |= {2: "Supported ", 7: "unclear", 4: "supported"}
    for place, row in enumerate(rows := written(*pairs)):
        row["row"] = str(place)  # as a spreadsheet rewrites what looks like a number
    path = fill(tmp_path / "review.csv", rows, humans, **layout)
    found = score_review(path, audit_of(tmp_path, *pairs))
    assert (found.num_claims, found.num_reviewed, found.num_unclear, found.num_failed, found.n) == (
        20,
        11,
        1,
        1,
        9,
    )
    assert found.agreement == pytest.approx(8 / 9)
    assert found.kappa == pytest.approx(cohens_kappa(4, 0, 1, 4))
    assert found.agreement_interval is not None and found.agreement_interval.high == 1
    assert found.confusion[ClaimState.NOT_IN_DOCUMENTS][HumanAnswer.UNCLEAR] == 1
    [other] = found.differences
    assert (other.id, other.claim.claim.index, other.human) == ("p0", 3, HumanAnswer.SUPPORTED)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((20, 5, 10, 15), 0.4),  # the worked example of Cohen's kappa on Wikipedia
        ((10, 0, 0, 10), 1.0),
        ((5, 5, 5, 5), 0.0),
        ((0, 10, 10, 0), -1.0),
        ((10, 0, 0, 0), None),
        ((0, 0, 0, 0), None),
    ],
)
def test_kappa(cells: tuple[int, int, int, int], expected: float | None) -> None:
    assert cohens_kappa(*cells) == (None if expected is None else pytest.approx(expected))


@given(st.tuples(*[st.integers(0, 50)] * 4))
def test_kappa_is_bounded_and_symmetric(cells: tuple[int, int, int, int]) -> None:
    both, audit, human, neither = cells
    found = cohens_kappa(*cells)
    assert found is None or -1 - 1e-9 <= found <= 1 + 1e-9
    assert cohens_kappa(both, human, audit, neither) == pytest.approx(found)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"human": "maybe"},
            "review.csv:2: human: 'maybe' is no answer; write supported, unsupported or unclear",
        ),
        ({"key": "claim-0"}, "review.csv:2: key: 'claim-0' is no claim of "),
        ({"human": ""}, "review.csv: human: no line is filled in; write supported, unsupported or unclear"),
    ],
)
def test_a_wrong_answer_is_one_clear_line(change: dict[str, str], says: str, tmp_path: Path) -> None:
    rows = written(picnic_pair())
    rows[0] |= {"human": "supported"} | change
    path = fill(tmp_path / "review.csv", rows, {})
    with pytest.raises(ValueError, match=r".") as caught:
        score_review(path, audit_of(tmp_path, picnic_pair()))
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_claim_that_is_answered_twice_and_lost_columns(tmp_path: Path) -> None:
    rows = written(picnic_pair())
    path = fill(tmp_path / "review.csv", [rows[0], dict(rows[0])], {0: "supported", 1: "unclear"})
    with pytest.raises(ValueError, match=r"review\.csv:3: key: .* is at .*review\.csv:2 already; remove one"):
        score_review(path, audit_of(tmp_path, picnic_pair()))
    path.write_text("key,note\n")
    with pytest.raises(ValueError, match=r"review\.csv:1: human: no such column; keep the columns"):
        score_review(path, audit_of(tmp_path, picnic_pair()))


def test_another_audits_claims_are_refused(tmp_path: Path) -> None:
    path = fill(tmp_path / "review.csv", written(picnic_pair(row_id="other")), {0: "supported"})
    with pytest.raises(ValueError, match=r"is no claim of .*give the audit it was made from"):
        score_review(path, audit_of(tmp_path, picnic_pair()))


def test_nobodys_answers_are_written_over(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    refuse_filled(path)
    fill(path, rows := written(picnic_pair()), {})
    refuse_filled(path)
    fill(path, rows, {0: "unclear"})
    with pytest.raises(ValueError, match=r"holds 1 reviewed claims; score it with `march review`"):
        refuse_filled(path)
    fill(path, written(picnic_pair()), {})
    path.write_text(path.read_text().rstrip() + "I am not sure.\n")  # the last column is the comment
    with pytest.raises(ValueError, match="holds 1 reviewed claims"):
        refuse_filled(path)


def test_what_an_audit_wrote_comes_back(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    run(job)
    rows = records("".join(review_csv(audited_rows(job))))
    humans = {
        place: "supported" if row["state"] == "supported" else "unsupported" for place, row in enumerate(rows)
    }
    found = score_review(fill(tmp_path / "review.csv", rows, humans), job.output)
    assert (found.n, found.agreement, found.kappa, found.differences) == (12, 1.0, 1.0, ())


def test_the_terminal_shows_where_they_differ(tmp_path: Path) -> None:
    path = fill(tmp_path / "review.csv", written(picnic_pair()), {0: "supported", 1: "supported"})
    console = Console(record=True, width=80)
    print_review(score_review(path, audit_of(tmp_path, picnic_pair())), console)
    printed = console.export_text()
    assert "2 of 5 claims reviewed" in printed
    assert "p1, claim 1: audit contradicted, person supported" in printed
