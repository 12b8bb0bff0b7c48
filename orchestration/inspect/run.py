"""A training run as `march inspect` reads it: the figures of its finished steps and its kept answers.

`steps.jsonl` is trusted: a file of rollouts that it does not name is of a step that did not end, and is not
read; one that it names must be there and whole. A light `Entry` of every answer is enough to filter, sort and
count; whole answers are read for those that are shown.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.record.rollout_files import read_columns, read_rollouts, rollouts_file
from pipeline.record.rollout_rows import RolloutRow, RolloutTurn
from pipeline.record.tracking import KEPT, STEPS_FILE, read_steps
from reward.offline.report import WORST_FIRST
from reward.offline.rows import AuditRow
from reward.types import ClaimState, Document, Outcome, RagQuery

_RUN_FILE = "run.json"
_COLUMNS = (
    *("place", "query_id", "verdict.outcome", "verdict.reward", "verdict.claims.list.element.state"),
    *("verdict.uncovered.list.element.start", "oracle.faithful"),
)


@dataclass(frozen=True)
class Run:
    folder: Path
    name: str
    note: str
    steps: Sequence[Mapping[str, float]]  # figures of each finished step, in order

    @property
    def num_kept(self) -> int:
        """Answers that are on disk."""
        return sum(int(step.get(KEPT, 0)) for step in self.steps)


@dataclass(frozen=True)
class Entry:
    """An answer as far as it is filtered, sorted and counted."""

    step: int
    place: int
    query_id: str
    outcome: Outcome
    reward: float | None
    claims: Sequence[ClaimState]
    has_uncovered: bool
    faithful: bool | None  # None where the truth is not known

    @property
    def false_accept(self) -> bool:
        """Whether the best reward went to a wrong answer, as far as the truth is known."""
        return self.faithful is False and self.outcome is Outcome.SUPPORTED


def open_run(folder: Path) -> Run:
    """Reads what a run folder says of its steps.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it is the folder of no run, or a line of its record is damaged.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; give the folder of a run (march train --run-dir)")
    about = folder / _RUN_FILE
    if not about.is_file() and not (folder / STEPS_FILE).is_file():
        raise ValueError(f"{folder}: has no {_RUN_FILE} and no {STEPS_FILE}; give the folder of a run")
    recipe = _json(about).get("recipe", {}) if about.is_file() else {}
    try:
        steps = read_steps(folder)
    except ValueError as error:
        raise ValueError(f"{folder / STEPS_FILE}: a line is not JSON ({error}); copy it again") from error
    return Run(folder, str(recipe.get("name", folder.name)), str(recipe.get("note", "")), steps)


def read_entries(run: Run, asked: tuple[int, int] | None = None) -> list[Entry]:
    """Reads the light form of the kept answers, of all steps or from the first to the last `asked`.

    Raises:
        FileNotFoundError: the file of a step is not there.
        ValueError: it is no whole Parquet file, or lacks answers; or no such step is finished.
    """
    steps = [step for step in run.steps if asked is None or asked[0] <= step["step"] <= asked[1]]
    if asked is not None and not steps:
        done = [int(step["step"]) for step in run.steps]
        have = f"steps {done[0]} to {done[-1]}" if done else "no finished step"
        raise ValueError(f"--step: {asked[0]}-{asked[1]}: the run has {have}; give one of them")
    entries: list[Entry] = []
    for step in steps:
        number, kept = int(step["step"]), int(step.get(KEPT, 0))
        if kept:
            path = rollouts_file(run.folder, number)
            rows = read_columns(path, _COLUMNS)
            if len(rows) != kept:
                raise ValueError(
                    f"{path}: holds {len(rows)} answers, but {STEPS_FILE} says {kept}; copy both again"
                )
            entries += [_entry(number, cells) for cells in rows]
    return entries


def read_answers(run: Run, entries: Sequence[Entry]) -> list[RolloutRow]:
    """Reads the whole answers of some entries, in their order."""
    places: dict[int, set[int]] = {}
    for entry in entries:
        places.setdefault(entry.step, set()).add(entry.place)
    rows = {
        (row.step, row.place): row
        for step, wanted in places.items()
        for row in read_rollouts(rollouts_file(run.folder, step), places=wanted)
    }
    return [rows[entry.step, entry.place] for entry in entries]


def _entry(step: int, cells: Mapping[str, Any]) -> Entry:
    verdict, oracle = cells["verdict"], cells["oracle"]
    return Entry(
        step=step,
        place=cells["place"],
        query_id=cells["query_id"],
        outcome=Outcome(verdict["outcome"]),
        reward=verdict["reward"],
        claims=[ClaimState(claim["state"]) for claim in verdict["claims"]],
        has_uncovered=bool(verdict["uncovered"]),
        faithful=oracle["faithful"] if oracle else None,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); copy it again") from error
    return tree if isinstance(tree, dict) else {}


def as_audited(row: RolloutRow) -> AuditRow:
    """The answer as the views of audits take it; documents whose texts were not kept are empty."""
    documents = row.documents or tuple(Document(id=one, text="") for one in row.document_ids)
    query = RagQuery(id=row.query_id, query=row.query, documents=documents)
    return AuditRow(place=f"step {row.step}, answer {row.place}", query=query, response=row.response)


def truth_in_words(row: RolloutRow) -> str:
    """What the truth says of an answer, held against the audit; nothing where it is not known."""
    if row.oracle is None:
        return ""
    if row.oracle.false_accept:
        return "wrong, but accepted"
    if row.oracle.false_reject:
        return "true, but refused"
    return "true" if row.oracle.faithful else "wrong"


def turn_in_words(turn: RolloutTurn) -> str:
    tokens = f"{turn.num_prompt_tokens:,} + {turn.num_response_tokens:,} tokens"
    cut = ", cut" if turn.finish_reason == "length" else ""
    version = "" if turn.weights_version is None else f", weights {turn.weights_version}"
    if not turn.trained:
        return f"{turn.role}: {tokens}{cut}{version}, masked"
    return f"{turn.role}: {tokens}{cut}{version}, reward {turn.reward:g}, advantage {turn.advantage:+.2f}"


@dataclass(frozen=True)
class Wanted:
    """What answers must be, to be shown, and what comes first."""

    outcome: Outcome | None = None
    query_id: str | None = None
    worst: bool = False  # false accepts first, then the outcomes from refuted to supported


@dataclass(frozen=True)
class Totals:
    """Counts over answers; named as in `reward.offline.figures.Figures`."""

    num_rows: int
    outcomes: dict[Outcome, int]
    rates: dict[Outcome, float]
    num_claims: int
    claim_states: dict[ClaimState, int]
    has_uncovered: bool


def choose(entries: Sequence[Entry], wanted: Wanted) -> list[Entry]:
    fitting = [
        entry
        for entry in entries
        if wanted.outcome in (None, entry.outcome) and wanted.query_id in (None, entry.query_id)
    ]
    return sorted(fitting, key=_badness) if wanted.worst else fitting


def few(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Returns the worst of them, at most so many, in the order that they have."""
    kept = {(entry.step, entry.place) for entry in sorted(entries, key=_badness)[:most]}
    return [entry for entry in entries if (entry.step, entry.place) in kept]


def totals(entries: Sequence[Entry]) -> Totals:
    outcomes = Counter(entry.outcome for entry in entries)
    states = Counter(state for entry in entries for state in entry.claims)
    return Totals(
        num_rows=len(entries),
        outcomes={outcome: outcomes[outcome] for outcome in Outcome},
        rates={outcome: outcomes[outcome] / max(len(entries), 1) for outcome in Outcome},
        num_claims=states.total(),
        claim_states={state: states[state] for state in ClaimState},
        has_uncovered=any(entry.has_uncovered for entry in entries),
    )


def _badness(entry: Entry) -> tuple[Any, ...]:
    """A sort key: among equals the lowest reward, then the latest step."""
    worst = WORST_FIRST.index(entry.outcome)
    return (not entry.false_accept, worst, entry.reward or 0, -entry.step, entry.place)
