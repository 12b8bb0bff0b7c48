"""`march doctor`: how checks are run, the report, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from rich.console import Console

from orchestration.doctor.checks import findings_of
from orchestration.doctor.report import (
    Finding,
    Report,
    Section,
    State,
    failed,
    ok,
    print_report,
    skipped,
    warning,
)
from tests.doctor_facts import only, states
from tests.march_cli import march, refused

# Running checks


def test_a_check_that_crashes_is_one_failed_line() -> None:
    def crash() -> Iterable[Finding]:
        raise RuntimeError("two\nlines")

    def bad_value() -> Iterable[Finding]:
        yield ok("half", "done")
        raise ValueError("field: 'x' is no y; fix it")

    crashed, bad = only(findings_of("crash", crash)), only(findings_of("value", bad_value))
    assert [one.state for one in (crashed, bad)] == [State.FAILED, State.FAILED]
    assert crashed.found == "RuntimeError: two lines" and "MARCH_DEBUG" in crashed.fix
    assert bad.found == "field: 'x' is no y; fix it"
    with pytest.raises(RuntimeError):
        findings_of("crash", crash, debug=True)


# The report


def report(*findings: Finding) -> Report:
    section = Section(title="this machine", findings=findings)
    return Report(version="0.1.0", host="h", at=datetime(2026, 1, 1, tzinfo=UTC), sections=(section,))


@pytest.mark.parametrize("width", [80, 140])
def test_a_report_says_everything_at_any_width(width: int) -> None:
    given = report(
        ok("GPU", "8 x H100"),
        warning("memory", "tight \x1b[31m " + "and long " * 20, "buy [more] memory"),
        failed("disk", "full", "remove something"),
        skipped("Ray", "not asked"),
    )
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(given, console)
    text = console.export_text()
    for words in ("8 x H100", "remove something", "buy [more] memory", "skipped", "1 failed", "1 warning"):
        assert words in text
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= width
    assert given.exit_code == 1 and report(warning("a", "b", "c")).exit_code == 0


# The command


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MARCH_ARTIFACTS", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "MARCH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("quiet")
def test_the_command_prints_json_and_its_exit_code_says_whether_something_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert march("doctor", "--json", "--only", "packages", "--only", "s3") == 0
    told = Report.model_validate_json(capsys.readouterr().out)
    assert states(one for section in told.sections for one in section.findings) == [
        ("packages", State.OK),
        ("S3 bucket", State.SKIPPED),
    ]
    assert march("doctor", "--json", "--only", "recipe") == 0
    assert "needs --recipe" in capsys.readouterr().out
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("MARCH_ARTIFACTS", "s3://bucket")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert march("doctor", "--json", "--only", "s3") == 1
    out = capsys.readouterr().out
    assert "Could not connect" in out and "secret" not in out
    assert json.loads(out)["sections"][0]["findings"][0]["state"] == "failed"


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--only", "gpus"],
            "--only: 'gpus' is no check; there are packages, gpu, machine, disk, s3, recipe",
        ),
        (["--recipe", "no-such-recipe"], "no-such-recipe"),
        (["--recipe", "tiny", "--set", "ppo.nothing=1"], "ppo.nothing"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, "doctor", *arguments)
