"""`docs/ablations.md` and its plot, from the committed rows alone: no figure in them is written by hand."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from bench.ablations.compare import Finding, Interval, Rows, find, finished, mean_interval, pooled_rate
from bench.ablations.plan import ROOT, Cell, Comparison, Plan
from bench.ablations.results import FOLDER, Figures, Row, read_rows

PAGE, PLOT = ROOT / "docs" / "ablations.md", ROOT / "docs" / "images" / "ablations.svg"
_TEMPLATE = Path(__file__).with_name("page.md.j2")
_FIGURES = {
    "faithful": "faithful",
    "false_accept": "false accepts",
    "checker": "right votes",
    "claims": "questions",
}


def write(plan: Plan) -> None:
    from bench.ablations.plot import draw

    rows = rows_of_today(plan)
    PAGE.write_text(render(plan, rows), encoding="utf-8")
    draw([find(comparison, rows, plan) for comparison in plan.comparisons], PLOT)


def rows_of_today(plan: Plan, *, folder: Path = FOLDER) -> Rows:
    """Every committed row whose settings are still the plan's, by arm and seed."""
    today = {(cell.arm, cell.seed): cell.digest for cell in plan.cells()}
    rows = {arm: read_rows(arm, folder=folder) for arm in plan.arms}
    return {
        arm: {seed: row for seed, row in of_arm.items() if row.settings == today.get((arm, seed))}
        for arm, of_arm in rows.items()
    }


def render(plan: Plan, rows: Rows) -> str:
    """Returns the page; pure."""
    findings = [find(comparison, rows, plan) for comparison in plan.comparisons]
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # Markdown, not HTML
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        plan=plan,
        plot=PLOT.name,
        num_planned=len(list(plan.cells())),
        done=[row for of_arm in rows.values() for row in finished(of_arm)],
        failed=[row for of_arm in rows.values() for row in of_arm.values() if row.failure],
        verdicts=_lines(_verdict(finding) for finding in findings if finding.differences),
        pending=[_pair(finding.comparison) for finding in findings if not finding.differences],
        arms=_lines(_arm(name, finished(rows[name]), plan) for name in plan.arms if finished(rows[name])),
        starts=_lines(_starts(plan, rows)),
    )
    return text.rstrip() + "\n"


def _pair(comparison: Comparison) -> str:
    against = f"`{comparison.against}`" if comparison.against else "its start"
    return f"`{comparison.arm}` - {against}"


def _verdict(finding: Finding) -> tuple[str, ...]:
    comparison = finding.comparison
    more = "more" if comparison.claim == "higher" else "fewer"
    return (
        f"{comparison.question} ({_pair(comparison)})",
        f"{more} {_FIGURES[comparison.figure]} ({comparison.by})",
        _difference(finding),
        finding.verdict,
    )


def _difference(finding: Finding) -> str:
    scale, digits = (1.0, 2) if finding.comparison.figure == "claims" else (100.0, 1)
    if finding.interval is None:
        return "".join(f"{value * scale:+.{digits}f}" for value in finding.differences)
    ends = f"{finding.interval.low * scale:+.{digits}f} to {finding.interval.high * scale:+.{digits}f}"
    return f"{finding.interval.value * scale:+.{digits}f} ({ends})"


def _arm(name: str, rows: Sequence[Row], plan: Plan) -> tuple[str, ...]:
    arm = plan.arms[name]
    steps = f"; {arm.steps} steps" if arm.steps else ""
    seeds = "" if len(rows) == len(plan.seeds) else f"; {len(rows)} of {len(plan.seeds)} seeds"
    head = f"`{name}`: {arm.about}{steps}{seeds}"
    after = [row.after for row in rows if row.after]
    trained = [row.trained for row in rows if row.trained]
    questions = sum(figures.claims for figures in after) / len(after)
    in_training = sum(one.false_accept for one in trained) / len(trained)
    return (head, *_held_out(after), f"{questions:.2f}", f"{in_training:.1%}")


def _starts(plan: Plan, rows: Rows) -> list[tuple[str, ...]]:
    """One line a start and world: what reinforcement began with. More than one model is a flaw to be seen."""
    found: dict[tuple[str, str], list[Row]] = {}
    first: dict[tuple[str, str], str] = {}  # the arm that names the world
    for name, arm in plan.arms.items():
        key = (arm.start, Cell(plan=plan, arm=name, seed=plan.seeds[0]).world)
        first.setdefault(key, name)
        found.setdefault(key, []).extend(finished(rows[name]))
    table: list[tuple[str, ...]] = []
    for key, of_start in found.items():
        measured: dict[int, Figures] = {}
        for row in of_start:  # arms of one start measured it alike, but for how often they asked
            if row.before and (row.before.right or row.seed not in measured):
                measured[row.seed] = row.before
        num_models = len({row.start for row in of_start})
        figures = list(measured.values())
        faithful, *others = _held_out(figures)
        names = (f"`{key[0]}`", f"`{first[key]}`", str(num_models))
        table.append((*names, faithful, *_by_world(figures), *others))
    return table


def _by_world(figures: Sequence[Figures]) -> tuple[str, str, str]:
    """Worlds that all tries get right, some, and none; empty where one answer was asked."""
    several = [one.right for one in figures if one.right]
    num_worlds = sum(sum(right) for right in several)
    if not num_worlds:
        return ("", "", "")
    always, never = sum(right[-1] for right in several), sum(right[0] for right in several)
    sometimes = num_worlds - always - never
    return f"{always / num_worlds:.1%}", f"{sometimes / num_worlds:.1%}", f"{never / num_worlds:.1%}"


def _held_out(figures: Sequence[Figures]) -> tuple[str, str, str]:
    """Faithful answers, false accepts and the Checker's votes; empty where nothing is measured yet."""
    if not figures:
        return ("", "", "")
    accepts = pooled_rate([one.false_accept for one in figures], [one.num_worlds for one in figures])
    faithful = _share([one.faithful_rate for one in figures])
    return faithful, _percent(accepts), _share([one.checker for one in figures])


def _share(values: Sequence[float]) -> str:
    return _percent(mean_interval(values)) if len(values) > 1 else f"{values[0]:.1%}"


def _percent(interval: Interval) -> str:
    low, high = max(0.0, interval.low), min(1.0, interval.high)  # Student's can be wider
    return f"{interval.value:.1%} ({low:.1%} to {high:.1%})"


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
