"""What a person reads in the terminal after an audit, a comparison or a review."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reward.offline.agreement import OVERALL, Human, Target
from reward.offline.bootstrap import Interval
from reward.offline.compare import Comparison, PairedDifference
from reward.offline.excerpt import printable
from reward.offline.figures import Figures
from reward.offline.review import HumanAnswer, ReviewFigures
from reward.offline.run import Summary
from reward.types import ClaimState, Outcome

STYLES = {
    Outcome.SUPPORTED: "green",
    Outcome.REFUTED: "red",
    Outcome.NO_CLAIMS: "yellow",
    Outcome.UNSCORED: "magenta",
    ClaimState.SUPPORTED: "green",
    ClaimState.CONTRADICTED: "red",
    ClaimState.NOT_IN_DOCUMENTS: "red",
    ClaimState.NO_CONSENSUS: "magenta",
    ClaimState.FAILED: "dim",
}
TARGET_NOTE = (
    "A row counts as marked when people marked a passage with a digit (plain), with a digit that is no "
    "list number, passage number or word count (cleaned), or anything (any); false alarms are refuted rows "
    "without any mark. "
    "Small figures: 95% of 1,000 resamples of the sources."
)
_BETWEEN = 4  # columns between two tables side by side
_WIDE = 114  # columns from which every figure is shown with its interval
_MOST_TURNED = 10
_MOST_DIFFERENCES = 20


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the figures of an audit: outcomes, claims and, with human labels, the agreement."""
    figures = summary.figures
    parts: list[RenderableType] = [_side_by_side(console, _outcomes(figures), _claims(figures))]
    parts += [Text(line, style="dim") for line in remarks(figures)]
    if figures.human:
        wide = console.width >= _WIDE
        parts += [Text(), _agreement(figures.human, wide=wide), Text(TARGET_NOTE, style="dim")]
        num_unscored = figures.human[OVERALL].targets[Target.PLAIN].num_unscored
        unscored = f"Labelled rows that could not be scored, in no figure above: {num_unscored:,}"
        parts += [Text(unscored, style="magenta")] if num_unscored else []
    excluded = ", ".join(f"{n} ({reason})" for reason, n in summary.num_excluded.items())
    parts += [Text(f"Left out of the input: {excluded}", style="dim")] if excluded else []
    console.print(Group(*parts))


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Prints what changed since another audit."""
    table = plain_table(f"Compared with {comparison.name}", "outcome", "before", "now", "change")
    for outcome in Outcome:
        before, after = comparison.before[outcome], comparison.after[outcome]
        change = f"{after - before:+,}"
        table.add_row(Text(outcome, style=STYLES[outcome]), f"{before:,}", f"{after:,}", change)
    parts: list[RenderableType] = [Text(), table]
    if comparison.refuted is not None:
        parts.append(Text(paired_sentence(comparison.refuted)))
        parts.append(Text(rows_sentence(comparison), style="dim"))
        parts += [
            Text.assemble(
                f"  {printable(turn.id)}: ",
                (turn.before, STYLES[turn.before]),
                " \u2192 ",
                (turn.after, STYLES[turn.after]),
            )
            for turn in comparison.turned[:_MOST_TURNED]
        ]
        if len(comparison.turned) > _MOST_TURNED:
            parts.append(Text(f"  and {len(comparison.turned) - _MOST_TURNED:,} more", style="dim"))
    else:
        parts.append(Text("Only its summary is there, so rows cannot be compared one by one.", style="dim"))
    console.print(Group(*parts))


def print_review(found: ReviewFigures, console: Console) -> None:
    """Prints how an audit agrees with a person, and where it does not."""
    table = plain_table("Audit and person", "audit", *HumanAnswer)
    for state, humans in found.confusion.items():
        if any(humans.values()):
            style = STYLES[state]
            table.add_row(
                Text(spoken(state), style=style), *(f"{humans[answer]:,}" for answer in HumanAnswer)
            )
    lines = [
        f"{found.num_reviewed:,} of {found.num_claims:,} claims reviewed; {found.num_unclear:,} unclear, "
        f"{found.num_failed:,} that the audit could not decide",
        f"Agreement {with_interval(found.agreement, found.agreement_interval)}, Cohen's kappa "
        f"{with_interval(found.kappa, found.kappa_interval)}, over {found.n:,} claims",
    ]
    parts: list[RenderableType] = [table, *(Text(line) for line in lines)]
    if found.differences:
        parts += [Text(), Text(f"Judged differently: {len(found.differences):,}", style="bold")]
    for one in found.differences[:_MOST_DIFFERENCES]:
        state = one.claim.state
        head = Text.assemble(
            f"{printable(one.id)}, claim {one.claim.claim.index}: audit ",
            (spoken(state), STYLES[state]),
            f", person {one.human}",
        )
        said = f"{one.claim.claim.answer!r}: {one.claim.claim.question}"
        parts += [head, Padding(Text(printable(said), style="dim"), (0, 0, 0, 2))]
    left = len(found.differences) - _MOST_DIFFERENCES
    parts += [Text(f"and {left:,} more", style="dim")] if left > 0 else []
    console.print(Group(*parts))


def remarks(figures: Figures) -> list[str]:
    """Coverage, and whatever else a reader of the figures must know; one sentence each."""
    share = f" ({figures.uncovered_rate:.1%})" if figures.uncovered_rate is not None else ""
    what = "numbers, names and dates" if figures.has_other_kinds else "numbers"
    lines = [
        f"{figures.num_numbers:,} {what} in the responses; {figures.num_uncovered:,}{share} covered by no "
        f"claim (rows with one: {figures.num_rows_with_uncovered:,})"
    ]
    said = (
        (f"Claims dropped, about {what} that the response does not hold", figures.num_dropped_claims),
        (f"{what.capitalize()} asked about with their own sentence", figures.num_template_claims),
        (
            f"Unusable lines of the Proposer, in {figures.malformed_rate:.1%} of the rows",
            figures.num_malformed_claims,
        ),
        ("Rows with documents not read to the end", figures.num_rows_unread),
        ("Claims whose evidence does not hold the consensus", figures.num_unproven),
    )
    return lines + [f"{words}: {count:,}" for words, count in said if count]


def paired_sentence(found: PairedDifference) -> str:
    """The paired difference of the refuted rate in words."""
    if found.before is None or found.after is None or found.difference is None:
        return "No row was scored in both audits."
    low_high = f" [{found.interval.low:+.3f}, {found.interval.high:+.3f}]" if found.interval else ""
    return (
        f"Refuted on the same {found.n:,} answers: {found.before:.1%} before, {found.after:.1%} now; "
        f"difference {found.difference:+.3f}{low_high}; {found.num_newly_refuted:,} newly refuted, "
        f"{found.num_no_longer_refuted:,} no longer; McNemar's exact p = {found.p_value:.3g}"
    )


def rows_sentence(comparison: Comparison) -> str:
    """Which rows the two audits share, in words."""
    return (
        f"{comparison.num_same:,} rows are the same, {len(comparison.turned):,} of them turned; "
        f"{comparison.num_changed:,} have another input, {comparison.num_new:,} are new, "
        f"{comparison.num_gone:,} are gone"
    )


def ratio(value: float | None) -> str:
    """A share with three digits, or a dash where it is not defined."""
    return "-" if value is None else f"{value:.3f}"


def with_interval(value: float | None, interval: Interval | None) -> str:
    """A figure and, where there is one, its interval in brackets."""
    return ratio(value) + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else "")


def spoken(name: str) -> str:
    """An enum's value as words."""
    return name.replace("_", " ")


def _side_by_side(console: Console, *tables: Table) -> RenderableType:
    needed = sum(console.measure(table).maximum for table in tables) + _BETWEEN * (len(tables) - 1)
    if console.width < needed:
        return Group(*tables)
    grid = Table.grid(padding=(0, _BETWEEN))
    grid.add_row(*tables)
    return grid


def _outcomes(figures: Figures) -> Table:
    table = plain_table("Outcomes", "outcome", "rows", "share")
    for outcome in Outcome:
        count, share = f"{figures.outcomes[outcome]:,}", f"{figures.rates[outcome]:.1%}"
        table.add_row(Text(outcome, style=STYLES[outcome]), count, share)
    table.add_section()
    table.add_row("all", f"{figures.num_rows:,}", "")
    return table


def _claims(figures: Figures) -> Table:
    """All claims by state; with more kinds than numbers, those of each kind beside them."""
    kinds = figures.claim_kinds if figures.has_other_kinds else {}
    table = plain_table("Claims", "state", "claims", "share", *(f"{kind}s" for kind in kinds))
    for state in ClaimState:
        count = figures.claim_states[state]
        if count:
            share = f"{count / figures.num_claims:.1%}"
            of_kinds = [f"{states[state]:,}" for states in kinds.values()]
            table.add_row(Text(spoken(state), style=STYLES[state]), f"{count:,}", share, *of_kinds)
    table.add_section()
    sums = [f"{sum(states.values()):,}" for states in kinds.values()]
    table.add_row("all", f"{figures.num_claims:,}", "", *sums)
    return table


def _agreement(human: Mapping[str, Human], *, wide: bool) -> Table:
    """Wide tables give every figure its interval; narrow ones leave out counts and give F1 its own."""
    counts = ("n", "marked", "refuted") if wide else ("n",)
    names = (*counts, "precision", "recall", "F1", "false alarms")
    table = plain_table("Agreement with people", "target", *names)
    for target in Target:
        if target is not Target.PLAIN:
            table.add_section()
        for group in sorted(human, key=lambda name: (name == OVERALL, name)):
            table.add_row(f"{target} {group}", *_cells(human[group], target, wide=wide))
    return table


def _cells(found: Human, target: Target, *, wide: bool) -> list[str | Text]:
    one, alarms = found.targets[target], found.false_alarms
    marked, refuted = one.true_positives + one.false_negatives, one.true_positives + one.false_positives
    counts = (one.n, marked, refuted) if wide else (one.n,)
    shown = one.intervals if wide else {"f1": one.intervals["f1"]}
    return [
        *(f"{count:,}" for count in counts),
        _in_cell(one.precision, shown.get("precision")),
        _in_cell(one.recall, shown.get("recall")),
        _in_cell(one.f1, shown["f1"]),
        _in_cell(alarms.rate, alarms.interval if wide else None),
    ]


def _in_cell(value: float | None, interval: Interval | None) -> Text:
    if interval is None:
        return Text(ratio(value))
    reach = "\u2013".join(f"{end:.2f}".removeprefix("0") for end in (interval.low, interval.high))
    return Text.assemble(ratio(value), (f" {reach:>8}", "dim"))


def plain_table(title: str, first: str, *numeric: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    heading = Text(title, style="bold")  # a text, since a string would be read as markup
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numeric:
        table.add_column(name, justify="right", no_wrap=True)
    return table
