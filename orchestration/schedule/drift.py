"""Whether production answers are known to be unfaithful more often than allowed, by looks at their verdicts.

The figure is the share of refuted answers among those that were scored; failed audits are counted apart, and
too many of them make a look say nothing. It is compared by a lower bound, not by itself: Clopper and
Pearson's, for as many answers as the clustered ones are worth (Korn and Graubard 1998, Survey Methodology
24:193, with the degrees of freedom of the clusters), since answers about one source share its difficulty.

Look k between two retrainings is made at alpha / (k (k + 1)), which sums to alpha: many looks do not make a
false start likelier. There is one at every `min_answers` verdicts that no retraining has settled.

Which lines are settled is what the last retraining recorded: lines by file, for the last files by name. So
the last file may be appended to, and there may be new files whose names come later (one a day). Files that
grow beside later ones would put other answers into looks that were made: each would be one more look.
"""

import glob
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path

from pydantic import Field, ValidationError

from orchestration.retrain.triggers import DriftSettings
from reward.offline.inputs import format_of, read_rows
from reward.offline.rows import InputRecord, explain
from reward.types import Outcome, Record

_BLOCK = 1 << 20  # bytes that are read at once
NUM_RECORDED = 50  # files; those with earlier names count as settled. A tag of MLflow holds no more.


class DriftState(StrEnum):
    TOO_FEW = "too few answers"
    TOO_MANY_UNSCORED = "too many unscored"
    WITHIN = "not shown to drift"
    DRIFTED = "drifted"


class Drift(Record):
    state: DriftState
    num_scored: int
    num_refuted: int
    num_no_claims: int = Field(description="Scored answers without a number; they count as not refuted.")
    num_unscored: int = Field(description="Failed audits; in no share.")
    num_documents: int = Field(description="Sources of the scored answers.")
    num_unmatched: int = Field(default=0, description="Verdicts whose answer was not found.")
    num_new: int = Field(default=0, description="Verdicts that no retraining has settled.")
    low: float | None = Field(default=None, description="Lower bound of the share; None: no look was spent.")
    alpha: float | None = Field(default=None, description="Of this look.")
    allowed: float = Field(description="The share that is allowed.")

    @property
    def rate(self) -> float | None:
        """Share of refuted answers; None without any."""
        return self.num_refuted / self.num_scored if self.num_scored else None

    def __str__(self) -> str:
        if self.rate is None:
            return f"{self.state}: no scored answers"
        bound = "" if self.low is None else f", known to be {self.low:.1%} or more"
        unscored = f"; {self.num_unscored:,} unscored apart" if self.num_unscored else ""
        return (
            f"{self.state}: {self.rate:.1%} of {self.num_scored:,} answers refuted{bound}, "
            f"{self.allowed:.1%} allowed{unscored}"
        )


class _VerdictLine(InputRecord):
    """What is read of a verdict; whichever version wrote it."""

    outcome: Outcome
    input_sha256: str = Field(description="Digest of the audited row.")


@dataclass(frozen=True)
class Judged:
    """One answer's verdict, and what the answer is about."""

    outcome: Outcome
    source: str


@dataclass(frozen=True)
class Tally:
    """Answers about one source."""

    num_refuted: int
    num_scored: int


def look(answers: Collection[Judged], settings: DriftSettings, *, num_looks: int) -> Drift:
    """Looks at verdicts; `num_looks` were made since the last retraining, before this one."""
    outcomes = [one.outcome for one in answers]
    tallies = _tallies(answers)
    num_unscored = outcomes.count(Outcome.UNSCORED)
    alpha = look_alpha(settings, num_looks)
    state, low = DriftState.WITHIN, None
    if len(answers) - num_unscored < settings.min_answers or len(tallies) < settings.min_documents:
        state = DriftState.TOO_FEW
    if num_unscored > settings.max_unscored * len(answers):
        state = DriftState.TOO_MANY_UNSCORED
    if state is DriftState.WITHIN:
        low = lower_bound(tallies, alpha)
        state = DriftState.DRIFTED if low > settings.max_unfaithful else state
    return Drift(
        state=state,
        num_scored=len(answers) - num_unscored,
        num_refuted=outcomes.count(Outcome.REFUTED),
        num_no_claims=outcomes.count(Outcome.NO_CLAIMS),
        num_unscored=num_unscored,
        num_documents=len(tallies),
        low=low,
        alpha=None if low is None else alpha,
        allowed=settings.max_unfaithful,
    )


def look_alpha(settings: DriftSettings, num_looks: int) -> float:
    """The share of alpha that the next look has; all shares together are alpha."""
    return settings.alpha / ((num_looks + 1) * (num_looks + 2))


def lower_bound(tallies: Sequence[Tally], alpha: float) -> float:
    """One-sided lower bound, at `alpha`, of the share of refuted answers, by source (two or more)."""
    from scipy.special import betaincinv

    num_scored = sum(one.num_scored for one in tallies)
    rate = sum(one.num_refuted for one in tallies) / num_scored
    if rate == 0:
        return 0.0
    size = _effective_size(tallies, rate, num_scored)
    refuted = rate * size
    return float(betaincinv(refuted, size - refuted + 1, alpha))


def _effective_size(tallies: Sequence[Tally], rate: float, num_scored: int) -> float:
    """How many independent answers tell as much; at most as many as there are, at least the sources' number
    where the answers of each are alike."""
    from scipy.special import stdtrit

    num_sources = len(tallies)
    spread = sum((one.num_refuted - rate * one.num_scored) ** 2 for one in tallies)
    variance = spread * num_sources / (num_sources - 1) / num_scored**2
    if not variance:
        return float(num_sources)
    size = rate * (1 - rate) / variance
    few = stdtrit(num_scored - 1, 0.975) / stdtrit(num_sources - 1, 0.975)
    return float(min(num_scored, size * few**2))


def _tallies(answers: Iterable[Judged]) -> list[Tally]:
    sources: dict[str, list[bool]] = {}
    for one in answers:
        if one.outcome is not Outcome.UNSCORED:
            sources.setdefault(one.source, []).append(one.outcome is Outcome.REFUTED)
    return [Tally(sum(found), len(found)) for found in sources.values()]


def lines_of(folder: Path, patterns: Sequence[str]) -> dict[str, int]:
    """Whole lines of the files of verdicts, by path as seen from the folder, in the order of names."""
    return {name: _num_lines(folder / name) for name in _files(folder, patterns)}


def _num_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, _BLOCK), b""))


def recorded(lines: Mapping[str, int]) -> dict[str, int]:
    return {name: lines[name] for name in sorted(lines)[-NUM_RECORDED:]}


def look_at(
    folder: Path, settings: DriftSettings, *, settled: Mapping[str, int], lines: Mapping[str, int]
) -> Drift:
    """Makes every look that the new verdicts allow, one at each `min_answers`.

    The same verdicts give the same looks, so it does not matter how often this is called. Of the lines of
    each file, settled ones are not looked at. Returns the first look that found drift, else the last one.

    Raises:
        ValueError, OSError: a line is no verdict, a row no answer, a file cannot be read, or one has grown
            beside a later one.
    """
    for name in sorted(settled)[:-1]:
        if lines.get(name, 0) > settled[name]:
            raise ValueError(
                f"{name}: has grown since {max(settled)} was there, so looks would be made again with other "
                "answers; append to the last file by name alone, or write new ones"
            )

    def unsettled() -> Iterator[_VerdictLine]:
        for name, num in lines.items():
            yield from _verdicts(folder / name, _first(name, num, settled), num)

    wanted = {one.input_sha256 for one in unsettled()} if settings.answers else set[str]()
    sources = _sources(folder, settings.answers, wanted)
    newest = deque[Judged](maxlen=settings.window)  # a year's verdicts would fill the memory
    found, num_new, num_unmatched = None, 0, 0
    for num_new, one in enumerate(unsettled(), start=1):
        digest = one.input_sha256
        num_unmatched += bool(settings.answers) and digest not in sources
        newest.append(Judged(one.outcome, sources.get(digest, digest)))
        is_open = found is None or found.state is not DriftState.DRIFTED
        if is_open and num_new % settings.min_answers == 0:
            found = look(newest, settings, num_looks=num_new // settings.min_answers - 1)
    found = found or look(newest, settings, num_looks=0)
    return found.model_copy(update={"num_new": num_new, "num_unmatched": num_unmatched})


def _first(name: str, num: int, settled: Mapping[str, int]) -> int:
    """The first line that is not settled; a file that was cut is a new one."""
    if name in settled:
        return settled[name] if settled[name] <= num else 0
    return num if len(settled) == NUM_RECORDED and name < min(settled) else 0


def _verdicts(path: Path, first: int, end: int) -> Iterator[_VerdictLine]:
    with path.open("rb") as file:
        for number, line in enumerate(islice(file, first, end), start=first + 1):
            try:
                yield _VerdictLine.model_validate_json(line)
            except ValidationError as error:
                raise ValueError(f"{path}:{number}: no verdict of march audit: {explain(error)}") from error


def _sources(folder: Path, patterns: Sequence[str], wanted: set[str]) -> dict[str, str]:
    """What each audited row is about, by the row's digest."""
    paths = [folder / name for name in _files(folder, patterns)]
    rows = (row for path in paths for row in read_rows(path, format_of(path)))
    return {row.digest: row.cluster for row in rows if row.digest in wanted}


def _files(folder: Path, patterns: Sequence[str]) -> list[str]:
    return sorted({name for one in patterns for name in glob.glob(one, root_dir=folder, recursive=True)})
