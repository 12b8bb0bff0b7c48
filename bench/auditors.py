"""The audit without a model beside a model's own, on the same answers with a known truth.

    python -m bench auditors --data RUN/evaluation_before.json [--data RUN/evaluation_after.json]

Reads what `march demo` measured on a world: a model's answers, its own errors among them, and the verdict of
the audit that it does itself. The same answers are looked up. Counted are answers that claim something: of
those with something wrong in them, and of the others, how many each audit accepts. A lookup cannot see a true
number in the wrong place; `caught` is how many of the wrong answers that it accepts the model refutes. A run
with `audit.refute_by_lookup` has both in the model's verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import write_result
from pipeline.demo.evaluate import rows_of
from pipeline.demo.evaluation import Evaluation, rate
from reward.lexical.audit import lexical_audit
from reward.types import Outcome


class Audited(NamedTuple):
    """One answer, and what both audits say of it."""

    is_wrong: bool
    by_model: Outcome
    by_lookup: Outcome


def run(files: Sequence[Path] = ()) -> None:
    if not files:
        print("auditors: left out; name what a demo measured: --data RUN/evaluation_before.json")
        return
    found: dict[str, Any] = {}
    for file in files:
        evaluation = Evaluation.model_validate_json(file.read_text(encoding="utf-8"))
        found[file.stem] = figures(list(audited(evaluation)))
        print(file.stem, found[file.stem])
    write_result("auditors", samples_s={}, figures=found, data=[f"RUN/{file.name}" for file in files])


def audited(evaluation: Evaluation) -> Iterator[Audited]:
    """The answers that claim something, with the verdicts of both audits."""
    rows = {row.query.id: row.query for row in rows_of(evaluation.setup)}
    for answer in evaluation.answers:
        verdict = lexical_audit(rows[answer.query_id], answer.response, evaluation.setup.audit)
        if verdict.outcome is not Outcome.NO_CLAIMS:
            yield Audited(not answer.faithful, answer.outcome, verdict.outcome)


def figures(answers: Sequence[Audited]) -> dict[str, Any]:
    """Shares with their 95% intervals (Wilson), by name; a share of nothing is left out."""
    wrong = [one for one in answers if one.is_wrong]
    right = [one for one in answers if not one.is_wrong]
    missed = [one for one in wrong if one.by_lookup is Outcome.SUPPORTED]

    def share(of: Sequence[Audited], holds: Callable[[Audited], bool]) -> dict[str, Any] | None:
        return rate([holds(one) for one in of]).model_dump(exclude_none=True) if of else None

    shares = {
        "wrong_accepted_by_model": share(wrong, lambda one: one.by_model is Outcome.SUPPORTED),
        "wrong_accepted_by_lookup": share(wrong, lambda one: one.by_lookup is Outcome.SUPPORTED),
        "right_accepted_by_model": share(right, lambda one: one.by_model is Outcome.SUPPORTED),
        "right_accepted_by_lookup": share(right, lambda one: one.by_lookup is Outcome.SUPPORTED),
        "caught": share(missed, lambda one: one.by_model is Outcome.REFUTED),
    }
    return {name: one for name, one in shares.items() if one is not None}
