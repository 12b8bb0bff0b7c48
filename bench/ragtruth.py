"""The audit without a model against the people who marked RAGTruth: precision, recall and F1 with intervals.

Not a matter of speed, but kept like one: as data, with the command. Sources are split in two by a hash of
their id; the rules were written while looking at one half only ("seen"), and the other half ("held out") was
only counted. Measured are this audit with RAGTruth's checks and without any, two baselines, and the rivals
of `bench/rivals.py` that are installed. The official files, or any folder laid out like them:

    python -m bench ragtruth                        # the rows in tests/data
    python -m bench ragtruth --data path/ragtruth

`plain`, `cleaned` and `any` are the targets of `reward/offline/agreement.py`; `any` is the any-hallucination
figure, in which an answer with any mark is a hallucinated one.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.measure import write_result
from bench.rivals import Refutes, rivals
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.offline.agreement import OVERALL, Human, HumanCounts, Target
from reward.offline.inputs import RowFormat, read_rows
from reward.offline.ragtruth import CHECKS
from reward.offline.rows import AuditRow
from reward.offline.terminal import plain_table, ratio
from reward.types import Outcome, Verdict

_SLICE = Path(__file__).parent.parent / "tests" / "data" / "ragtruth"
THIS, WITHOUT_CHECKS = "this", "this, without checks"
Parts = Mapping[str, Mapping[str, Human]]


def was_seen(source_id: str) -> bool:
    """Whether the rules were written while looking at the answers to this source."""
    return int(hashlib.sha256(f"march:{source_id}".encode()).hexdigest(), 16) % 2 == 0


def run(data: Sequence[Path] = ()) -> None:
    rows = [row for row in read_rows(data[0] if data else _SLICE, RowFormat.RAGTRUTH) if not row.excluded]
    samples: dict[str, list[float]] = {}
    found: dict[str, Parts] = {}
    for name, judge in _auditors():
        start = time.perf_counter()
        verdicts = [judge(row) for row in rows]
        samples[name] = [time.perf_counter() - start]
        found[name] = _parts(rows, verdicts)
    others = {name: _scores(parts) for name, parts in found.items() if name != THIS}
    figures = {"num_rows": len(rows), "parts": _as_data(found[THIS]), "others": others}
    path = write_result("ragtruth", samples_s=samples, figures=figures, data=[path.name for path in data[:1]])
    _print(found)
    print(path)


def _auditors() -> Iterator[tuple[str, Callable[[AuditRow], Verdict]]]:
    checked, plain = AuditConfig(checks=CHECKS), AuditConfig()
    yield THIS, lambda row: lexical_audit(row.query, row.response, checked)
    yield WITHOUT_CHECKS, lambda row: lexical_audit(row.query, row.response, plain)
    yield from ((name, partial(_said, refutes)) for name, refutes in rivals())


def _said(refutes: Refutes, row: AuditRow) -> Verdict:
    """What a rival says, as a verdict without claims."""
    is_refuted = refutes(row)
    outcome = Outcome.REFUTED if is_refuted else Outcome.SUPPORTED
    return Verdict(id=row.query.id, outcome=outcome, reward=-float(is_refuted))


def _parts(rows: Sequence[AuditRow], verdicts: Sequence[Verdict]) -> Parts:
    counts = {part: HumanCounts() for part in ("all", "seen", "held_out")}
    for row, verdict in zip(rows, verdicts, strict=True):
        for part in ("all", "seen" if was_seen(row.cluster) else "held_out"):
            counts[part].add(row, verdict)
    return {part: one.figures() for part, one in counts.items()}


def _as_data(parts: Parts) -> dict[str, dict[str, object]]:
    return {
        part: {group: human.model_dump(mode="json") for group, human in groups.items()}
        for part, groups in parts.items()
    }


def _scores(parts: Parts) -> dict[str, dict[str, object]]:
    """Precision, recall and F1 of each target, and the false alarms, of all tasks together."""
    return {
        part: {
            **{name: [one.precision, one.recall, one.f1] for name, one in groups[OVERALL].targets.items()},
            "false_alarms": groups[OVERALL].false_alarms.rate,
        }
        for part, groups in parts.items()
    }


def _print(found: Mapping[str, Parts]) -> None:
    heads = [f"{target} F1" for target in Target]
    for part in ("all", "held_out"):
        table = plain_table(part, "auditor", *heads, "any P", "any R", "false alarms")
        for name, parts in found.items():
            human = parts[part][OVERALL]
            scores = [ratio(human.targets[target].f1) for target in Target]
            anything = human.targets[Target.ANY]
            others = (anything.precision, anything.recall, human.false_alarms.rate)
            table.add_row(name, *scores, *map(ratio, others))
        Console(width=114).print(table)
