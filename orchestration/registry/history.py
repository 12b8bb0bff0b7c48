"""The history as files, beside the registry's own: JSON lines that are appended only, one file a model.

    FOLDER/MODEL/history.jsonl      every entry of the log, with its number and effect; and whole gate reports
    FOLDER/MODEL/deliveries.jsonl   notifications and how they fared

The log in the registry decides; these lines are for people and for the case that the registry is lost. A line
that a kill tore is dropped by the next writer.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

from orchestration.promotion.records import GateReport
from orchestration.registry.log import State

HISTORY_FILE, DELIVERIES_FILE = "history.jsonl", "deliveries.jsonl"


def write_history(folder: Path, model: str, state: State) -> None:
    """Appends the entries that the file does not have yet."""
    rows = [
        {
            "kind": "entry",
            "number": one.number,
            "effect": one.effect.value,
            "why": one.why,
            "entry": one.entry.model_dump(mode="json"),
        }
        for one in state.history
    ]
    append_rows(folder / model / HISTORY_FILE, {f"entry {row['number']}": row for row in rows})


def write_report(folder: Path, model: str, version: str, report: GateReport, sha256: str) -> None:
    """Appends a gate report, once."""
    row: dict[str, JsonValue] = {
        "kind": "report",
        "version": version,
        "sha256": sha256,
        "report": report.model_dump(mode="json"),
    }
    append_rows(folder / model / HISTORY_FILE, {f"report {version} {sha256}": row})


def write_delivery(folder: Path, model: str, row: Mapping[str, JsonValue]) -> None:
    """Appends how a notification fared."""
    append_rows(folder / model / DELIVERIES_FILE, {"": dict(row)})


def read_rows(path: Path) -> list[dict[str, JsonValue]]:
    """The whole lines of a file; none where there is no file."""
    if not path.is_file():
        return []
    return _whole(path.read_bytes())


def append_rows(path: Path, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Appends lines under a lock: those whose name the file has are left out, those named "" never."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        kept = file.read()
        file.truncate(kept.rfind(b"\n") + 1)
        known = set(_names(_whole(kept)))
        new = [row for name, row in rows.items() if not name or name not in known]
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in new).encode())
        file.flush()
        os.fsync(file.fileno())


def _whole(content: bytes) -> list[dict[str, JsonValue]]:
    """The whole lines. A kill may have torn the last one inside a letter, and JSON ends no line at U+2028."""
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def _names(rows: Iterable[Mapping[str, object]]) -> Iterable[str]:
    for row in rows:
        if row.get("kind") == "entry":
            yield f"entry {row['number']}"
        elif row.get("kind") == "report":
            yield f"report {row['version']} {row['sha256']}"
