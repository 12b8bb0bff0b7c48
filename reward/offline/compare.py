"""What changed between two audits: outcomes, the rows that turned, and whether the refuted rate moved.

Rows are paired by id. The refuted rate is compared on the rows that both audits scored and whose query,
documents and response are the same: a difference of other rows says nothing of the change. Its interval
resamples sources (`reward/offline/bootstrap.py`). A test that takes rows as independent, such as McNemar's,
would be too sure where several answers are about one source.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from reward.offline.bootstrap import Interval, share, summed
from reward.offline.resume import AuditedRow, read_verdicts
from reward.offline.rows import AuditRow
from reward.types import Outcome, Record


class EarlierRow(NamedTuple):
    """What is needed of a verdict of the other audit."""

    outcome: Outcome
    input_sha256: str


@dataclass(frozen=True)
class Earlier:
    """The audit to compare with."""

    name: str
    rows: Mapping[str, EarlierRow]  # by id


class Turn(Record):
    """A row whose outcome is another one than before."""

    id: str
    before: Outcome
    after: Outcome


class PairedDifference(Record):
    """The refuted rate of the same answers, before and now."""

    n: int = Field(description="Rows that both audits scored and that are the same in both.")
    before: float | None
    after: float | None
    difference: float | None = Field(description="After minus before.")
    interval: Interval | None = Field(description="Of the difference, by source.")
    num_newly_refuted: int
    num_no_longer_refuted: int


class Comparison(Record):
    """What changed since another audit."""

    name: str = Field(description="The other audit's file.")
    before: dict[str, int] = Field(description="Rows an outcome, then.")
    after: dict[str, int] = Field(description="Rows an outcome, now.")
    num_same: int = Field(description="Rows with an unchanged input in both.")
    num_changed: int = Field(description="Rows of both whose query, documents or response changed.")
    num_new: int
    num_gone: int
    turned: tuple[Turn, ...] = Field(description="Of the rows that are the same, in order.")
    refuted: PairedDifference


def read_earlier(path: Path) -> Earlier:
    """Reads the verdicts of the audit to compare with; of OUT.summary.json, those in OUT.jsonl beside it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no output of an audit.
    """
    verdicts = path.with_name(path.name.replace(".summary.json", ".jsonl"))
    rows = {row.id: EarlierRow(row.outcome, row.input_sha256) for row in read_verdicts(verdicts)}
    return Earlier(verdicts.name, rows)


def compare(earlier: Earlier, rows: Iterable[tuple[AuditRow, AuditedRow]]) -> Comparison:
    before = Counter(row.outcome for row in earlier.rows.values())
    after: Counter[Outcome] = Counter()
    seen: Counter[str] = Counter()
    turned: list[Turn] = []
    clusters: dict[str, Counter[str]] = {}
    for row, now in rows:
        after[now.outcome] += 1
        then = earlier.rows.get(now.id)
        is_same = then is not None and then.input_sha256 == now.input_sha256
        seen["new" if then is None else "same" if is_same else "changed"] += 1
        if then is None or not is_same:
            continue
        if then.outcome is not now.outcome:
            turned.append(Turn(id=now.id, before=then.outcome, after=now.outcome))
        if Outcome.UNSCORED not in (then.outcome, now.outcome):
            was, is_now = then.outcome is Outcome.REFUTED, now.outcome is Outcome.REFUTED
            counts = {"n": 1, "before": was, "up": is_now and not was, "down": was and not is_now}
            clusters.setdefault(row.cluster, Counter()).update(counts)
    return Comparison(
        name=earlier.name,
        before={outcome: before[outcome] for outcome in Outcome},
        after={outcome: after[outcome] for outcome in Outcome},
        num_same=seen["same"],
        num_changed=seen["changed"],
        num_new=seen["new"],
        num_gone=len(earlier.rows) - seen["same"] - seen["changed"],
        turned=tuple(turned),
        refuted=_paired(clusters.values()),
    )


def _paired(clusters: Collection[Counter[str]]) -> PairedDifference:
    sums, values, intervals = summed(
        clusters, lambda sums: {"difference": share(sums["up"] - sums["down"], sums["n"])}
    )
    return PairedDifference(
        n=sums["n"],
        before=share(sums["before"], sums["n"]),
        after=share(sums["before"] + sums["up"] - sums["down"], sums["n"]),
        difference=values["difference"],
        interval=intervals["difference"],
        num_newly_refuted=sums["up"],
        num_no_longer_refuted=sums["down"],
    )
