"""What an evaluation found, as gates, comparisons, lineage and MLflow read it, without Inspect.

OUT/BENCHMARK/items.jsonl    one item a line: its scores, its generations, their judgements and audits
OUT/results.json             last: what was asked how, and every figure; an evaluation without it is not whole
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from pipeline.evaluate.benchmark import BenchmarkCard, PromptStyle
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.plan import GENERATING, ITEMS_FILE, RESULTS_FILE, PlannedBenchmark, Stage
from pipeline.settings.tree import flatten
from pipeline.statistics import OVERALL, Estimate, ItemScores, MacroAverage, by_slice, macro_average
from reward.offline.files import file_sha256, replace_file
from reward.offline.rows import read_records
from reward.provenance import json_sha256
from reward.types import Record, Verdict


class JudgedGeneration(Record):
    prompt: str = Field(description="Name of the prompt.")
    text: str
    judgement: Judgement | None = Field(default=None, description="None where there is none to be read.")
    verdict: Verdict | None = Field(default=None, description="Of the audit of its numbers.")


class ItemResult(ItemScores):
    """One item's scores and what they rest on."""

    sha256: str = Field(default="", description="Digest of the item, as it was asked.")
    generations: tuple[JudgedGeneration, ...] = ()


class Counts(Record):
    """What was asked of a benchmark's items, and what went wrong; nothing of it is a score."""

    num_items: int = 0
    num_generations: int = 0
    num_truncated: int = Field(default=0, description="answers cut at generation.max_tokens")
    num_too_long: int = Field(default=0, description="answers to prompts that do not fit, in no figure")
    num_unfinished: int = Field(default=0, description="thoughts cut before an answer, in no figure")
    num_failed: int = Field(default=0, description="failed answers, which the same command asks for again")
    num_unread: int = Field(default=0, description="judgements that could not be read, in no figure")
    num_unjudged: int = Field(
        default=0, description="failed judgements, which the same command asks for again"
    )
    num_unaudited: int = Field(default=0, description="answers whose numbers could not be audited")

    @property
    def warnings(self) -> list[str]:
        """What is in no figure, or only in part."""
        counts = ((field.description, getattr(self, name)) for name, field in Counts.model_fields.items())
        return [f"{description}: {n:,}" for description, n in counts if description and n]

    @property
    def num_asked(self) -> int:
        """Answers that were asked for, those in no figure among them."""
        return self.num_generations + self.num_lost

    @property
    def num_lost(self) -> int:
        """Answers in no figure."""
        return self.num_failed + self.num_too_long + self.num_unfinished


class BenchmarkFigures(Record):
    card: BenchmarkCard
    source: str
    items_sha256: str = Field(description="Of the items and prompts, as they were read.")
    results_sha256: str = Field(description="Of items.jsonl.")
    style: PromptStyle
    is_judged: bool = Field(description="By a model; else by rule.")
    is_calibration: bool = Field(description="Responses were given: it measures the judge, not the model.")
    estimates: dict[str, dict[str, Estimate]] = Field(description="By slice, then by score.")
    counts: Counts

    @property
    def primary(self) -> Estimate | None:
        """The figure that is in tables and averages."""
        return self.estimates[OVERALL].get(self.card.primary)

    @property
    def missing(self) -> dict[str, float]:
        """Shares of the answers, and of their judgements and audits, that are in no figure."""
        counts, unjudged = self.counts, self.estimates[OVERALL].get("unjudged")  # by models and by rules
        answered = max(counts.num_generations, 1)
        by_count = (counts.num_unread + counts.num_unjudged) / answered
        return {
            "answers": counts.num_lost / max(counts.num_asked, 1),
            "judgements": by_count if unjudged is None else unjudged.value or 0.0,
            "audits": counts.num_unaudited / answered,
        }


class Manifest(Record):
    """A whole evaluation."""

    model: str
    judge: str | None
    settings: dict[str, JsonValue] = Field(description="Everything that can change a figure.")
    settings_sha256: str
    style: PromptStyle | None = Field(default=None, description="As asked for; some benchmarks have but one.")
    benchmarks: dict[str, BenchmarkFigures]
    average: MacroAverage | None = Field(description="Over the benchmarks, of their primary scores.")

    @property
    def measured(self) -> dict[str, BenchmarkFigures]:
        """The benchmarks that measure the model."""
        return {name: one for name, one in self.benchmarks.items() if not one.is_calibration}

    @property
    def warnings(self) -> list[str]:
        """What to hold against the figures, in sentences."""
        found = []
        for name, one in self.benchmarks.items():
            found += [f"{name}: {warning}" for warning in (*_doubts(one.primary), *one.counts.warnings)]
            if self.style not in (None, one.style):
                found.append(f"{name}: is asked {one.style} alone, and not {self.style}")
        return found


def _doubts(primary: Estimate | None) -> Iterator[str]:
    """What to hold against an interval, or why there is none."""
    if primary is not None and primary.num_clusters == 0:
        yield "no item is scored"
    elif primary is not None and primary.num_clusters == 1:
        yield "all items are of one document, so there is no interval"
    elif primary is not None and primary.warning:
        yield primary.warning


def write_results(
    planned: Sequence[PlannedBenchmark], found: Mapping[str, tuple[Sequence[ItemResult], Counts]]
) -> Manifest:
    """Writes the items of each benchmark, works all figures out, and writes them last."""
    job = planned[0].job
    settings = job.settings(is_judged=any(one.is_judged for one in planned))
    benchmarks = {one.name: _write_items(one, *found[one.name]) for one in planned}
    primary = {name: one.primary for name, one in benchmarks.items() if not one.is_calibration}
    manifest = Manifest(
        model=job.model.model,
        judge=job.judge.model if job.judge else None,
        settings=settings,
        style=job.style,
        settings_sha256=json_sha256([settings]),
        benchmarks=benchmarks,
        average=macro_average(primary) if primary else None,
    )
    replace_file(job.results_path, manifest.model_dump_json(indent=2) + "\n")
    return manifest


def refuse_other(planned: Sequence[PlannedBenchmark]) -> None:
    """Raises `ValueError` where the folder has the figures of another evaluation, which would be replaced.

    Another limit or release is the same evaluation, and figures that cannot be read are nobody's.
    """
    path = planned[0].job.results_path
    try:
        before = read_manifest(path.parent)
    except (FileNotFoundError, ValueError):
        return
    if differs := next(_differences(planned, before), None):
        fix = "use another --out, or remove that file: the logs stay, and its own command writes it again"
        raise ValueError(f"--out: {path} is of another evaluation: {differs}; {fix}")


def _differences(planned: Sequence[PlannedBenchmark], before: Manifest) -> Iterator[str]:
    job, here = planned[0].job, {one.name: one for one in planned}
    for name, one in before.benchmarks.items():
        if name not in here:
            yield f"it has {name}, which is not asked now"
        elif here[name].style != one.style:
            yield f"{name} is asked {one.style} there and {here[name].style} here"
        elif here[name].sha256(here[name].items[: one.counts.num_items]) != one.items_sha256:
            yield f"{name} has other rows or prompts there"
    settings = job.settings(is_judged=any(one.is_judged for one in before.benchmarks.values()))
    names = {"model", *GENERATING} if job.only is Stage.GENERATE else settings.keys() - {"limit", "version"}
    if job.weights_sha256 is not None:  # their folder may have been moved
        names -= {"model"}
    now, then = (flatten({name: one.get(name) for name in names}) for one in (settings, before.settings))
    for key in sorted(now.keys() | then.keys()):
        if now.get(key) != then.get(key):
            yield f"{key} is {then.get(key)!s:.60} there and {now.get(key)!s:.60} here"


def _write_items(one: PlannedBenchmark, items: Sequence[ItemResult], counts: Counts) -> BenchmarkFigures:
    path = one.job.out / one.name / ITEMS_FILE
    replace_file(path, (f"{item.model_dump_json()}\n" for item in items))
    return BenchmarkFigures(
        card=one.benchmark.card,
        source=str(one.path),
        items_sha256=one.sha256(one.asked),
        results_sha256=file_sha256(path),
        style=one.style,
        is_judged=one.is_judged,
        is_calibration=one.benchmark.is_given,
        estimates={name: one.benchmark.estimates(part) for name, part in by_slice(items).items()},
        counts=counts,
    )


def read_manifest(folder: Path) -> Manifest:
    """The figures of a whole evaluation; raises `FileNotFoundError`, or `ValueError` of another version's."""
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
        ValueError: a file has changed since, or is of another version.
    """
    found = {}
    for name, one in manifest.benchmarks.items():
        path = folder / name / ITEMS_FILE
        found[name] = [item for _, item in read_records(path, ItemResult)]
        if file_sha256(path) != one.results_sha256:
            raise ValueError(f"{path}: has changed since its figures were written; evaluate again")
    return found
