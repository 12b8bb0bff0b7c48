"""The lexical audit on the RAGTruth slice of the tests: responses a second on one core."""

from __future__ import annotations

from pathlib import Path

from bench.measure import in_turn, write_result
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.offline.inputs import RowFormat, read_rows

_SLICE = Path(__file__).parent.parent / "tests" / "data" / "ragtruth"
_ROUNDS = 5


def run() -> None:
    """Measures and writes `lexical.json`."""
    rows = list(read_rows(_SLICE, RowFormat.RAGTRUTH))
    config = AuditConfig()

    def once() -> None:
        for row in rows:
            lexical_audit(row.query, row.response, config)

    samples = in_turn({"lexical": once}, rounds=_ROUNDS)
    figures = {"responses": len(rows), "responses_per_s": len(rows) / min(samples["lexical"])}
    path = write_result("lexical", samples_s=samples, figures=figures)
    print(f"{path}: {figures}")
