"""`march status`: what is said of a job, in the terminal, as a page and as JSON."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from orchestration.cli import main
from orchestration.promotion.policy import ApprovalPolicy, GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.logged import StoredModel
from orchestration.registry.open import open_decisions
from orchestration.registry.store import Registry
from orchestration.registry.trial import Trial
from orchestration.retrain.job import load_job
from orchestration.retrain.ledger import Ledger, new_retraining
from orchestration.retrain.records import Ending, ParentWeights, RetrainingState, StageState
from orchestration.retrain.results import open_job_store
from orchestration.retrain.triggers import Cause
from orchestration.schedule import status as schedule_status
from orchestration.schedule.drift import DriftState
from orchestration.schedule.due import Trigger
from orchestration.schedule.status import (
    ModelStatus,
    Status,
    WaitingVersion,
    due_line,
    print_status,
    read_status,
    retraining_line,
    trigger_line,
)
from orchestration.schedule.status_page import status_page
from reward.types import Outcome as AuditOutcome
from tests.browser import BROWSER, MISSING, opened_page
from tests.march_cli import march
from tests.schedule_jobs import write_verdicts
from tests.statuses import HOUR, MARKUP, NOW, books, drift, looked, retraining, shop, status

JOB = """
name: shop
recipe: {name: tiny}
evaluation: {benchmarks: {tiny: worlds.json}}
registry: {model: shop-solver, uri: "sqlite:///REGISTRY"}
budget: {hours: 12}
data: {rows: rows}
triggers:
  cron: {expression: "30 2 * * mon-fri", timezone: Europe/Berlin}
  data: {}
  drift: {verdicts: ["audits/*.jsonl"], min_answers: 40}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job's file beside what it reads; its registry is not there yet."""
    (tmp_path / "worlds.json").write_text("{}")
    file = tmp_path / "shop.yaml"
    file.write_text(JOB.replace("REGISTRY", str(tmp_path / "mlflow.db")))
    return file


def in_terminal(found: Status, width: int = 120) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    print_status(found, console)
    assert isinstance(console.file, StringIO)
    return re.sub(r"[ \n]+", " ", console.file.getvalue())


def test_the_terminal_shows_what_a_person_asks_for() -> None:
    said = in_terminal(status(shop(), books()))
    assert "began 1:30:00 ago (data: changed: runs/data/shop) running: evaluate" in said
    assert "shop-solver: champion 3, previous 2, candidate 4" in said
    assert "march model approve shop-solver 4" in said
    assert "30 2 * * mon-fri next 2026-10-27 02:30 CET, in 17:56:40" in said
    assert "4.6% of 412 answers refuted, known to be 2.6% or more, 5.0% allowed; 9 unscored apart" in said
    assert "prepare done 1 1,800 train done 1 1,800 evaluate running 1 1,800" in said
    assert "1.50 of 12.0 hours, 36,000 of 5,000,000 tokens, 6.00 of 60.0" in said
    assert "now failed 2 times in a row; again at 2026-10-26" in said
    assert "(drift: drifted) failed: train: CUDA out of memory" in said
    assert "connection refused" in said and MARKUP in said


def test_what_is_due_and_what_was_given_up_are_said() -> None:
    due = Trigger(cause=Cause.CRON, what="30 2 * * *", is_due=True, detail="2026-10-26 02:30 CET")
    seen = looked(due).seen.model_copy(update={"causes": (Cause.CRON,)})
    waiting = looked(due).model_copy(update={"seen": seen})
    assert due_line(waiting).plain == "due; the next march retrain --if-due starts it"
    assert due_line(looked()).plain == "not due"
    given_up = due_line(looked(due, num_failures=3)).plain
    assert given_up.startswith("failed 3 times in a row and waits for the next trigger")


def test_what_a_person_decided_later_is_said() -> None:
    waits = retraining(
        StageState.DONE, began_h=2, cause="by hand", state=RetrainingState.WAITING_FOR_APPROVAL,
        outcome=Ending.WAITS, version="4",
    )  # fmt: skip
    decided = ModelStatus(champion="4")
    assert "waited for approval and was decided on" in retraining_line(waits, NOW, decided).plain
    assert retraining_line(waits, NOW).plain.startswith("version 4 waits")
    command = "march model approve shop-solver 4 --policy policy.yaml"
    asked = WaitingVersion(version="4", by="ann", at="", command=command)
    assert retraining_line(waits, NOW, ModelStatus(waiting=(asked,))).plain == f"version 4 waits: {command}"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"outcome": Ending.PROMOTED, "version": "4"}, "version 4 is the champion"),
        ({"outcome": Ending.WAITS, "version": "4"}, "version 4 waits: march status has the command"),
        ({"state": RetrainingState.FAILED, "reason": "train: killed"}, "failed: train: killed"),
        ({"state": RetrainingState.STOPPED_BY_BUDGET, "reason": "hours"}, "stopped by budget: hours"),
        ({}, "running: train"),
        ({"last_sign_ms": int(NOW - HOUR) * 1_000}, "no sign of life for 1:00:00; the same command goes on"),
    ],
)
def test_how_a_retraining_is_said(more: dict[str, object], said: str) -> None:
    given = {"state": RetrainingState.RUNNING, **more}
    one = retraining(StageState.DONE, StageState.RUNNING, began_h=2, cause="by hand", **given)  # type: ignore[arg-type]
    assert retraining_line(one, NOW).plain == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"detail": "few", "drift": drift(0, 0, None, state=DriftState.TOO_FEW)},
            "few; 38 new verdicts",
        ),
        ({"is_due": True, "detail": "drifted: 9%"}, "due: drifted: 9%"),
        ({"detail": "next 02:30", "next_at": NOW + 60}, "next 02:30, in 0:01:00"),
        ({"detail": "01:30 was missed", "next_at": NOW + 60}, "01:30 was missed; next in 0:01:00"),
        ({"problem": "a: no such file"}, "cannot be looked at: a: no such file"),
    ],
)
def test_how_a_trigger_is_said(more: dict[str, object], said: str) -> None:
    one = Trigger.model_validate({"cause": Cause.DRIFT, "what": "audits", **more})
    assert trigger_line(one, NOW).plain == said


def test_a_page_escapes_and_holds_all(tmp_path: Path) -> None:
    page = status_page(status(shop(), books()))
    assert MARKUP not in page and "&lt;b onclick=alert(1)&gt;" in page
    for said in (
        "march model approve shop-solver 4",
        '<span class="soft">champion</span> <b>3</b>',
        "CUDA out of memory",
        "evaluate champion",
    ):
        assert said in page


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    page = tmp_path / "status.html"
    page.write_text(status_page(status(shop(), books())))
    shown = opened_page(page, "shop")
    assert "march model approve shop-solver 4" in shown and "books.yaml" in shown


def test_a_job_is_read_with_its_triggers(job: Path, tmp_path: Path) -> None:
    write_verdicts(tmp_path / "audits/mon.jsonl", [(f"a{n}", AuditOutcome.SUPPORTED) for n in range(7)])
    found = read_status([str(job)])
    [one] = found.jobs
    assert one.model is None and not one.problems and one.look is not None
    assert [trigger.cause for trigger in one.look.triggers] == list(Cause)
    assert one.look.triggers[2].drift is not None and one.look.triggers[2].drift.num_new == 7
    assert Status.model_validate_json(found.model_dump_json()) == found
    # A relative address depends on the folder that the command is run in.
    assert f"nothing is retrained yet, as there is no {tmp_path}/mlflow.db" in in_terminal(found, width=250)


def test_verdicts_that_cannot_be_read_are_shown_beside_the_other_triggers(job: Path, tmp_path: Path) -> None:
    (tmp_path / "audits/folder.jsonl").mkdir(parents=True)
    [one] = read_status([str(job)]).jobs
    assert one.look is not None and [trigger.cause for trigger in one.look.triggers] == list(Cause)
    assert "folder.jsonl" in one.look.triggers[2].problem and one.look.triggers[2].drift is None


def test_a_registry_that_does_not_answer_is_named_beside_the_rest(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("--mlflow http://127.0.0.1:5000: connection refused; fix the address")

    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr(schedule_status, "open_decisions", refuse)
    monkeypatch.setattr(schedule_status, "Ledger", lambda *_, **__: SimpleNamespace(retrainings=lambda _: []))
    found = read_status([str(job)]).jobs[0]
    assert "connection refused" in found.problems[0] and found.model is None
    assert found.look is not None, "decisions that cannot be read hide no retrainings and no triggers"
    monkeypatch.setattr(schedule_status, "Ledger", refuse)
    found = read_status([str(job)]).jobs[0]
    assert len(found.problems) == 1 and found.look is None and found.model is None
    for form in ((), ("--json",)):
        with pytest.raises(SystemExit, match="2"):
            main(["status", str(job), *form])


@pytest.mark.slow
def test_a_real_registry_and_ledger_are_shown(job: Path, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'mlflow.db'}"
    registry = Registry(address, creates=True)
    for digest in ("a", "b"):
        uri = f"s3://weights/{digest}"
        registry.register("shop-solver", StoredModel(uri, uri, digest * 64))
    ledger = Ledger(address)
    parent = ParentWeights(uri="model", sha256=None)
    ledger.open(new_retraining(load_job(str(job)), "0" * 64, parent, cause="data: changed: rows"))
    decisions = open_decisions("shop-solver", address, open_job_store(load_job(str(job))), by="ana")
    policy = GatePolicy(approval=ApprovalPolicy(required=True))
    gate = GateResult(gate="primary", state=GateState.PASSED, reason="better")
    report = GateReport(gates=(gate,), policy_sha256="")
    trial = Trial(decisions.version("2"), report, decisions.state())
    decisions.promote(trial, policy)
    [one] = read_status([str(job)]).jobs
    assert not one.problems and one.model is not None
    assert (one.model.champion, one.model.candidate) == (None, "2")
    (waiting,) = one.model.waiting
    assert waiting.command == f"march model approve shop-solver 2 --mlflow {address}" and waiting.by == "ana"
    decisions.reject("2", reason="not now")
    [later] = read_status([str(job)]).jobs
    assert later.model is not None and not later.model.waiting
    assert one.retrainings[0].cause == "data: changed: rows"
    assert retraining_line(one.retrainings[0], one.retrainings[0].last_sign_ms / 1_000).plain.startswith(
        "running"
    )


def test_json_and_errors_of_the_command(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["status", str(job), "--json"])
    assert json.loads(capsys.readouterr().out)["jobs"][0]["name"] == "shop"
    with pytest.raises(SystemExit, match="2"):
        main(["status"])
    assert "Missing argument 'JOB...'" in capsys.readouterr().err


def test_what_looks_before_a_container_starts_lets_the_first_one_start(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of docs/doctor.md, where neither registry nor store are there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARCH_ARTIFACTS", raising=False)
    page = Path(__file__).parents[1] / "docs" / "doctor.md"
    *looks, retrains = page.read_text().splitlines()[-1].split("&&")
    assert looks and retrains.split()[:2] == ["exec", "march"]
    for look in looks:
        assert march(*look.replace("job.yaml", job.name).split()[1:]) == 0, look


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("triggers:", "triggers: {}\nunused:", "unused: unknown key"),
        ("data: {rows: rows}", "", "triggers.data: the job reads no data; name paths or pointers"),
        ("Europe/Berlin", "Mars/Base", "triggers.cron.timezone: invalid timezone: Mars/Base"),
        ("min_answers: 40", "min_answers: 4_600", "window: 5000 holds fewer than min_answers, 4600, without"),
    ],
)
def test_triggers_that_cannot_be_used_are_refused(job: Path, old: str, new: str, said: str) -> None:
    job.write_text(job.read_text().replace(old, new))
    with pytest.raises(ValueError, match=re.escape(said)):
        load_job(str(job))
