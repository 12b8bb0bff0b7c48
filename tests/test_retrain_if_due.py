"""`march retrain --if-due`: codes and reports; two at once, a kill inside and a timer, as real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY

from orchestration.cli import main
from orchestration.commands import retrain_run
from orchestration.retrain.ledger import Ledger
from orchestration.schedule.timer import note
from tests.benchmark_files import FOLDERS
from tests.march_cli import refused
from tests.schedule_jobs import SCRIPTED_MARCH, script, wait_until
from tests.supervised import environment
from tests.test_bad_surroundings import free_port
from tests.test_retrain_job import write_job


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's database, empty; making one takes seconds."""
    file = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    Ledger(f"sqlite:///{file}").retrainings("shop")
    return file


@dataclass
class Site:
    """A job with a data trigger, and everything that it keeps, in one folder."""

    folder: Path
    job: Path

    def put(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    @property
    def stages(self) -> list[str]:
        """Stages that began, by all commands."""
        file = self.folder / "stages.txt"
        return file.read_text().split() if file.exists() else []

    def start(self, *more: str) -> subprocess.Popen[str]:
        """`march retrain JOB --json` in a process of its own."""
        env = environment(SCRIPTED_FOLDER=str(self.folder), PYTHONPATH=os.getcwd())
        command = [*SCRIPTED_MARCH, "retrain", str(self.job), "--json", *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The report of a process, whose exit code it names."""
    out, said = process.communicate(timeout=300)
    assert out, said
    report: dict[str, Any] = json.loads(out)
    assert process.returncode == report["code"], said
    return report


@pytest.fixture
def site(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Rows have come, and no retraining has seen them. Stages are scripted in this process, too."""
    shutil.copy(database, tmp_path / "mlflow.db")
    job = write_job(
        tmp_path / "job",
        registry={"model": "shop-solver", "uri": f"sqlite:///{tmp_path}/mlflow.db"},
        store={"location": str(tmp_path / "store")},
        work=str(tmp_path / "work"),
        lease_s=20.0,
        triggers={
            "data": {"paths": ["../rows.jsonl"], "settle_s": 0},
            "backoff": {"attempts": 2, "first_s": 3_600},
        },
    )
    monkeypatch.setattr("orchestration.retrain.loop._POLL_S", 0.0)
    script(tmp_path, monkeypatch.setattr)
    made = Site(tmp_path, job)
    made.put("rows.jsonl", "first")
    return made


def march(site: Site, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of a `march retrain` in this process."""
    with pytest.raises(SystemExit) as caught:
        main(["retrain", str(site.job), "--json", *more])
    code = caught.value.code
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out)


def test_it_retrains_once_for_what_has_come(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (0, "promoted") and site.stages.count("train") == 1
    assert report["retraining"]["cause"] == "data: changed: ../rows.jsonl"
    assert report["look"]["seen"]["causes"] == ["data"]
    note("settled", json.dumps(report))  # the look was before the retraining
    assert REGISTRY.get_sample_value("march_retraining_due", {"retrain_job": "settled", "cause": "data"}) == 0
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"], report["line"]) == (8, "not due", "not due: data: nothing new")
    site.put("rows.jsonl", "second")  # the job's own inputs are as they were, so there is nothing to do
    assert march(site, capsys, "--if-due")[0] == 0 and site.stages.count("train") == 1
    assert march(site, capsys, "--if-due")[0] == 8


def test_a_retraining_by_hand_settles_the_triggers(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert march(site, capsys)[0] == 0
    assert march(site, capsys, "--if-due")[0] == 8


def test_a_failure_is_told_waits_and_is_given_up(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.put("FAILS", "train")
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (1, "failed") and "train: the disk is full" in report["line"]
    note("told", json.dumps(report))
    ended_so = {"retrain_job": "told", "result": "failed"}
    assert REGISTRY.get_sample_value("march_retrainings_total", ended_so) == 1
    assert REGISTRY.get_sample_value("march_retraining_failures", {"retrain_job": "told"}) == 1
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (8, "not due") and report["look"]["waits_until"] is not None
    note("told", json.dumps(report))
    assert REGISTRY.get_sample_value("march_retraining_due", {"retrain_job": "told", "cause": "data"}) == 1
    assert site.stages.count("train") == 1
    assert march(site, capsys)[0] == 1  # by hand: the second in a row
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (1, "gave up") and site.stages.count("train") == 2
    site.put("rows.jsonl", "another trigger")
    (site.folder / "FAILS").unlink()
    assert march(site, capsys, "--if-due")[0] == 0


def test_a_refusal_has_a_code_of_its_own_which_exit_zero_hides(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.put("REFUSED")
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (3, "refused")
    code, report = march(site, capsys, "--if-due", "--exit-zero")
    assert (code, report["code"], report["ending"]) == (0, 8, "not due")
    site.put("rows.jsonl", "second")
    code, report = march(site, capsys, "--if-due", "--exit-zero")
    assert (code, report["code"], report["ending"]) == (0, 3, "refused")


def test_exit_zero_hides_no_failure(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.put("FAILS", "train")
    assert march(site, capsys, "--if-due", "--exit-zero")[0] == 1


def test_what_a_user_must_fix_is_a_report_too(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.job.write_text(site.job.read_text().partition("triggers:")[0])
    code, report = march(site, capsys, "--if-due")
    assert (code, report["ending"]) == (2, "something to fix")
    assert "triggers: there is none; add cron, data or drift" in report["line"]


def test_submit_runs_a_command_when_it_is_due_and_nothing_here(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    submit = ("--if-due", "--submit", f"touch {site.folder}/submitted")
    code, report = march(site, capsys, *submit)
    assert (code, report["ending"]) == (0, "submitted") and not site.stages
    assert (site.folder / "submitted").exists()
    assert march(site, capsys, "--if-due", "--submit", "false")[0] == 1
    assert march(site, capsys)[0] == 0  # what was submitted
    (site.folder / "submitted").unlink()
    assert march(site, capsys, *submit)[0] == 8 and not (site.folder / "submitted").exists()


def test_what_a_stage_would_refuse_is_not_submitted(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    unjudged = f"evaluation.benchmarks={{ragtruth: {FOLDERS['ragtruth']}}}"
    submit = ("--if-due", "--submit", f"touch {site.folder}/submitted", "--set", unjudged)
    code, report = march(site, capsys, *submit)
    assert code == 2 and "evaluation.judge: missing" in report["line"]
    assert not (site.folder / "submitted").exists()


def test_submit_needs_if_due(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["retrain", str(site.job), "--submit", "true"])
    assert "--submit: needs --if-due" in capsys.readouterr().err


def test_a_stage_is_made_again_on_request(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert march(site, capsys)[0] == 0
    assert march(site, capsys, "--redo", "evaluate")[0] == 0
    assert (site.stages.count("evaluate"), site.stages.count("train")) == (2, 1)
    code, report = march(site, capsys, "--redo", "promote")
    assert code == 2 and "'promote' is none of prepare, train, evaluate" in report["line"]


def test_of_two_at_once_exactly_one_runs(site: Site) -> None:
    site.put("HOLD")
    both = [site.start("--if-due"), site.start("--if-due")]
    wait_until(lambda: site.stages, "no stage began", 300)
    wait_until(lambda: [one.poll() for one in both].count(None) == 1, "both run", 300)
    loser, winner = sorted(both, key=lambda one: one.poll() is None)
    report = ended(loser)
    assert (report["code"], report["ending"]) == (7, "already running")
    submitted = ended(site.start("--if-due", "--submit", f"touch {site.folder}/submitted"))
    assert submitted["code"] == 7 and not (site.folder / "submitted").exists()
    (site.folder / "HOLD").unlink()
    assert ended(winner)["ending"] == "promoted"
    assert ended(site.start("--if-due"))["ending"] == "not due"
    assert site.stages.count("train") == 1


def test_another_machine_that_is_first_leaves_nothing_to_do(site: Site) -> None:
    """The other one has its own folder, so only the lease and the records are shared."""
    other = Site(site.folder, site.folder / "job" / "other.yaml")
    other.job.write_text(site.job.read_text().replace(f"{site.folder}/work", f"{site.folder}/elsewhere"))
    site.put("HOLD")
    first = site.start("--if-due")
    wait_until(lambda: site.stages, "no stage began", 300)
    assert ended(other.start("--if-due"))["ending"] == "already running"
    (site.folder / "HOLD").unlink()
    assert ended(first)["ending"] == "promoted"
    assert ended(other.start("--if-due"))["ending"] == "not due"
    assert site.stages.count("train") == 1


def test_what_another_machine_did_between_two_looks_is_seen(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one has looked, and found that it is due; the other one retrains before this one has the lease."""
    other = Site(site.folder, site.folder / "job" / "other.yaml")
    other.job.write_text(site.job.read_text().replace(f"{site.folder}/work", f"{site.folder}/elsewhere"))
    codes = list[int]()

    def meanwhile(_seconds: float) -> None:
        monkeypatch.setattr(retrain_run, "time", time)
        codes.append(march(other, capsys, "--if-due")[0])

    monkeypatch.setattr(retrain_run, "time", SimpleNamespace(time=time.time, sleep=meanwhile))
    codes.append(march(site, capsys, "--if-due")[0])
    assert codes == [0, 8] and site.stages.count("promote") == 1


def test_what_was_killed_is_gone_on_with_by_the_next_command(site: Site) -> None:
    site.put("HOLD")
    process = site.start("--if-due")
    wait_until(lambda: site.stages, "no stage began", 300)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    (site.folder / "HOLD").unlink()
    report = ended(site.start("--if-due"))
    assert report["ending"] == "promoted" and report["look"]["seen"]["attempt"] == 2
    assert ended(site.start("--if-due"))["ending"] == "not due"


@contextmanager
def timer(site: Site, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """`march schedule`, whose commands are scripted; killed in the end."""
    env = environment(SCRIPTED_FOLDER=str(site.folder), PYTHONPATH=os.getcwd())
    command = [*SCRIPTED_MARCH, "schedule", str(site.job), "--every", "1", "--port", str(port)]
    with (site.folder / "schedule.log").open("w") as log:
        process = subprocess.Popen(command, env=env, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def test_a_timer_goes_on_at_once_with_what_was_killed_here(site: Site) -> None:
    """Its look cannot know whose the lease is that the killed command has left."""
    site.job.write_text(site.job.read_text().replace("lease_s: 20.0", "lease_s: 3600.0"))
    site.put("HOLD")
    process = site.start("--if-due")
    wait_until(lambda: site.stages, "no stage began", 300)
    process.kill()
    process.communicate(timeout=60)
    (site.folder / "HOLD").unlink()
    with timer(site, free_port()):
        wait_until(lambda: "promote" in site.stages, "it waits for the lease", 120)


def test_the_timer_refuses_a_job_that_it_cannot_start_and_a_port_in_use(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    idle = write_job(site.folder / "idle")
    assert "nope.yaml': no such file" in refused(capsys, "schedule", site.job, "nope.yaml")
    assert f"{idle}: triggers: there is none; add" in refused(capsys, "schedule", site.job, idle)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"--port: cannot listen on 127.0.0.1:{port} (Address already in use); stop what uses it"
        assert said in refused(capsys, "schedule", site.job, "--port", port)


def test_the_timer_runs_the_command_shows_its_figures_and_stops_it_in_order(site: Site) -> None:
    port = free_port()

    def figures() -> str:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text

    site.put("HOLD")
    with timer(site, port) as process:
        none_yet = [
            f'march_retrainings_total{{result="{result}",retrain_job="shop"}} 0.0'
            for result in ("ended", "failed")
        ]
        wait_until(lambda: bool(site.stages), "it never begins", 300)
        assert all(one in figures() for one in none_yet), figures()
        due = 'march_retraining_due{cause="data",retrain_job="shop"} 1.0'
        wait_until(lambda: due in figures(), "what it runs for is not shown", 300)
        assert 'march_retraining_running{retrain_job="shop"} 1.0' in figures()
        (site.folder / "HOLD").unlink()
        wait_until(lambda: site.stages.count("promote"), "it never retrains", 300)
        counted = 'march_retrainings_total{result="ended",retrain_job="shop"} 1.0'
        wait_until(lambda: counted in figures(), "it is never counted", 300)
        settled = 'march_retraining_due{cause="data",retrain_job="shop"} 0.0'
        wait_until(lambda: settled in figures(), "it stays due", 300)
        assert 'march_retraining_failures{retrain_job="shop"} 0.0' in figures()
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
        site.put("HOLD")
        (site.folder / "job/worlds.json").write_text('{"num_worlds": 8, "seed": 2}')
        site.put("rows.jsonl", "second")
        num = len(site.stages)
        wait_until(lambda: len(site.stages) > num, "no stage began", 300)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    log = (site.folder / "schedule.log").read_text().splitlines()
    assert log[0].endswith(f" looks at shop every 1 s; 127.0.0.1:{port}/metrics")
    assert sum(line.startswith("shop: ") and "; starts from " in line for line in log) == 2
    said = [line for line in log if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d shop: ", line)]
    assert any("is the champion" in line for line in said), log
    assert len(said) < 6, "looks that find nothing new are silent"
    left = Ledger(f"sqlite:///{site.folder}/mlflow.db").retrainings("shop")[0]
    assert (left.state, left.reason) == ("stopped", "interrupted")
