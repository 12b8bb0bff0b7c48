"""`OUT/results.json`: what was asked how, and every figure. An evaluation without it is not whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from pipeline.evaluate.averages import MacroAverage, macro_average
from pipeline.evaluate.benchmark import BenchmarkCard, PromptStyle
from pipeline.evaluate.judge_agreement import HUMAN, JudgeAgreement, judge_agreement, label_pairs
from pipeline.evaluate.plan import ITEMS_FILE, RESULTS_FILE, Plan, PlannedBenchmark, digest
from pipeline.evaluate.results import Counts, ItemResult, read_results
from pipeline.evaluate.statistics import OVERALL, Estimate, ItemScores, estimates_by_slice, group_by_slice
from reward.offline.files import file_sha256, replace_file
from reward.types import Record


class BenchmarkFigures(Record):
    """What one benchmark found."""

    card: BenchmarkCard
    source: str
    source_sha256: str | None = Field(description="Of the official file; None of a folder.")
    items_sha256: str = Field(description="Of the items and prompts, as they were read.")
    results_sha256: str = Field(description="Of items.jsonl.")
    style: PromptStyle
    is_judged: bool = Field(description="By a model; else by rule.")
    is_calibration: bool = Field(description="Responses were given: it measures the judge, not the model.")
    estimates: dict[str, dict[str, Estimate]] = Field(description="By slice, then by score.")
    agreement: dict[str, JudgeAgreement] = Field(
        description="Of the judge with people, by slice; where labels are."
    )
    counts: Counts

    @property
    def primary(self) -> Estimate | None:
        """The figure that stands in tables and averages."""
        return self.estimates[OVERALL].get(self.card.primary)


class Manifest(Record):
    """A whole evaluation."""

    model: str
    judge: str | None
    settings: dict[str, JsonValue] = Field(description="Everything that can change a figure.")
    settings_sha256: str
    benchmarks: dict[str, BenchmarkFigures]
    average: MacroAverage | None = Field(description="Over the benchmarks, of their primary scores.")

    @property
    def measured(self) -> dict[str, BenchmarkFigures]:
        """The benchmarks that measure the model."""
        return {name: one for name, one in self.benchmarks.items() if not one.is_calibration}

    @property
    def warnings(self) -> list[str]:
        """What to hold against the figures, in sentences."""
        return [warning for name, one in self.benchmarks.items() for warning in _warnings(name, one)]


def write_results(
    plan: Plan, found: Mapping[str, Sequence[ItemResult]], counts: Mapping[str, Counts]
) -> Manifest:
    """Writes the items, works all figures out, and writes them last.

    Args:
        plan: What was evaluated.
        found: The results, by benchmark.
        counts: What they rest on.
    """
    for name, items in found.items():
        lines = (f"{one.model_dump_json()}\n" for one in items)
        replace_file(plan.job.out / name / ITEMS_FILE, lines)
    manifest = _manifest(plan, found, counts)
    replace_file(plan.job.results_path, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def _manifest(
    plan: Plan, found: Mapping[str, Sequence[ItemResult]], counts: Mapping[str, Counts]
) -> Manifest:
    settings = plan.settings
    benchmarks = {one.name: _figures(plan, one, found[one.name], counts[one.name]) for one in plan.benchmarks}
    measured = [name for name, one in benchmarks.items() if not one.is_calibration]
    primary = {name: benchmarks[name].card.primary for name in measured}
    return Manifest(
        model=plan.job.model.model,
        judge=plan.job.judge.model if plan.job.judge else None,
        settings=settings,
        settings_sha256=digest(settings),
        benchmarks=benchmarks,
        average=macro_average({name: found[name] for name in measured}, primary) if measured else None,
    )


def read_manifest(folder: Path) -> Manifest:
    """Reads the figures of a whole evaluation.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is of another version.
    """
    path = folder / RESULTS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give the folder of an evaluation that is whole")
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: is of another version; evaluate again") from error


def read_all_results(folder: Path, manifest: Manifest) -> dict[str, list[ItemResult]]:
    """The results of every benchmark of an evaluation.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: a file has changed since.
    """
    found = {}
    for name, one in manifest.benchmarks.items():
        path = folder / name / ITEMS_FILE
        found[name] = list(read_results(path))
        if file_sha256(path) != one.results_sha256:
            raise ValueError(f"{path}: has changed since its figures were written; evaluate again")
    return found


def _figures(
    plan: Plan, one: PlannedBenchmark, found: Sequence[ItemResult], counts: Counts
) -> BenchmarkFigures:
    return BenchmarkFigures(
        card=one.benchmark.card,
        source=str(one.source.path),
        source_sha256=one.source_sha256,
        items_sha256=one.sha256,
        results_sha256=file_sha256(plan.job.out / one.name / ITEMS_FILE),
        style=one.style,
        is_judged=one.is_judged,
        is_calibration=one.is_given,
        estimates=estimates_by_slice(found),
        agreement=_agreement(found),
        counts=counts,
    )


def _agreement(found: Sequence[ItemResult]) -> dict[str, JudgeAgreement]:
    """Of the judge with people, for a calibration's items."""
    if not any(HUMAN in one.scores for one in found):
        return {}
    parts: dict[str, Sequence[ItemScores]] = {OVERALL: found, **group_by_slice(found)}
    return {name: judge_agreement(label_pairs(part)) for name, part in parts.items()}


def _warnings(name: str, one: BenchmarkFigures) -> list[str]:
    counts, primary = one.counts, one.primary
    said = [f"{name}: {primary.warning}"] if primary and primary.warning else []
    parts = {
        "answers cut at --max-tokens": counts.num_truncated,
        "answers to prompts that do not fit the model, in no figure": counts.num_too_long,
        "answers that failed, which the same command asks for again": counts.num_failed,
        "judgements that could not be read, in no figure": counts.num_unread,
        "answers without a judgement, which the same command asks for again": counts.num_unjudged,
        "answers whose numbers could not be audited": counts.num_unaudited,
    }
    return said + [f"{name}: {what}: {number:,}" for what, number in parts.items() if number]
