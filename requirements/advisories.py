"""Are there known vulnerabilities in what the pins install? A part of `make check`.

    python requirements/advisories.py

pip-audit asks PyPI's advisory data about every pin of `cpu.txt` and `gpu.txt`. What it finds fails the
check unless it stands in `advisories.yaml` with a reason and a date to look again. Where the advisory data
cannot be had (offline, or behind a mirror of PyPI that has none), nothing fails, and one line says "not
audited". A service that knows nothing looks like one that finds nothing, so it is first asked about a version
that is known to be vulnerable. pip-audit's own settings hold, such as PIP_AUDIT_VULNERABILITY_SERVICE=osv.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

_HERE = Path(__file__).parent
_PINS = ("cpu.txt", "gpu.txt")
_CANARY = "jinja2==2.10"  # CVE-2019-10906, among others
_NUM_AT_ONCE = 8
_TIMEOUT_S = 10  # for one answer
_MOST_CHARS = 200  # of an error


class Accepted(BaseModel):
    """An entry of `advisories.yaml`, under the vulnerability's id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    reason: str = Field(min_length=1)
    look_again: date


@dataclass(frozen=True)
class Vulnerability:
    """What is known about one pin."""

    package: str
    version: str
    ids: tuple[str, ...]  # its own and its aliases
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed yet"
        return f"{self.package} {self.version}: {self.ids[0]} ({fixed})"


@dataclass(frozen=True)
class Audit:
    """What pip-audit said."""

    found: tuple[Vulnerability, ...] = ()
    unknown: tuple[str, ...] = ()  # packages that the service does not know


class ServiceUnreachable(RuntimeError):
    """The advisory data cannot be had; one line."""


def problems(
    found: Iterable[Vulnerability], accepted: Mapping[str, Accepted], *, today: date
) -> tuple[list[str], list[str]]:
    """What fails the check, and what is only worth saying.

    Args:
        found: What the pins have.
        accepted: `advisories.yaml`, by id.
        today: After an entry's `look_again` it accepts nothing.
    """
    failures, used = [], set()
    for one in found:
        names = [name for name in one.ids if name in accepted and accepted[name].package == one.package]
        used.update(names)
        if not names:
            failures.append(f"{one}: upgrade, or accept it in advisories.yaml with a reason and a date")
        elif (until := max(accepted[name].look_again for name in names)) < today:
            failures.append(f"{one}: was accepted until {until}: upgrade, or look again and set a new date")
    notes = [f"{name}: accepted, but not found any more; remove it" for name in accepted if name not in used]
    return failures, notes


def read_accepted(path: Path) -> dict[str, Accepted]:
    """The list of accepted vulnerabilities; raises `ValueError` for one that is not as it must be."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Accepted]).validate_python(tree or {})


def ask(pins: Sequence[str]) -> Audit:
    """Asks the advisory service about pins, `name==version` each.

    Raises:
        ServiceUnreachable: it does not answer.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(pins) + "\n")
        file.flush()
        command = ["--requirement", file.name, "--no-deps", "--disable-pip", "--format", "json"]
        settings = ["--progress-spinner", "off", "--timeout", str(_TIMEOUT_S)]
        done = subprocess.run(
            [sys.executable, "-m", "pip_audit", *command, *settings], capture_output=True, text=True
        )
    if not done.stdout.strip():
        raise ServiceUnreachable((done.stderr.strip().splitlines() or ["no word"])[-1][:_MOST_CHARS])
    return read_answer(done.stdout)


def read_answer(text: str) -> Audit:
    """pip-audit's JSON."""
    found, unknown = [], []
    for package in json.loads(text)["dependencies"]:
        if "skip_reason" in package:
            unknown.append(package["name"])
        for one in package.get("vulns", ()):
            ids = (one["id"], *one["aliases"])
            fixed_in = tuple(one["fix_versions"])
            found.append(Vulnerability(package["name"], package["version"], ids, fixed_in))
    return Audit(tuple(found), tuple(unknown))


def ask_all(pins: Sequence[str]) -> Audit:
    """Asks about all pins, some at once; raises `ServiceUnreachable` when the service knows no advisories."""
    if not ask([_CANARY]).found:
        raise ServiceUnreachable(f"the index has no advisory data (it knows of none for {_CANARY})")
    parts = [part for part in (pins[i::_NUM_AT_ONCE] for i in range(_NUM_AT_ONCE)) if part]
    with ThreadPoolExecutor(_NUM_AT_ONCE) as pool:
        audits = list(pool.map(ask, parts))
    found = (one for audit in audits for one in audit.found)
    return Audit(
        found=tuple(sorted(found, key=str)),
        unknown=tuple(sorted(name for audit in audits for name in audit.unknown)),
    )


def read_pins(folder: Path) -> list[str]:
    """The pins of all files, each once."""
    lines = (line for name in _PINS for line in (folder / name).read_text(encoding="utf-8").splitlines())
    return sorted({line.strip() for line in lines if "==" in line})


def main(folder: Path = _HERE) -> int:
    """Returns the exit code: 1 when something must be fixed."""
    accepted = read_accepted(folder / "advisories.yaml")
    pins = read_pins(folder)
    try:
        audit = ask_all(pins)
    except ServiceUnreachable as error:
        print(f"advisories: not audited: {error}")
        return 0
    failures, notes = problems(audit.found, accepted, today=date.today())
    if audit.unknown:
        notes.append(f"not audited, unknown to the service: {', '.join(audit.unknown)}")
    for line in (*failures, *notes):
        print(f"advisories: {line}")
    print(f"advisories: {len(pins)} pins, {len(audit.found)} known vulnerabilities, {len(failures)} to fix")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
