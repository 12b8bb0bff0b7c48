"""The committed data: one JSON line a cell, in one file an arm; a line is there whole or not at all.

A later line of the same seed replaces an earlier one. Failures are lines, too, with a reason and no figure.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from bench.measure import RESULTS
from pipeline.demo.evaluation import Evaluation
from reward.offline.files import replace_file
from reward.types import Outcome, Record

FOLDER = RESULTS / "ablations"


class Figures(Record):
    """A model on held-out worlds, each with a world as its unit; all measured by the same check."""

    num_worlds: int
    faithful: int = Field(description="Answers whose every number is true, of which there is one.")
    false_accept: int = Field(description="Answers that the check accepts and that are not faithful.")
    false_reject: int
    supported: int
    unscored: int
    right: tuple[int, ...] | None = Field(
        default=None,
        description="Worlds with 0, 1, ... faithful answers of several; None where one was asked.",
    )
    checker: float = Field(description="Single votes on the asked questions that are right, a share.")
    consensus: float = Field(description="Asked questions whose consensus is right, a share.")
    coverage: float = Field(description="Asked facts that the answers state, a share.")
    numbers: float = Field(description="Numbers an answer.")
    claims: float = Field(description="Questions of the Proposer an answer.")

    @property
    def faithful_rate(self) -> float:
        """Share of faithful answers, of all tries where there were several."""
        if self.right is None:
            return self.faithful / self.num_worlds
        return sum(i * num for i, num in enumerate(self.right)) / (self.num_worlds * (len(self.right) - 1))


class Trained(Record):
    """Means over the last quarter of a training's steps, by the arm's own check."""

    num_answers: int
    supported: float
    false_accept: float
    unscored: float
    solver_kl: float = Field(description="From the start, nats a token.")
    num_checker_turns: int = Field(description="Trained, all steps together.")


class Row(Record):
    """One cell: figures, or why there are none."""

    arm: str
    seed: int
    settings: str = Field(description="Digest of the cell's settings.")
    code: str = Field(description="Digest of the sources it was measured with.")
    date: str
    preset: str = Field(
        default="", description="Of the recipe with the arm's settings; older rows name none."
    )
    start: str = Field(default="", description="SHA-256 of the start's weights, its first digits.")
    wall_s: float = Field(description="Training and measuring; a start that other cells share is left out.")
    phases_s: dict[str, float] = Field(default_factory=dict)
    before: Figures | None = None
    after: Figures | None = None
    trained: Trained | None = None
    failure: str | None = None
    num_failures: int = Field(default=0, description="Failures in a row with these settings.")

    @model_validator(mode="after")
    def _figures_or_a_reason(self) -> Self:
        figures = (self.before, self.after, self.trained)
        if self.failure is None and None in figures:
            raise ValueError(f"{self.arm}, seed {self.seed}: neither figures nor a failure")
        if self.failure is not None and figures != (None, None, None):
            raise ValueError(f"{self.arm}, seed {self.seed}: a failure has no figures")
        return self


def figures_of(evaluation: Evaluation) -> Figures:
    answers, num_tries = evaluation.answers, evaluation.setup.num_tries
    of_each = Counter(answer.num_faithful for answer in answers)
    return Figures(
        num_worlds=len(answers),
        faithful=sum(answer.faithful for answer in answers),
        false_accept=sum(answer.false_accept for answer in answers),
        false_reject=sum(answer.false_reject for answer in answers),
        supported=evaluation.outcomes.get(Outcome.SUPPORTED, 0),
        unscored=sum(answer.reward is None for answer in answers),
        right=tuple(of_each[number] for number in range(num_tries + 1)) if num_tries > 1 else None,
        checker=round(evaluation["checker_accuracy"].value, 4),
        consensus=round(evaluation["consensus_accuracy"].value, 4),
        coverage=round(evaluation["answer_coverage"].value, 4),
        numbers=round(evaluation["mentions_per_answer"].value, 4),
        claims=round(evaluation["claims_per_answer"].value, 4),
    )


def trained_of(steps: Sequence[dict[str, float]], *, answers_per_step: int) -> Trained:
    """Returns what is kept of a training.

    Raises:
        ValueError: there is no step.
    """
    if not steps:
        raise ValueError("steps: the training has none")
    last = steps[-max(len(steps) // 4, 1) :]

    def mean(key: str) -> float:
        return round(sum(step.get(key, 0.0) for step in last) / len(last), 4)

    return Trained(
        num_answers=answers_per_step * len(last),
        supported=mean("audit/supported_rate"),
        false_accept=mean("oracle/false_accept_rate"),
        unscored=mean("audit/unscored_rate"),
        solver_kl=mean("solver/kl"),
        num_checker_turns=round(sum(step.get("checker/num_trained", 0.0) for step in steps)),
    )


def read_rows(arm: str, *, folder: Path = FOLDER) -> dict[int, Row]:
    """Returns the newest row of each seed."""
    path = folder / f"{arm}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = [Row.model_validate_json(line) for line in lines]
    return {row.seed: row for row in rows}


def append_row(row: Row, *, folder: Path = FOLDER) -> None:
    """Adds a row by rename, so that a reader never sees a part of it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.arm}.jsonl"
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    replace_file(path, before + row.model_dump_json(exclude_none=True) + "\n")
