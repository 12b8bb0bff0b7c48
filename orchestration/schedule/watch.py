"""What is looked at: digests of data, and verdicts of production answers."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from orchestration.retrain.triggers import DriftSettings
from orchestration.schedule.drift import Drift, Judged, look
from pipeline.artifacts.store import files_of
from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest
from pipeline.evaluate.plan import digest
from reward.offline.files import file_sha256
from reward.offline.inputs import format_of, read_rows
from reward.offline.rows import InputRecord, explain
from reward.types import Outcome


class _VerdictLine(InputRecord):
    """What is read of a verdict; whichever version wrote it."""

    outcome: Outcome
    input_sha256: str = Field(description="Digest of the audited row.")


class Digests:
    """Digests of paths and pointers; a file is read again only if its size or time is another."""

    def __init__(self, pointed: Callable[[str], str | None]) -> None:
        """Args:
        pointed: What a pointer of the artifact store points to.
        """
        self._pointed = pointed
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def of(self, paths: Iterable[Path], pointers: Iterable[str]) -> dict[str, str]:
        """Digests by name; what is not there, or not whole, is left out."""
        found = {str(path): self._path(path) for path in paths}
        found |= {f"pointer {name}": self._pointed(name) for name in pointers}
        return {name: one for name, one in found.items() if one is not None}

    def _path(self, path: Path) -> str | None:
        if path.is_file():
            return self._file(path)
        if (path / MANIFEST_FILE).is_file():
            return Manifest.model_validate_json((path / MANIFEST_FILE).read_bytes()).rows_sha256
        if not path.is_dir() or (path / ROWS_FILE).exists():
            return None  # rows without a manifest are being written
        return digest({name: self._file(file) for name, file in files_of(path).items()})

    def _file(self, path: Path) -> str:
        status = path.stat()
        mark = (status.st_size, status.st_mtime_ns)
        if self._known.get(path, (None, ""))[0] != mark:
            self._known[path] = (mark, file_sha256(path))
        return self._known[path][1]


def changed(now: Mapping[str, str], settled: Mapping[str, str]) -> list[str]:
    """Names of what has another digest than the settled one."""
    return [name for name, one in now.items() if settled.get(name) != one]


def lines_of(folder: Path, patterns: Sequence[str]) -> dict[str, int]:
    """Whole lines of the files of verdicts, by path, in the order of their names."""
    return {str(path): path.read_bytes().count(b"\n") for path in _files(folder, patterns)}


def look_at(
    folder: Path,
    settings: DriftSettings,
    *,
    settled: Mapping[str, int],
    read: Mapping[str, int],
    num_looks: int,
) -> Drift:
    """Looks at the verdicts that no retraining has settled.

    Args:
        folder: From which patterns are seen.
        settings: Of the trigger.
        settled: Lines of each file that are not looked at.
        read: Lines of each file that are there.
        num_looks: Looks made since the last retraining.

    Raises:
        ValueError: a line is no verdict, or a row no answer.
    """
    verdicts = [
        one for path, num in read.items() for one in _verdicts(Path(path), settled.get(path, 0), num)
    ][-settings.window :]
    sources = _sources(folder, settings.answers, {one.input_sha256 for one in verdicts})
    judged = [Judged(one.outcome, sources.get(one.input_sha256, one.input_sha256)) for one in verdicts]
    num_unmatched = sum(one.input_sha256 not in sources for one in verdicts) if settings.answers else 0
    return look(judged, settings, num_looks=num_looks, read=read, num_unmatched=num_unmatched)


def num_new(read: Mapping[str, int], looked: Mapping[str, int]) -> int:
    """Verdicts since the last look; a file that was cut is a new one."""
    return sum(num - (looked.get(path, 0) if looked.get(path, 0) <= num else 0) for path, num in read.items())


def _verdicts(path: Path, first: int, end: int) -> list[_VerdictLine]:
    begin = first if first <= end else 0  # a file that was cut is a new one
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[begin:end], start=begin + 1):
        try:
            found.append(_VerdictLine.model_validate_json(line))
        except ValidationError as error:
            raise ValueError(f"{path}:{number}: no verdict of march audit: {explain(error)}") from error
    return found


def _sources(folder: Path, patterns: Sequence[str], wanted: set[str]) -> dict[str, str]:
    """What each audited row is about, by the row's digest."""
    rows = (row for path in _files(folder, patterns) for row in read_rows(path, format_of(path)))
    return {row.digest: row.cluster for row in rows if row.digest in wanted}


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    names = {name for one in patterns for name in glob.glob(str(folder / one), recursive=True)}
    return [Path(name) for name in sorted(names)]
