"""What the demo found, for a person: the figures side by side, a plain sentence, and a page with examples.

The sentence follows a rule: a rise below the goal, or more false accepts than before, is said as such. The
goal is a rise with false accepts that are not inferior: no more than before, or with a 95% interval of the
difference that stays below `MARGIN_POINTS`. The rise is `GOAL_POINTS` more faithful answers on the made-up
world, whose errors were injected, and on real text more right answers, with an interval above 0. The examples
are the first rows of the evaluation, the same before and after, and not chosen either.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.demo.evaluation import (
    BY_KIND,
    MEASURES,
    Estimate,
    Evaluation,
    Example,
    clusters_of,
    difference,
    rate,
)
from pipeline.demo.summary import Summary
from pipeline.lineage.record import look_around
from reward.types import ClaimState, Outcome

_FACTS = {1: "one fact", 2: "two facts"}
GOAL_POINTS = 15.0
MARGIN_POINTS = 1.0


@dataclass(frozen=True)
class Finding:
    goal_met: bool
    sentence: str


@dataclass(frozen=True)
class Row:
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
    """Compares two evaluations; raises `ValueError` when they are not of the same rows and settings."""
    if before.setup.model_copy(update={"model": after.setup.model}) != after.setup:
        fix = "remove both files and rerun"
        raise ValueError(f"before, after: measured with different rows or settings; {fix}")
    old, new = ([one.false_accept for one in measured.answers] for measured in (before, after))
    more = difference(old, new, clusters_of(after.answers))
    sentence, has_risen = _on_rise(before, after)
    goal_met = has_risen and _is_not_inferior(more)
    said = ("Goal met." if goal_met else "Goal not met.", sentence, _on_false_accepts(before, after, more))
    more_said = (*_on_claims(before, after), *_on_abstentions(before, after))
    return Finding(goal_met=goal_met, sentence=" ".join((*said, *more_said)))


def table(before: Evaluation, after: Evaluation) -> list[Row]:
    rows = []
    for name, measure in MEASURES.items():
        old, new = before.figures[name], after.figures[name]
        if name == "consensus_accuracy" and after.setup.num_votes == 1:
            continue  # no majority was asked
        if name != "unscored" and (new is not None or not name.startswith("abstention")):
            rows.append(_row(measure.label, old, new, is_share=measure.is_share))
    rows += _by_num_asked(before, after)
    if sum(name.startswith("votes/") for name in after.figures) > 1:
        for part, label in BY_KIND.items():
            for name in dict.fromkeys((*before.figures, *after.figures)):
                if name.startswith(f"{part}/"):
                    kind = name.removeprefix(f"{part}/")
                    rows.append(_row(f"{label}: {kind}", before.figures.get(name), after.figures.get(name)))
    was, now = (sum(one.reward is None for one in measured.answers) for measured in (before, after))
    return [*rows, Row(MEASURES["unscored"].label, str(was), str(now), f"{now - was:+d}")]


def _by_num_asked(before: Evaluation, after: Evaluation) -> Iterator[Row]:
    """Right answers to queries for one fact, for two, and so on: the longer may be given up."""
    if after.setup.world == "tiny":
        return
    for num in sorted({answer.num_questions for answer in after.answers}):
        asked = [
            [one for one in measured.answers if one.num_questions == num and one.answerable]
            for measured in (before, after)
        ]
        if all(asked):
            found = (rate([one.right for one in answers], clusters_of(answers)) for answers in asked)
            yield _row(f"Right answers to queries for {_FACTS.get(num, f'{num} facts')}", *found)


def _headlines(before: Evaluation, after: Evaluation) -> list[Row]:
    first = "oracle_faithfulness" if after.setup.world == "tiny" else "solver_right"
    names = (first, "false_accept", "checker_accuracy")
    return [_row(MEASURES[name].label, before[name], after[name]) for name in names]


def mark_values(example: Example) -> list[Piece]:
    """Cuts an answer at its values and says of each what the check found and what the documents hold."""
    spans = [(verdict.claim.span, verdict.state) for verdict in example.verdict.claims]
    states = {span.start: state for span, state in spans if span is not None}
    pieces, at = [], 0
    for value in example.values:
        pieces += [Piece(example.response[at : value.start])]
        at = value.end
        text, check = example.response[value.start : at], _check_of(states.get(value.start))
        pieces.append(Piece(text, check=check, is_true=value.is_true, truth=value.truth))
    return [*pieces, Piece(example.response[at:])]


def describe(example: Example) -> tuple[str, str]:
    """Returns the check and the truth of an answer as a style name and as words."""
    if example.verdict.outcome is Outcome.UNSCORED:
        return "unscored", "no score"
    accepted = example.verdict.outcome is Outcome.SUPPORTED
    check = "abstained" if example.abstained else "accepted" if accepted else "refused"
    return {
        ("abstained", True): ("right", "abstained, rightly"),
        ("abstained", False): ("missed", "abstained, though answered"),
        ("accepted", True): ("right", "accepted, and true"),
        ("accepted", False): ("missed", "accepted, but wrong"),
        ("refused", True): ("harsh", "refused, but true"),
        ("refused", False): ("caught", "refused, and wrong"),
    }[check, example.faithful]


def render_page(
    before: Evaluation, after: Evaluation, *, summary: Summary, curves: Path, commands: Sequence[str]
) -> str:
    """Returns the page: one HTML file that loads nothing."""
    here = look_around()
    environment = Environment(
        loader=PackageLoader("pipeline"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {"mark_values": mark_values, "describe": describe}
    return environment.get_template("demo.html").render(
        summary=summary,
        rows=table(before, after),
        headlines=_headlines(before, after),
        curves=base64.b64encode(curves.read_bytes()).decode(),
        pairs=list(zip(before.examples, after.examples, strict=False)),
        commands=commands,
        versions={"Python": here.python, **here.packages},
        audit=before.setup.audit,
        claimed=" or ".join(before.setup.audit.kinds),
        is_real=before.setup.world != "tiny",
        temperature=before.setup.solver.temperature,
    )


def _is_not_inferior(more: Estimate) -> bool:
    return more.value <= 0 or more.high * 100 < MARGIN_POINTS


def _on_rise(before: Evaluation, after: Evaluation) -> tuple[str, bool]:
    """What became of the answers, and whether it is as much as the goal."""
    is_tiny = after.setup.world == "tiny"
    name, what = ("oracle_faithfulness", "faithful") if is_tiny else ("solver_right", "right")
    old, new = ([getattr(one, what) for one in measured.answers] for measured in (before, after))
    rise = difference(old, new, clusters_of(after.answers))
    if is_tiny:
        has_risen = rise.value * 100 >= GOAL_POINTS
        short = f", short of the {GOAL_POINTS:.0f} points that were the goal"
    else:
        has_risen = rise.low > 0
        short = ", which chance alone could do" if rise.value > 0 else ""
    direction = "rose" if rise.value > 0 else "fell" if rise.value < 0 else "stayed"
    sentence = (
        f"On {rise.num_rows} held-out rows {what} answers {direction} from {before[name].value:.1%} to "
        f"{after[name].value:.1%}: {_points(rise)}{'' if has_risen else short}."
    )
    return sentence, has_risen


def _on_false_accepts(before: Evaluation, after: Evaluation, more: Estimate) -> str:
    levels = f"{before['false_accept'].value:.1%} to {after['false_accept'].value:.1%}"
    if more.value <= 0:
        return f"False accepts did not rise ({levels})."
    goal = "within" if _is_not_inferior(more) else "not surely within"
    doubt = "; so few that chance alone could do it" if more.low <= 0 else ""
    return (
        f"False accepts rose from {levels}: {_points(more)}, {goal} the {MARGIN_POINTS:.0f} point that the "
        f"goal allows{doubt}. These wrong answers pass the check, so the reward does not show them."
    )


def _on_claims(before: Evaluation, after: Evaluation) -> list[str]:
    """Says it when answers claim less: a claim that is not made cannot be refused."""
    old, new = before["claims_per_answer"], after["claims_per_answer"]
    if new.high >= old.low:
        return []
    return [
        f"Claims an answer fell from {old.value:.2f} to {new.value:.2f}: part of the rise in what the check "
        "accepts is that less is said."
    ]


def _on_abstentions(before: Evaluation, after: Evaluation) -> list[str]:
    if after.figures["abstention_right"] is None or before.figures["abstention_right"] is None:
        return []

    def change(name: str) -> str:
        return f"from {before[name].value:.1%} to {after[name].value:.1%} of {after[name].num_rows}"

    right, wrong = change("abstention_right"), change("abstention_wrong")
    return [f"Where no document answers, abstentions went {right}; where one does, {wrong}."]


def _points(change: Estimate) -> str:
    value, low, high = (100 * share for share in (change.value, change.low, change.high))
    return f"{value:+z.1f} points (95% interval {low:+z.1f} to {high:+z.1f})"


def _check_of(state: ClaimState | None) -> Literal["supported", "refused", "unchecked"]:
    if state in (None, ClaimState.FAILED):
        return "unchecked"
    return "supported" if state is ClaimState.SUPPORTED else "refused"


def _row(label: str, before: Estimate | None, after: Estimate | None, *, is_share: bool = True) -> Row:
    """A share in percent, its change in points; any other figure as a number."""
    change = ""
    if before is not None and after is not None:
        more = after.value - before.value
        change = f"{100 * more:+z.1f} points" if is_share else f"{more:+z.2f}"
    return Row(label, _shown(before, is_share), _shown(after, is_share), change)


def _shown(estimate: Estimate | None, is_share: bool) -> str:
    if estimate is None:
        return "none"
    if is_share:
        return f"{estimate.value:.1%} ({estimate.low * 100:.1f} to {estimate.high * 100:.1f})"
    return f"{estimate.value:z.2f} ({estimate.low:z.2f} to {estimate.high:z.2f})"
