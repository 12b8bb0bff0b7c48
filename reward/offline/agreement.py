"""How well an audit agrees with what people marked, for each target and task, with intervals by source.

RAGTruth's annotators marked every hallucinated passage, most of which hold no number at all. So an answer
counts as wrong by one of three targets:

    plain     some marked passage holds a digit
    cleaned   some marked passage holds a digit that states something: not the number of a list item at the
              start of a line ("2. "), of a cited passage ("passages 1 and 3"), or of words ("in 80 words")
    any       something is marked

The audit's prediction is REFUTED; for the first two, which are about numbers, REFUTED for a number or a date.
A row that could not be scored is no prediction: it is counted apart and is in none of the four cells. A ratio
without a denominator is None, never NaN and never a made-up 0 or 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from pydantic import Field

from reward.judging.vote import Reason
from reward.offline.bootstrap import Interval, bootstrap
from reward.offline.rows import AuditRow
from reward.types import ClaimState, ClaimVerdict, Outcome, Record, Span, Verdict

OVERALL = "overall"
_HIT, _FALSE_ALARM, _MISS, _CORRECT, _UNSCORED = range(5)
_NUM_CELLS = 5
_NOT_WRONG = (ClaimState.SUPPORTED, ClaimState.FAILED)
_NUMERIC = frozenset({"number", "date"})
_DIGIT = re.compile(r"\d")
_LIST_NUMBER = r"(?m:^)[ \t]*(?:[-*][ \t]+)?\(?\d{1,2}[.)][ \t]+"
_PASSAGE_NUMBER = (
    r"\bpassages?[ \t]{0,4}\d+"
    r"(?:[ \t]{0,4}(?:,|and|or|&|-|\u2013)[ \t]{0,4}(?:(?:and|or|&)[ \t]{0,4})?(?:passages?[ \t]{0,4})?\d+)*"
)
_WORD_COUNT = r"\b\d+[ -]words?\b"
_STATES_NOTHING = re.compile(rf"{_LIST_NUMBER}|{_PASSAGE_NUMBER}|{_WORD_COUNT}", re.IGNORECASE)


class Target(StrEnum):
    """Which marks make an answer wrong."""

    PLAIN = "plain"
    CLEANED = "cleaned"
    ANY = "any"


class Agreement(Record):
    """How REFUTED agrees with one target, over the rows of one group that were scored."""

    n: int = Field(description="Scored rows with human labels.")
    num_unscored: int = Field(description="Rows with human labels that could not be scored; not in n.")
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: float | None
    recall: float | None
    f1: float | None
    intervals: dict[str, Interval | None] = Field(description="Of precision, recall and f1, by source.")


class FalseAlarms(Record):
    """How often the audit refutes an answer in which people marked nothing at all."""

    n: int = Field(description="Scored rows without any mark.")
    num_refuted: int
    rate: float | None
    interval: Interval | None


class Human(Record):
    """Everything that the human labels of one group of rows say about an audit."""

    targets: dict[Target, Agreement]
    false_alarms: FalseAlarms
    num_sources: int = Field(description="Clusters that the intervals resample.")


def kind_of(found: ClaimVerdict) -> str:
    """The kind of thing that a claim is about: number, name or date."""
    return found.claim.kind


def marked(row: AuditRow, target: Target) -> bool | None:
    """Whether people marked what the target counts; None without human labels."""
    return None if row.human_spans is None else is_marked(row.response, row.human_spans, target)


def is_marked(response: str, marks: Sequence[Span], target: Target) -> bool:
    """Whether some marked passage of a response counts for the target."""
    if target is Target.ANY:
        return bool(marks)
    counted = response
    if target is Target.CLEANED and any(_DIGIT.search(response, mark.start, mark.end) for mark in marks):
        counted = _STATES_NOTHING.sub(lambda found: " " * len(found[0]), response)  # places stay as they are
    return any(_DIGIT.search(counted, mark.start, mark.end) for mark in marks)


class HumanCounts:
    """Counts labelled rows source by source, then works out the figures.

    A cluster's counts are five cells a target (hit, false alarm, miss, correct, unscored), then the clean
    answers and the refuted ones among them.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, list[int]]] = {}

    def add(self, row: AuditRow, verdict: Verdict) -> None:
        """Counts one row; a row without human labels is passed over."""
        if row.human_spans is None:
            return
        places = list(_places(row, verdict))
        for group in dict.fromkeys((OVERALL, row.task_type or OVERALL)):
            counts = self._groups.setdefault(group, {}).setdefault(row.cluster, [0] * _num_counts())
            for place in places:
                counts[place] += 1

    def figures(self) -> dict[str, Human]:
        """The figures by group; empty without human labels."""
        return {group: _human(list(clusters.values())) for group, clusters in self._groups.items()}


def _num_counts() -> int:
    return len(Target) * _NUM_CELLS + 2


def _places(row: AuditRow, verdict: Verdict) -> Iterator[int]:
    """Which counts a row adds to."""
    for number, target in enumerate(Target):
        refuted = _is_refuted(verdict, target)
        if verdict.outcome is Outcome.UNSCORED:
            cell = _UNSCORED
        elif marked(row, target):
            cell = _HIT if refuted else _MISS
        else:
            cell = _FALSE_ALARM if refuted else _CORRECT
        yield number * _NUM_CELLS + cell
    if not row.human_spans and verdict.outcome is not Outcome.UNSCORED:
        yield _num_counts() - 2
        if verdict.outcome is Outcome.REFUTED:
            yield _num_counts() - 1


def _is_refuted(verdict: Verdict, target: Target) -> bool:
    """Whether the audit says that the answer is wrong; of numbers, if the target is about them."""
    if verdict.outcome is not Outcome.REFUTED or target is Target.ANY:
        return verdict.outcome is Outcome.REFUTED
    wrong = [kind_of(found) for found in verdict.claims if found.state not in _NOT_WRONG]
    return verdict.reason == Reason.UNCOVERED or not wrong or not _NUMERIC.isdisjoint(wrong)


def _human(clusters: Sequence[Sequence[int]]) -> Human:
    sums = [sum(counts) for counts in zip(*clusters, strict=True)]
    values, intervals = _statistics(sums), bootstrap(clusters, _statistics)
    targets = {}
    for number, target in enumerate(Target):
        cells = sums[number * _NUM_CELLS : (number + 1) * _NUM_CELLS]
        targets[target] = Agreement(
            n=sum(cells) - cells[_UNSCORED],
            num_unscored=cells[_UNSCORED],
            true_positives=cells[_HIT],
            false_positives=cells[_FALSE_ALARM],
            false_negatives=cells[_MISS],
            true_negatives=cells[_CORRECT],
            **{name: values[f"{target}/{name}"] for name in ("precision", "recall", "f1")},
            intervals={name: intervals[f"{target}/{name}"] for name in ("precision", "recall", "f1")},
        )
    alarms = FalseAlarms(
        n=sums[-2],
        num_refuted=sums[-1],
        rate=values["false_alarms"],
        interval=intervals["false_alarms"],
    )
    return Human(targets=targets, false_alarms=alarms, num_sources=len(clusters))


def _statistics(sums: Sequence[int]) -> Mapping[str, float | None]:
    values: dict[str, float | None] = {"false_alarms": _ratio(sums[-1], sums[-2])}
    for number, target in enumerate(Target):
        hit, false_alarm, miss = sums[number * _NUM_CELLS : number * _NUM_CELLS + 3]
        values[f"{target}/precision"] = _ratio(hit, hit + false_alarm)
        values[f"{target}/recall"] = _ratio(hit, hit + miss)
        values[f"{target}/f1"] = _ratio(2 * hit, 2 * hit + false_alarm + miss)
    return values


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
