"""The output of an audit is its whole state: which verdicts of an earlier, perhaps interrupted, run count.

Verdicts are appended as they are made, and of two on one row the later one counts. So a kill at any moment
leaves whole lines and at most one torn one, and loses nothing that was scored. A verdict is kept if it was
made from the same row with the same settings; one that could not be scored is kept until another try replaces
it. When every row has its verdict, the lines are put in the order of the input, by rename.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic import Field, ValidationError

from reward.judging.vote import Reason
from reward.offline.files import only_writer
from reward.offline.rows import AuditRow, require_file
from reward.types import Outcome, Verdict

# Bounds of the settings: another try ends in the same way.
FINAL_REASONS = (Reason.RESPONSE_TOO_LONG, Reason.DOCUMENTS_TOO_LONG)
_FIX = "use another --out, or --overwrite to start again"


class AuditedRow(Verdict):
    """One line of the output: a verdict and what it was made from."""

    input_sha256: str = Field(description="Digest of the row: query, documents and response.")
    query_sha256: str = Field(
        default="", description="Digest of query and documents alone; empty in earlier files."
    )
    settings_sha256: str = Field(description="Digest of the settings and the auditor.")

    @classmethod
    def line(cls, verdict: Verdict, input_sha256: str, settings_sha256: str, query_sha256: str = "") -> bytes:
        """The line to write; the verdict is not validated a second time."""
        digests = {"input_sha256": input_sha256, "query_sha256": query_sha256}
        fields = {**dict(verdict), **digests, "settings_sha256": settings_sha256}
        return f"{cls.model_construct(**fields).model_dump_json()}\n".encode()

    @property
    def is_final(self) -> bool:
        """Whether another try would end in the same way."""
        return self.outcome is not Outcome.UNSCORED or self.reason in FINAL_REASONS


def read_verdicts(output: Path) -> Iterator[AuditedRow]:
    """Yields the verdicts of an output, one at a time.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is no verdict.
    """
    require_file(output)
    with output.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield _verdict(f"{output}:{number}", line, "give an output of `march audit`")


class Output:
    """The file of verdicts while one process writes it."""

    def __init__(self, path: Path, file: BinaryIO, digests: Mapping[str, str], settings_sha256: str) -> None:
        """Reads what earlier runs wrote and cuts off a torn last line.

        `file` is `path`, opened to append to; `digests` are those of the rows that it may hold, by id, in the
        order of the input.

        Raises:
            ValueError: it holds something else, or rows of another input or other settings.
        """
        self._path, self._file, self._digests, self._settings_sha256 = path, file, digests, settings_sha256
        self._lines: dict[str, tuple[int, int]] = {}  # start and end in bytes of each row's verdict, by id
        self._unscored: set[str] = set()
        self._end = 0
        with path.open("rb") as written:
            for number, line in enumerate(written, start=1):
                if line.endswith(b"\n"):
                    row = _checked(f"{path}:{number}", line, digests, settings_sha256)
                    self._note(row.id, line, is_final=row.is_final)
        if path.stat().st_size > self._end:
            file.truncate(self._end)

    def kept(self, *, retry_unscored: bool) -> set[str]:
        """The ids of the rows that need no audit."""
        return self._lines.keys() - (self._unscored if retry_unscored else set())

    def append(self, row: AuditRow, verdict: Verdict) -> None:
        line = AuditedRow.line(verdict, row.digest, self._settings_sha256, row.query_digest)
        self._file.write(line)
        self._file.flush()
        self._note(row.query.id, line)

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Makes the file one line a row in the order of the input; it has no other writer meanwhile."""
        os.fsync(self._file.fileno())
        places = [self._lines[row_id] for row_id in self._digests]
        if all(start == end for (start, _), (_, end) in zip(places, [(0, 0), *places], strict=False)):
            yield
            return
        temporary = self._path.with_name(f"{self._path.name}.tmp")
        with only_writer(temporary) as file, self._path.open("rb") as written:
            file.truncate(0)
            try:
                for start, end in places:
                    written.seek(start)
                    file.write(written.read(end - start))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                temporary.unlink()
                raise
            os.replace(temporary, self._path)
            yield

    def _note(self, row_id: str, line: bytes, *, is_final: bool = True) -> None:
        self._lines[row_id] = (self._end, self._end + len(line))
        self._end += len(line)
        (self._unscored.discard if is_final else self._unscored.add)(row_id)


def _checked(place: str, text: bytes, digests: Mapping[str, str], settings_sha256: str) -> AuditedRow:
    row = _verdict(place, text, _FIX)
    if row.settings_sha256 != settings_sha256:
        raise ValueError(f"{place}: row {row.id!r} was audited with other settings; {_FIX}")
    if row.id not in digests:
        raise ValueError(f"{place}: row {row.id!r} is not among the input's rows (or beyond --limit); {_FIX}")
    if row.input_sha256 != digests[row.id]:
        raise ValueError(f"{place}: row {row.id!r} has changed in the input since it was audited; {_FIX}")
    return row


def _verdict(place: str, line: bytes, fix: str) -> AuditedRow:
    try:
        return AuditedRow.model_validate_json(line)
    except ValidationError as error:
        raise ValueError(f"{place}: is not a verdict of this version; {fix}") from error
