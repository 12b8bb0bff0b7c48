"""What changed between two audits is paired by row, and the difference has an interval by source."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from reward.offline.compare import Earlier, EarlierRow, compare, read_earlier
from reward.offline.resume import AuditedRow
from reward.offline.rows import AuditRow
from reward.offline.terminal import print_comparison
from reward.types import Outcome, Verdict
from tests.audit_jobs import pairs, run, shop_file, shop_job, shop_row, shop_rows

S, R, N, U = Outcome.SUPPORTED, Outcome.REFUTED, Outcome.NO_CLAIMS, Outcome.UNSCORED


def audited(outcomes: Sequence[Outcome], response: str = "5") -> list[tuple[AuditRow, AuditedRow]]:
    found = []
    for i, outcome in enumerate(outcomes):
        query = {"id": f"r{i}", "query": f"q{i}", "documents": [{"id": "d", "text": "t"}]}
        row = AuditRow.model_validate({"place": f"f:{i}", "query": query, "response": response})
        reward = {U: None, S: 0.0}.get(outcome, -1.0)
        verdict = Verdict(id=f"r{i}", outcome=outcome, reward=reward)
        line = AuditedRow.model_validate_json(AuditedRow.line(verdict, row.digest, "", row.query_digest))
        found.append((row, line))
    return found


def earlier(outcomes: Sequence[Outcome]) -> Earlier:
    return Earlier("before.jsonl", {line.id: EarlierRow.of(line) for _, line in audited(outcomes)})


def test_rows_are_paired_and_those_that_turned_are_named() -> None:
    found = compare(earlier([S, S, R, N, U, R]), audited([S, R, S, N, S, U]))
    assert [(turn.id, turn.before, turn.after) for turn in found.turned] == [
        ("r1", S, R),
        ("r2", R, S),
        ("r4", U, S),
        ("r5", R, U),
    ]
    assert (found.before[S], found.after[S], found.num_pairs) == (2, 3, 6)
    paired = found.refuted
    assert paired is not None
    assert (paired.n, paired.num_newly_refuted, paired.num_no_longer_refuted) == (4, 1, 1)
    assert (paired.before, paired.after, paired.difference) == (0.25, 0.25, 0.0)


def test_a_difference_has_an_interval() -> None:
    found = compare(earlier([S] * 40), audited([R] * 12 + [S] * 28)).refuted
    assert found is not None and found.interval is not None
    assert found.difference == 0.3
    assert 0.1 < found.interval.low < 0.3 < found.interval.high < 0.5


def test_another_answer_to_the_same_query_and_documents_is_compared() -> None:
    found = compare(earlier([S, S, R, R]), audited([R, S, S, R], response="It is 6."))
    assert (found.num_pairs, found.num_other_answers, found.num_changed) == (4, 4, 0)
    assert [(turn.id, turn.before, turn.after) for turn in found.turned] == [("r0", S, R), ("r2", R, S)]
    assert (found.refuted.n, found.refuted.difference) == (4, 0.0)


def test_rows_with_another_query_or_other_documents_are_not_compared() -> None:
    then = earlier([S, S, R])
    other = EarlierRow(R, "other", "other", "")
    rows = dict(then.rows) | {"r0": other, "gone": other}
    found = compare(Earlier("b", rows), audited([S, S, R, S]))
    assert (found.num_pairs, found.num_changed, found.num_new, found.num_gone) == (2, 1, 1, 1)
    assert found.turned == ()
    assert found.refuted is not None and found.refuted.n == 2


def test_a_verdict_of_an_earlier_version_is_compared_where_the_answer_is_the_same() -> None:
    rows = {name: row._replace(query_sha256="") for name, row in earlier([S, S]).rows.items()}
    assert compare(Earlier("b", rows), audited([S, R])).num_pairs == 2
    assert compare(Earlier("b", rows), audited([S, R], response="6")).num_changed == 2


def test_audits_with_other_settings_are_said_to_be() -> None:
    rows = {name: row._replace(settings_sha256="others") for name, row in earlier([S, S]).rows.items()}
    printed = []
    for then in (earlier([S, S]), Earlier("b", rows)):
        console = Console(record=True, width=80, quiet=False)
        print_comparison(compare(then, audited([S, R])), console)
        printed.append("were made with other settings" in " ".join(console.export_text().split()))
    assert printed == [False, True]


def test_nothing_in_common_is_said_and_not_divided() -> None:
    found = compare(earlier([]), audited([U]))
    assert found.refuted is not None
    assert (found.refuted.n, found.refuted.difference, found.refuted.interval) == (0, None, None)
    console = Console(record=True, width=80, quiet=False)
    print_comparison(found, console)
    assert "was scored in both audits" in " ".join(console.export_text().split())


def test_an_output_is_read_by_its_own_or_its_summarys_name(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    run(job)
    earlier = read_earlier(job.output)
    assert read_earlier(job.summary_path) == earlier
    found = compare(earlier, pairs(job))
    assert found.before == found.after and found.before["REFUTED"] == 3
    (tmp_path / "alone.summary.json").write_bytes(job.summary_path.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"alone\.jsonl: no such file"):
        read_earlier(tmp_path / "alone.summary.json")


def test_another_run_of_changed_answers_is_compared(tmp_path: Path) -> None:
    before = shop_job(tmp_path, output=tmp_path / "before.jsonl")
    run(before)
    fixed = [shop_row(103) if row["id"] == "r103" else row for row in shop_rows(12)]
    after = shop_job(tmp_path, input=shop_file(tmp_path, fixed))
    run(after)
    found = compare(read_earlier(before.output), pairs(after))
    assert (found.num_pairs, found.num_other_answers, found.num_changed) == (12, 1, 0)
    assert [(turn.id, turn.before, turn.after) for turn in found.turned] == [("r103", R, S)]
    assert (found.before["REFUTED"], found.after["REFUTED"]) == (3, 2)


def test_what_is_no_audit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match=r"a\.jsonl:1: is not a verdict of this version"):
        read_earlier(tmp_path / "a.jsonl")
    with pytest.raises(FileNotFoundError, match="no such file; fix the path"):
        read_earlier(tmp_path / "none.jsonl")
