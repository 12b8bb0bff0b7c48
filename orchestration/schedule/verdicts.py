"""The verdicts of production answers that no retraining has settled, and the looks at them.

Which lines are settled is what the last retraining recorded: lines by file, for the last files by name. So
files that are appended to, and new files whose names come later (one a day), are read from where it was.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from orchestration.retrain.triggers import DriftSettings
from orchestration.schedule.drift import Drift, DriftState, Judged, look
from reward.offline.inputs import format_of, read_rows
from reward.offline.rows import InputRecord, explain
from reward.types import Outcome

NUM_RECORDED = 50  # files; those with earlier names count as settled. A tag of MLflow holds no more.


class _VerdictLine(InputRecord):
    """What is read of a verdict; whichever version wrote it."""

    outcome: Outcome
    input_sha256: str = Field(description="Digest of the audited row.")


def lines_of(folder: Path, patterns: Sequence[str]) -> dict[str, int]:
    """Whole lines of the files of verdicts, by path as seen from the folder, in the order of names."""
    return {name: (folder / name).read_bytes().count(b"\n") for name in _files(folder, patterns)}


def recorded(lines: Mapping[str, int]) -> dict[str, int]:
    """What a retraining records of them."""
    return {name: lines[name] for name in sorted(lines)[-NUM_RECORDED:]}


def look_at(
    folder: Path, settings: DriftSettings, *, settled: Mapping[str, int], lines: Mapping[str, int]
) -> Drift:
    """Makes every look that the new verdicts allow, one at each `min_answers`.

    The same verdicts give the same looks, so it does not matter how often this is called.

    Args:
        folder: From which patterns are seen.
        settings: Of the trigger.
        settled: Lines of each file that are not looked at.
        lines: Lines of each file that are there.

    Returns:
        The first look that found drift, else the last one.

    Raises:
        ValueError: a line is no verdict, or a row no answer.
        OSError: a file cannot be read.
    """
    verdicts = [
        one
        for name, num in lines.items()
        for one in _verdicts(folder / name, _first(name, num, settled), num)
    ]
    sources = _sources(folder, settings.answers, {one.input_sha256 for one in verdicts})
    judged = [Judged(one.outcome, sources.get(one.input_sha256, one.input_sha256)) for one in verdicts]
    found = look(judged, settings, num_looks=0) if len(judged) < settings.min_answers else None
    for number, end in enumerate(range(settings.min_answers, len(judged) + 1, settings.min_answers)):
        found = look(judged[max(0, end - settings.window) : end], settings, num_looks=number)
        if found.state is DriftState.DRIFTED:
            break
    assert found is not None, "there is a look for every number of verdicts"
    num_unmatched = sum(one.input_sha256 not in sources for one in verdicts) if settings.answers else 0
    return found.model_copy(update={"num_new": len(verdicts), "num_unmatched": num_unmatched})


def _first(name: str, num: int, settled: Mapping[str, int]) -> int:
    """The first line that is not settled; a file that was cut is a new one."""
    if name in settled:
        return settled[name] if settled[name] <= num else 0
    return num if len(settled) == NUM_RECORDED and name < min(settled) else 0


def _verdicts(path: Path, first: int, end: int) -> list[_VerdictLine]:
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[first:end], start=first + 1):
        try:
            found.append(_VerdictLine.model_validate_json(line))
        except ValidationError as error:
            raise ValueError(f"{path}:{number}: no verdict of march audit: {explain(error)}") from error
    return found


def _sources(folder: Path, patterns: Sequence[str], wanted: set[str]) -> dict[str, str]:
    """What each audited row is about, by the row's digest."""
    paths = [folder / name for name in _files(folder, patterns)]
    rows = (row for path in paths for row in read_rows(path, format_of(path)))
    return {row.digest: row.cluster for row in rows if row.digest in wanted}


def _files(folder: Path, patterns: Sequence[str]) -> list[str]:
    return sorted({name for one in patterns for name in glob.glob(one, root_dir=folder, recursive=True)})
