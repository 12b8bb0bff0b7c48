"""Known vulnerabilities of the pins: what fails the check, and that no silence passes for a clean bill."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from requirements import advisories
from requirements.advisories import Accepted, Audit, Vulnerability, problems, read_accepted, read_pins

TODAY = date(2026, 1, 15)
FOUND = Vulnerability("torch", "2.13.0", ("PYSEC-1", "CVE-1", "GHSA-1"), ("2.13.1",))


def accepted(name: str, *, package: str = "torch", until: date = TODAY) -> dict[str, Accepted]:
    return {name: Accepted(package=package, reason="not reached", look_again=until)}


@pytest.mark.parametrize(
    ("found", "entries", "failure", "note"),
    [
        ([], {}, None, None),
        ([FOUND], {}, "torch 2.13.0: PYSEC-1 (fixed in 2.13.1): upgrade, or accept", None),
        ([FOUND], accepted("PYSEC-1"), None, None),
        ([FOUND], accepted("GHSA-1"), None, None),  # an alias
        ([FOUND], accepted("PYSEC-1", until=date(2026, 1, 14)), "was accepted until 2026-01-14", None),
        ([FOUND], accepted("PYSEC-1", package="ray"), "upgrade, or accept", "remove it"),
        ([FOUND], accepted("PYSEC-2"), "upgrade, or accept", "PYSEC-2: accepted, but not found any more"),
        ([], accepted("PYSEC-2", until=date(2020, 1, 1)), None, "remove it"),
    ],
)
def test_what_is_found_fails_unless_it_is_accepted_for_now(
    found: list[Vulnerability], entries: dict[str, Accepted], failure: str | None, note: str | None
) -> None:
    for told, expected in zip(problems(found, entries, today=TODAY), (failure, note), strict=True):
        assert len(told) == (expected is not None)
        assert expected is None or expected in told[0]


@pytest.mark.parametrize(
    "text",
    [
        "PYSEC-1: {package: torch, reason: x}",
        "PYSEC-1: {package: torch, reason: x, look_again: soon}",
        "PYSEC-1: {package: torch, reason: '', look_again: 2026-01-01}",
        "PYSEC-1: {package: torch, reason: x, look_again: 2026-01-01, until: never}",
        "- PYSEC-1",
    ],
)
def test_an_entry_without_reason_or_date_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.yaml").write_text(text)
    with pytest.raises(ValueError):
        read_accepted(tmp_path / "list.yaml")


def test_the_files_of_this_tree_can_be_read() -> None:
    folder = Path(advisories.__file__).parent
    read_accepted(folder / "advisories.yaml")
    pins = read_pins(folder)
    assert len(pins) > 300 and len(set(pins)) == len(pins) and any(pin.startswith("vllm==") for pin in pins)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cpu.txt").write_text("good==1.0\nbad==2.0\n")
    (tmp_path / "gpu.txt").write_text("good==1.0\n")
    (tmp_path / "advisories.yaml").write_text("{}\n")
    return tmp_path


def test_a_service_without_advisories_is_not_taken_for_a_clean_bill(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for answer in (Audit(), Audit(unknown=("jinja2",))):
        monkeypatch.setattr(advisories, "ask", lambda _, answer=answer: answer)
        assert advisories.main(folder) == 0
        told = capsys.readouterr().out
        assert told.startswith("advisories: not audited: the index has no") and told.count("\n") == 1


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """pip-audit's other service, played here: it knows of the canary and of `bad`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = asked["package"]["name"]
            affected = {
                "package": {"name": name, "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.0"}]}],
            }
            one = {"id": "PYSEC-9", "aliases": ["CVE-9"], "summary": "bad", "affected": [affected]}
            data = json.dumps({"vulns": [] if name == "good" else [one]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
    monkeypatch.setenv("PIP_AUDIT_OSV_URL", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()


def test_pip_audit_itself_is_asked_about_every_pin(
    folder: Path, osv: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advisories.main(folder) == 1
    told = capsys.readouterr().out
    assert "bad 2.0: PYSEC-9 (fixed in 3.0): upgrade" in told and "2 pins, 1 known" in told
    entry = "CVE-9: {package: bad, reason: not reached, look_again: 9999-01-01}\n"
    (folder / "advisories.yaml").write_text(entry)
    assert advisories.main(folder) == 0
    assert "1 known vulnerabilities, 0 to fix" in capsys.readouterr().out


def test_an_unreachable_service_is_one_line_and_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
    monkeypatch.setenv("PIP_AUDIT_OSV_URL", "http://127.0.0.1:9")
    assert advisories.main(folder) == 0
    told = capsys.readouterr().out
    assert told.startswith("advisories: not audited: ") and told.count("\n") == 1
