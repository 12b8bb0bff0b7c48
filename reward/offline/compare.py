"""What changed between two audits: outcomes, the rows that turned, and whether the refuted rate moved.

Rows are paired by id where query and documents are the same; the answer may be another one, as from another
release of a RAG system. The refuted rate is compared on the pairs that both audits scored: a difference of
other rows says nothing of the change. Its interval resamples sources (`reward/offline/bootstrap.py`). A test
that takes rows as independent, such as McNemar's, would be too sure where several answers are about one
source.
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
    query_sha256: str
    settings_sha256: str

    @classmethod
    def of(cls, row: AuditedRow) -> "EarlierRow":
        return cls(row.outcome, row.input_sha256, row.query_sha256, row.settings_sha256)


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
    """The refuted rate of the same queries, before and now."""

    n: int = Field(description="Pairs that both audits scored.")
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
    num_pairs: int = Field(description="Rows of both whose query and documents are the same.")
    num_other_answers: int = Field(description="Pairs whose response changed.")
    num_changed: int = Field(description="Rows of both whose query or documents changed.")
    num_new: int
    num_gone: int
    turned: tuple[Turn, ...] = Field(description="Of the pairs, in order.")
    refuted: PairedDifference
    has_same_settings: bool = Field(description="Whether all pairs were audited with the same settings.")


def read_earlier(path: Path) -> Earlier:
    """Reads the verdicts of the audit to compare with; of OUT.summary.json, those in OUT.jsonl beside it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no output of an audit.
    """
    verdicts = path.with_name(path.name.replace(".summary.json", ".jsonl"))
    rows = {row.id: EarlierRow.of(row) for row in read_verdicts(verdicts)}
    return Earlier(verdicts.name, rows)


def compare(earlier: Earlier, rows: Iterable[tuple[AuditRow, AuditedRow]]) -> Comparison:
    before = Counter(row.outcome for row in earlier.rows.values())
    after: Counter[Outcome] = Counter()
    seen: Counter[str] = Counter()
    turned: list[Turn] = []
    clusters: dict[str, Counter[str]] = {}
    has_same_settings = True
    for row, now in rows:
        after[now.outcome] += 1
        then = earlier.rows.get(now.id)
        if then is None:
            seen["new"] += 1
            continue
        is_same_answer = then.input_sha256 == now.input_sha256
        if not is_same_answer and then.query_sha256 != row.query_digest:
            seen["changed"] += 1
            continue
        seen.update(pairs=1, other_answers=not is_same_answer)
        has_same_settings &= then.settings_sha256 == now.settings_sha256
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
        num_pairs=seen["pairs"],
        num_other_answers=seen["other_answers"],
        num_changed=seen["changed"],
        num_new=seen["new"],
        num_gone=len(earlier.rows) - seen["pairs"] - seen["changed"],
        turned=tuple(turned),
        refuted=_paired(clusters.values()),
        has_same_settings=has_same_settings,
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
