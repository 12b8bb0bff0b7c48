"""How well an audit agrees with what people marked, for each target and task, with intervals by source.

RAGTruth's annotators marked every hallucinated passage, most of which hold no number at all. So an answer
counts as wrong by one of three targets:

    plain     some marked passage holds a digit
    cleaned   some marked passage holds a digit that states something: not the number of a list item at the
              start of a line ("2. "), of a cited passage ("passages 1 and 3"), or of words ("in 80 words")
    any       something is marked

The audit's prediction is REFUTED; for the first two, which are about numbers, REFUTED for a number or a date.
A row that could not be scored is no prediction: it is counted apart and is in none of the four cells.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from pydantic import Field

from reward.judging.vote import Reason
from reward.offline.bootstrap import Interval, share, summed
from reward.offline.rows import AuditRow
from reward.types import ClaimState, Outcome, Record, Span, Verdict

OVERALL = "overall"
_NOT_WRONG = (ClaimState.SUPPORTED, ClaimState.FAILED)
_NUMERIC = frozenset({"number", "date"})
_FIGURES = ("precision", "recall", "f1")
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
    """Counts labelled rows source by source, then works out the figures."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Counter[str]]] = {}  # by group and source

    def add(self, row: AuditRow, verdict: Verdict) -> None:
        """Counts one row; a row without human labels is passed over."""
        if row.human_spans is None:
            return
        counted = list(_counted(row, verdict))
        for group in dict.fromkeys((OVERALL, row.task_type or OVERALL)):
            self._groups.setdefault(group, {}).setdefault(row.cluster, Counter()).update(counted)

    def figures(self) -> dict[str, Human]:
        """The figures by group, all rows together last; empty without human labels."""
        groups = sorted(self._groups, key=lambda name: (name == OVERALL, name))
        return {group: _human(self._groups[group].values()) for group in groups}


def _counted(row: AuditRow, verdict: Verdict) -> Iterator[str]:
    """What a row counts as: one cell a target, and whether it is clean and refuted all the same."""
    is_scored = verdict.outcome is not Outcome.UNSCORED
    for target in Target:
        refuted = _is_refuted(verdict, target)
        cell = ("hit" if refuted else "miss") if marked(row, target) else "alarm" if refuted else "correct"
        yield f"{target}/{cell if is_scored else 'unscored'}"
    if not row.human_spans and is_scored:
        yield "clean"
        if verdict.outcome is Outcome.REFUTED:
            yield "clean, refuted"


def _is_refuted(verdict: Verdict, target: Target) -> bool:
    """Whether the audit says that the answer is wrong; of numbers, if the target is about them."""
    if verdict.outcome is not Outcome.REFUTED or target is Target.ANY:
        return verdict.outcome is Outcome.REFUTED
    wrong = {found.claim.kind for found in verdict.claims if found.state not in _NOT_WRONG}
    return verdict.reason == Reason.UNCOVERED or not wrong or not _NUMERIC.isdisjoint(wrong)


def _human(sources: Collection[Counter[str]]) -> Human:
    sums, values, intervals = summed(sources, _statistics)
    targets = {}
    for target in Target:
        hit, alarm, miss, correct = (sums[f"{target}/{cell}"] for cell in ("hit", "alarm", "miss", "correct"))
        targets[target] = Agreement(
            n=hit + alarm + miss + correct,
            num_unscored=sums[f"{target}/unscored"],
            true_positives=hit,
            false_positives=alarm,
            false_negatives=miss,
            true_negatives=correct,
            **{name: values[f"{target}/{name}"] for name in _FIGURES},
            intervals={name: intervals[f"{target}/{name}"] for name in _FIGURES},
        )
    alarms = FalseAlarms(
        n=sums["clean"],
        num_refuted=sums["clean, refuted"],
        rate=values["false_alarms"],
        interval=intervals["false_alarms"],
    )
    return Human(targets=targets, false_alarms=alarms, num_sources=len(sources))


def _statistics(sums: Mapping[str, int]) -> Mapping[str, float | None]:
    values = {"false_alarms": share(sums["clean, refuted"], sums["clean"])}
    for target in Target:
        hit, alarm, miss = (sums[f"{target}/{cell}"] for cell in ("hit", "alarm", "miss"))
        values[f"{target}/precision"] = share(hit, hit + alarm)
        values[f"{target}/recall"] = share(hit, hit + miss)
        values[f"{target}/f1"] = share(2 * hit, 2 * hit + alarm + miss)
    return values
