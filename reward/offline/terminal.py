"""What a person reads in the terminal after an audit, a comparison or a review."""

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reward.offline.agreement import OVERALL, Human, Target
from reward.offline.bootstrap import Interval
from reward.offline.compare import Comparison
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
_WIDE = 114  # columns from which every figure is shown with its interval
_NARROW = 60  # columns below which claims of each kind would leave no room for the words of the states
_MOST_LISTED = 20  # rows that turned, claims judged differently


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the figures of an audit: outcomes, claims and, with human labels, the agreement."""
    figures = summary.figures
    claims = _claims(figures, by_kind=console.width >= _NARROW)
    console.print(Columns([_outcomes(figures), claims], padding=(0, 4)))
    for line in remarks(figures):
        console.print(Text(line, style="dim"))
    if figures.human:
        console.print(Text(), _agreement(figures.human, wide=console.width >= _WIDE))
        console.print(Text(TARGET_NOTE, style="dim"))
        if num_unscored := figures.human[OVERALL].targets[Target.PLAIN].num_unscored:
            said = f"Labelled rows that could not be scored, in no figure above: {num_unscored:,}"
            console.print(Text(said, style="magenta"))
    if summary.num_excluded:
        excluded = ", ".join(f"{n} ({reason})" for reason, n in summary.num_excluded.items())
        console.print(Text(f"Left out of the input: {excluded}", style="dim"))


def print_comparison(comparison: Comparison, console: Console) -> None:
    table = plain_table(f"Compared with {comparison.name}", "outcome", "before", "now", "change")
    for outcome in Outcome:
        before, after = comparison.before[outcome], comparison.after[outcome]
        table.add_row(styled(outcome), f"{before:,}", f"{after:,}", f"{after - before:+,}")
    console.print(Text(), table, *map(Text, _comparison_sentences(comparison)), sep="\n")
    turns = [
        Text.assemble(f"  {printable(turn.id)}: ", styled(turn.before), " \u2192 ", styled(turn.after))
        for turn in comparison.turned
    ]
    _print_first(console, turns)


def print_review(found: ReviewFigures, console: Console) -> None:
    table = plain_table("Audit and person", "audit", *HumanAnswer)
    for state, humans in found.confusion.items():
        if any(humans.values()):
            table.add_row(styled(state), *(f"{humans[answer]:,}" for answer in HumanAnswer))
    lines = [
        f"{found.num_reviewed:,} of {found.num_claims:,} claims reviewed; {found.num_unclear:,} unclear, "
        f"{found.num_failed:,} that the audit could not decide",
        f"Agreement {with_interval(found.agreement, found.agreement_interval)}, Cohen's kappa "
        f"{with_interval(found.kappa, found.kappa_interval)}, over {found.n:,} claims",
    ]
    console.print(table, *map(Text, lines), sep="\n")
    if found.differences:
        console.print(Text(f"\nJudged differently: {len(found.differences):,}", style="bold"))
    differences = [
        Group(
            Text.assemble(
                f"{printable(one.id)}, claim {one.claim.claim.index}: audit ",
                styled(one.claim.state),
                f", person {one.human}",
            ),
            indented(Text(printable(f"{one.claim.claim.answer!r}: {one.claim.claim.question}"), style="dim")),
        )
        for one in found.differences
    ]
    _print_first(console, differences)


def remarks(figures: Figures) -> list[str]:
    """Coverage, and whatever else a reader of the figures must know; one sentence each."""
    share = f" ({figures.uncovered_rate:.1%})" if figures.uncovered_rate is not None else ""
    what = "numbers, names and dates" if figures.has_other_kinds else "numbers"
    lines = [
        f"{what.capitalize()} in the responses: {figures.num_mentions:,}; covered by no claim: "
        f"{figures.num_uncovered:,}{share}, in so many rows: {figures.num_rows_with_uncovered:,}"
    ]
    said = (
        (f"Claims dropped, about {what} that the response does not hold", figures.num_dropped_claims),
        (
            f"Unusable lines of the Proposer, in {figures.malformed_rate:.1%} of the rows",
            figures.num_malformed_claims,
        ),
        ("Rows with documents not read to the end", figures.num_rows_unread),
        ("Claims whose evidence does not hold the consensus", figures.num_unproven),
    )
    return lines + [f"{words}: {count:,}" for words, count in said if count]


def ratio(value: float | None) -> str:
    """A share with three digits, or a dash where it is not defined."""
    return "-" if value is None else f"{value:.3f}"


def with_interval(value: float | None, interval: Interval | None) -> str:
    """A figure and, where there is one, its interval in brackets."""
    return ratio(value) + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else "")


def spoken(name: str) -> str:
    """An enum's value as words."""
    return name.replace("_", " ")


def styled(name: Outcome | ClaimState, extra: str = "") -> Text:
    return Text(name if isinstance(name, Outcome) else spoken(name), style=f"{extra} {STYLES[name]}".strip())


def indented(text: Text, columns: int = 2) -> Padding:
    return Padding(text, (0, 0, 0, columns))


def plain_table(title: str, first: str, *numeric: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    heading = Text(title, style="bold")  # a text, since a string would be read as markup
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")  # a long name takes several lines; no figure is cut
    for name in numeric:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _comparison_sentences(comparison: Comparison) -> list[str]:
    """The paired difference of the refuted rate, the rows of both audits, and other settings, in words."""
    found = comparison.refuted
    rows = (
        f"{comparison.num_pairs:,} rows have the same query and documents, "
        f"{comparison.num_other_answers:,} of them another answer; {len(comparison.turned):,} turned; "
        f"{comparison.num_changed:,} have another query or other documents, {comparison.num_new:,} are new, "
        f"{comparison.num_gone:,} are gone"
    )
    lines = [rows]
    if not comparison.has_same_settings:
        why = "which may be why rows turned: see their summaries"
        lines.append(f"The audits were made with other settings or versions, {why}")
    if found.before is None or found.after is None or found.difference is None:
        return ["No row with the same query and documents was scored in both audits", *lines]
    low_high = f" [{found.interval.low:+.3f}, {found.interval.high:+.3f}]" if found.interval else ""
    difference = (
        f"Refuted of the {found.n:,} rows that both audits scored: {found.before:.1%} before, "
        f"{found.after:.1%} now; difference {found.difference:+.3f}{low_high}; "
        f"{found.num_newly_refuted:,} newly refuted, {found.num_no_longer_refuted:,} no longer"
    )
    return [difference, *lines]


def _print_first(console: Console, entries: Sequence[RenderableType]) -> None:
    for entry in entries[:_MOST_LISTED]:
        console.print(entry)
    if len(entries) > _MOST_LISTED:
        console.print(Text(f"  and {len(entries) - _MOST_LISTED:,} more", style="dim"))


def _outcomes(figures: Figures) -> Table:
    table = plain_table("Outcomes", "outcome", "rows", "share")
    for outcome in Outcome:
        table.add_row(styled(outcome), f"{figures.outcomes[outcome]:,}", f"{figures.rates[outcome]:.1%}")
    table.add_section()
    table.add_row("all", f"{figures.num_rows:,}", "")
    return table


def _claims(figures: Figures, *, by_kind: bool) -> Table:
    """All claims by state; with more kinds than numbers, those of each kind beside them."""
    kinds = figures.claim_kinds if by_kind and figures.has_other_kinds else {}
    table = plain_table("Claims", "state", "claims", "share", *(f"{kind}s" for kind in kinds))
    for state in ClaimState:
        if count := figures.claim_states[state]:
            of_kinds = [f"{states[state]:,}" for states in kinds.values()]
            table.add_row(styled(state), f"{count:,}", f"{count / figures.num_claims:.1%}", *of_kinds)
    table.add_section()
    sums = [f"{sum(states.values()):,}" for states in kinds.values()]
    table.add_row("all", f"{figures.num_claims:,}", "", *sums)
    return table


def _agreement(human: Mapping[str, Human], *, wide: bool) -> Table:
    """Wide tables give every figure its interval; narrow ones leave out counts and give F1 its own."""
    counts = ("n", "marked", "refuted") if wide else ("n",)
    table = plain_table(
        "Agreement with people", "target", *counts, "precision", "recall", "F1", "false alarms"
    )
    for target in Target:
        for group, found in human.items():
            one, alarms = found.targets[target], found.false_alarms
            marked = one.true_positives + one.false_negatives
            refuted = one.true_positives + one.false_positives
            table.add_row(
                Text(printable(f"{target} {group}")),  # which is the input's
                *(f"{count:,}" for count in ((one.n, marked, refuted) if wide else (one.n,))),
                _in_cell(one.precision, one.intervals["precision"], wide),
                _in_cell(one.recall, one.intervals["recall"], wide),
                _in_cell(one.f1, one.intervals["f1"], True),
                _in_cell(alarms.rate, alarms.interval, wide),
            )
        table.add_section()
    return table


def _in_cell(value: float | None, interval: Interval | None, shown: bool) -> Text:
    if interval is None or not shown:
        return Text(ratio(value))
    reach = "\u2013".join(f"{end:.2f}".removeprefix("0") for end in (interval.low, interval.high))
    return Text.assemble(ratio(value), (f" {reach:>8}", "dim"))
