"""One answer's whole path in the terminal: from an output if it holds the row as it is, else audited now."""

import re
from pathlib import Path

import pytest
from rich.console import Console

from reward.offline.explain import explanation, find_row, find_verdict
from reward.offline.resume import AuditedRow
from reward.offline.rows import AuditRow
from reward.offline.run import audit_row
from reward.types import DocumentSpan, Provenance, Verdict
from tests.audit_jobs import pairs, picnic_pair, run, shop_file, shop_job, shop_row


def shown(row: AuditRow, verdict: Verdict, width: int = 100) -> str:
    console = Console(record=True, width=width)
    console.print(explanation(row, verdict))
    return console.export_text()


def picnic_shown(width: int = 100, **changes: object) -> str:
    row, verdict = picnic_pair()
    return shown(row, verdict.model_copy(update=changes), width)


def test_each_step_of_the_path_is_shown() -> None:
    made = Provenance(auditor="model", version="1", config_digest="c" * 64, model="m", seed=3)
    unread = (DocumentSpan(document="may", start=10, end=20),)
    text = picnic_shown(provenance=made, unread=unread)
    for part in (
        "REFUTED p1",
        "How was the July picnic?",
        "claim 1 of 5: 500: contradicted",
        "466 (2), 600 (1); entropy 0.64 nats",
        "july, Summer, characters 28 to 44",
        "In July the picnic in Kabul raised 466 euros",
        "is in no document verbatim",
        "claim 3 of 5: 17: not in documents",
        "could not be read",
        "uncovered",
        "may, characters 10 to 20",
        "lines of the Proposer that could not be used: 1",
        "judgement",
        "reward -1",
        "model auditor, m, version 1, settings cccccccccccc, seed 3",
    ):
        assert part in text, part


def test_a_verdict_of_an_earlier_version_with_a_question_from_a_template_is_read() -> None:
    row, verdict = picnic_pair()
    written = verdict.model_dump(mode="json")
    written["claims"][0]["claim"]["source"] = "template"
    assert "asked by template" in shown(row, AuditedRow.model_validate(written))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_it_fits_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in picnic_shown(width).splitlines())


def test_evidence_is_shown_with_what_stands_around_it() -> None:
    row, verdict = picnic_pair()
    documents = [one.model_dump() for one in row.query.documents]
    documents[0]["text"] += " tail" * 200
    query = row.query.model_validate(row.query.model_dump() | {"documents": documents})
    text = " ".join(shown(row.model_copy(update={"query": query}), verdict).split())
    assert "In July the picnic in Kabul raised 466 euros" in text
    assert re.search(r"tail ?(t|ta|tai|tail)?\u2026", text)


def test_no_terminal_obeys_an_answer() -> None:
    row, verdict = picnic_pair()
    text = shown(row.model_copy(update={"response": f"\x1b[31m{row.response}\x1b]0;x\x07"}), verdict)
    assert "\x1b" not in text and "\ufffd[31m" in text


def test_an_unscored_row_has_no_reward(tmp_path: Path) -> None:
    row, _ = picnic_pair()
    verdict = Verdict(id="p1", outcome="UNSCORED", reward=None, reason="timeout", detail="too slow")
    assert "UNSCORED, no reward, timeout: too slow" in shown(row, verdict)


def test_a_row_is_found_by_its_id(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    assert find_row(job, "r105").query.id == "r105"
    with pytest.raises(ValueError, match=r"in\.jsonl: no row has the id 'r10'; did you mean 'r1\d\d'"):
        find_row(job, "r10")
    with pytest.raises(ValueError, match="no row has the id 'x'; give the id of a row"):
        find_row(job, "x")


def test_a_row_beyond_the_limit_is_found(tmp_path: Path) -> None:
    assert find_row(shop_job(tmp_path, limit=1), "r105").query.id == "r105"


def test_a_verdict_is_the_outputs_only_while_the_row_is_the_same(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    row = find_row(job, "r103")
    assert find_verdict(job.output, row) is None
    run(job)
    assert find_verdict(job.output, row) == {line.id: line for _, line in pairs(job)}["r103"]
    changed = shop_job(tmp_path, input=shop_file(tmp_path, [shop_row(103)]))
    assert find_verdict(job.output, find_row(changed, "r103")) is None


def test_a_row_is_audited_alone_and_nothing_is_written(tmp_path: Path) -> None:
    job = shop_job(tmp_path)
    found = audit_row(job, find_row(job, "r103"))
    assert not job.output.exists()
    run(job)
    expected = next(line for _, line in pairs(job) if line.id == "r103")
    assert found == Verdict.model_validate({name: getattr(expected, name) for name in Verdict.model_fields})
    assert isinstance(expected, AuditedRow)
