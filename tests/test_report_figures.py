"""The figures of an audit are what its files say, and an interval is what resampling sources gives."""

import json
import random
import re
import time
from pathlib import Path

import pytest

from reward.offline.agreement import HumanCounts, Target
from reward.offline.bootstrap import RESAMPLES, Interval, bootstrap
from reward.offline.figures import count_figures
from reward.offline.inputs import RowFormat, read_rows
from reward.offline.rows import AuditRow
from reward.types import Outcome, Provenance, Verdict
from tests.audit_jobs import RAGTRUTH, pairs, picnic_pair, ragtruth_job, run, shop_job


def share(sums: object) -> dict[str, float | None]:
    part, whole = sums  # type: ignore[misc]
    return {"share": part / whole if whole else None}


def labelled(outcome: Outcome, marked: bool, source: str = "s") -> tuple[AuditRow, Verdict]:
    row = next(read_rows(RAGTRUTH, RowFormat.RAGTRUTH))
    spans = ({"start": 0, "end": len(row.response)},) if marked else ()
    row = AuditRow.model_validate(row.model_dump() | {"human_spans": spans, "source_id": source})
    reward = {Outcome.UNSCORED: None, Outcome.REFUTED: -1.0}.get(outcome, 0.0)
    return row, Verdict(id=row.query.id, outcome=outcome, reward=reward, reason="timeout")


def test_agreement_with_people_is_what_the_files_say(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    figures = run(job)[0].figures
    raw = [json.loads(line) for line in (RAGTRUTH / "response.jsonl").read_text().splitlines()]
    marked = {row["id"]: any(re.search(r"\d", span["text"]) for span in row["labels"]) for row in raw}
    refuted = {row.id: row.outcome is Outcome.REFUTED for _, row in pairs(job)}
    hits = sum(marked[i] and refuted[i] for i in marked)
    found = figures.human["overall"].targets[Target.PLAIN]
    assert (found.n, found.num_unscored, found.true_positives) == (54, 0, hits)
    assert found.precision == pytest.approx(hits / sum(refuted.values()))
    assert found.recall == pytest.approx(hits / sum(marked.values()))
    assert found.f1 == pytest.approx(2 * hits / (sum(refuted.values()) + sum(marked.values())))
    assert figures.human.keys() == {"overall", "QA", "Summary", "Data2txt"}
    for target in Target:
        parts = [one.targets[target].n for name, one in figures.human.items() if name != "overall"]
        assert sum(parts) == 54
    assert figures.human["overall"].num_sources == 9


def test_false_alarms_are_refuted_answers_without_any_mark(tmp_path: Path) -> None:
    job = ragtruth_job(tmp_path)
    alarms = run(job)[0].figures.human["overall"].false_alarms
    clean = [verdict for row, verdict in pairs(job) if row.human_spans == ()]
    num_refuted = sum(verdict.outcome is Outcome.REFUTED for verdict in clean)
    assert (alarms.n, alarms.num_refuted, alarms.rate) == (len(clean), num_refuted, num_refuted / len(clean))


def test_unscored_rows_are_no_prediction_and_undefined_ratios_are_none() -> None:
    found = count_figures([labelled(Outcome.UNSCORED, True), labelled(Outcome.UNSCORED, False)])
    overall = found.human["overall"].targets[Target.PLAIN]
    assert (overall.n, overall.num_unscored) == (0, 2)
    assert (overall.precision, overall.recall, overall.f1) == (None, None, None)
    assert found.human["overall"].false_alarms.rate is None
    overall = count_figures([labelled(Outcome.NO_CLAIMS, True)]).human["overall"].targets[Target.PLAIN]
    assert (overall.precision, overall.recall, overall.f1) == (None, 0.0, 0.0)


def test_without_human_labels_there_is_no_agreement(tmp_path: Path) -> None:
    assert run(shop_job(tmp_path))[0].figures.human == {}


def test_what_went_wrong_is_counted() -> None:
    figures = count_figures([picnic_pair(), picnic_pair(row_id="p2")])
    assert (figures.num_claims, figures.num_uncovered, figures.num_rows_with_uncovered) == (10, 2, 2)
    assert figures.claim_states == dict.fromkeys(figures.claim_states, 2)
    assert (figures.uncovered_rate, figures.malformed_rate) == (2 / 12, 1.0)
    assert count_figures([]).uncovered_rate is None


def test_each_kind_of_provenance_is_listed_once() -> None:
    made = Provenance(auditor="lexical", version="1", config_digest="0" * 64)
    verdict = Verdict(id="a", outcome=Outcome.NO_CLAIMS, reward=0.0, provenance=made)
    row, _ = picnic_pair()
    assert count_figures([(row, verdict)] * 3).provenances == (made,)


def test_an_interval_is_what_resampling_by_hand_gives() -> None:
    clusters = [[hits, 6] for hits in (0, 1, 2, 3, 3, 5, 6, 6)]
    draw = random.Random(0)
    shares = sorted(
        sum(hits for hits, _ in drawn) / sum(n for _, n in drawn)
        for drawn in (draw.choices(clusters, k=len(clusters)) for _ in range(RESAMPLES))
    )
    found = bootstrap(clusters, share)["share"]
    assert found is not None
    assert found.low == pytest.approx(shares[24], abs=0.02)
    assert found.high == pytest.approx(shares[975], abs=0.02)
    assert bootstrap(clusters, share)["share"] == found


def test_rows_of_one_source_widen_an_interval() -> None:
    draw = random.Random(1)
    rows = [[int(draw.random() < 0.5), 1] for _ in range(200)]
    alone, together = (
        bootstrap(rows, share)["share"],
        bootstrap([[h * 10, 10] for h, _ in rows[:20]], share)["share"],
    )
    assert alone is not None and together is not None
    assert together.high - together.low > 2 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [([], None), ([[1, 2]], None), ([[0, 0], [0, 0]], None), ([[1, 1], [3, 3]], Interval(low=1, high=1))],
    ids=["none", "one", "undefined", "certain"],
)
def test_an_interval_needs_something_to_resample(
    clusters: list[list[int]], expected: Interval | None
) -> None:
    assert bootstrap(clusters, share).get("share") == expected


def test_intervals_of_a_whole_benchmark_take_seconds() -> None:
    counts = HumanCounts()
    pair = labelled(Outcome.REFUTED, True)
    for source in range(3_000):
        row = pair[0].model_copy(update={"source_id": str(source)})
        counts.add(row, pair[1])
    start = time.perf_counter()
    counts.figures()
    assert time.perf_counter() - start < 15
