"""The lexical audit against the people who marked RAGTruth: precision, recall and F1 with intervals.

Not a matter of speed, but kept like one: as data, with the command. Sources are split in two by a hash of
their id; the rules of `reward/lexical/` were written while looking at one half only ("seen"), and the other
half ("held out") was only counted. The official files, or any folder laid out like them, are measured as a
third part:

    python -m bench ragtruth                      # the rows in tests/data
    RAGTRUTH=/path/to/ragtruth python -m bench ragtruth
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from bench.measure import write_result
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.offline.figures import count_figures
from reward.offline.inputs import RowFormat, read_rows
from reward.offline.rows import AuditRow
from reward.types import Verdict

_SLICE = Path(__file__).parent.parent / "tests" / "data" / "ragtruth"


def was_seen(source_id: str) -> bool:
    """Whether the rules were written while looking at the answers to this source."""
    return int(hashlib.sha256(f"march:{source_id}".encode()).hexdigest(), 16) % 2 == 0


def run() -> None:
    """Measures and writes `ragtruth.json`."""
    folder = Path(os.environ.get("RAGTRUTH", _SLICE))
    config = AuditConfig()
    start = time.perf_counter()
    audited = [
        (row, lexical_audit(row.query, row.response, config)) for row in read_rows(folder, RowFormat.RAGTRUTH)
    ]
    samples = {"lexical": [time.perf_counter() - start]}
    parts: dict[str, list[tuple[AuditRow, Verdict]]] = {"all": audited, "seen": [], "held_out": []}
    for row, verdict in audited:
        parts["seen" if was_seen(row.cluster) else "held_out"].append((row, verdict))
    figures = {
        name: {group: human.model_dump(mode="json") for group, human in count_figures(rows).human.items()}
        for name, rows in parts.items()
    }
    path = write_result("ragtruth", samples_s=samples, figures={"num_rows": len(audited), "parts": figures})
    print(path)
