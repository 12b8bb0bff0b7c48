"""Which verdicts of an earlier, perhaps interrupted, audit still stand.

Verdicts are appended to the output in the order of the input, so a kill leaves a prefix and at most one torn
line. A verdict stands if it is scored and was made from the same row with the same settings. The standing
prefix stays where it is; standing verdicts behind the first gap (a row that could not be scored) are set
aside in `OUT.kept` before the output is cut, and are copied back in their turn. So a kill at any moment loses
nothing that was scored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field, ValidationError

from reward.judging.vote import Reason
from reward.offline.rows import require_file
from reward.types import Outcome, Verdict

# Bounds of the settings: another try ends alike.
FINAL_REASONS = (Reason.RESPONSE_TOO_LONG, Reason.DOCUMENTS_TOO_LONG)
_MEND = "use another --out, or --overwrite to start again"


class AuditedRow(Verdict):
    """One line of the output: a verdict and what it was made from."""

    input_sha256: str = Field(description="Digest of the row: query, documents and response.")
    settings_sha256: str = Field(description="Digest of the settings and the auditor.")

    @classmethod
    def line(cls, verdict: Verdict, input_sha256: str, settings_sha256: str) -> bytes:
        """The line to write; the verdict is not validated a second time."""
        fields = {**dict(verdict), "input_sha256": input_sha256, "settings_sha256": settings_sha256}
        return f"{cls.model_construct(**fields).model_dump_json()}\n".encode()


@dataclass(frozen=True)
class PlannedRow:
    """One row that the output must hold."""

    id: str
    digest: str


@dataclass(frozen=True)
class Line:
    """Where a verdict is written."""

    path: Path
    offset: int  # bytes
    size: int  # bytes, the line's end included
    id: str
    scored: bool

    def read(self) -> bytes:
        """The line."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


@dataclass(frozen=True)
class Standing:
    """What is left to use of earlier runs."""

    num_prefix: int  # rows at the head of the output that stay in place
    prefix_size: int  # their bytes
    aside: Mapping[str, Line]  # standing verdicts of later rows, by id

    @property
    def num_rows(self) -> int:
        """All rows that need no audit."""
        return self.num_prefix + len(self.aside)


def take_stock(
    output: Path, plan: Sequence[PlannedRow], *, settings_sha256: str, retry_unscored: bool
) -> Standing:
    """Reads what earlier runs wrote and sets aside what stands out of order; leaves the output as it is.

    Args:
        output: The verdicts; need not exist.
        plan: The rows that the output must hold, in order.
        settings_sha256: Digest of the settings that its verdicts must have.
        retry_unscored: Whether another try can score a row that could not be scored.

    Raises:
        ValueError: the output holds something else, or rows of another input or other settings.
    """
    digests = {row.id: row.digest for row in plan}
    found = [
        [line for line in _lines(path, digests, settings_sha256) if line.scored or not retry_unscored]
        for path in (kept_path(output), output)
    ]
    lines, written = {line.id: line for line in found[0]}, found[1]
    num_prefix = prefix_size = 0
    for row, line in zip(plan, written, strict=False):
        if (line.id, line.offset) != (row.id, prefix_size):
            break
        num_prefix, prefix_size = num_prefix + 1, prefix_size + line.size
    lines |= {line.id: line for line in written}
    later = [lines[row.id] for row in plan[num_prefix:] if row.id in lines]
    return Standing(num_prefix, prefix_size, _set_aside(kept_path(output), later))


def read_verdicts(output: Path) -> Iterator[AuditedRow]:
    """Yields the verdicts of an output, one at a time.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is no verdict.
    """
    require_file(output)
    with output.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield AuditedRow.model_validate_json(line)
            except ValidationError as error:
                raise ValueError(
                    f"{output}:{number}: is not a verdict of this version; give an output of `march audit`"
                ) from error


def kept_path(output: Path) -> Path:
    """Where verdicts are set aside."""
    return output.with_name(f"{output.name}.kept")


def _lines(path: Path, digests: Mapping[str, str], settings_sha256: str) -> Iterator[Line]:
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if not text.endswith(b"\n"):
                return  # torn by a kill
            row = _checked(f"{path}:{number}", text, digests, settings_sha256)
            scored = row.outcome is not Outcome.UNSCORED or row.reason in FINAL_REASONS
            yield Line(path, offset, len(text), row.id, scored)
            offset += len(text)


def _checked(place: str, text: bytes, digests: Mapping[str, str], settings_sha256: str) -> AuditedRow:
    try:
        row = AuditedRow.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{place}: is not a verdict that this command wrote; {_MEND}") from error
    if row.settings_sha256 != settings_sha256:
        raise ValueError(f"{place}: row {row.id!r} was audited with other settings; {_MEND}")
    if row.id not in digests:
        raise ValueError(
            f"{place}: row {row.id!r} is not among the input's rows (or beyond --limit); {_MEND}"
        )
    if row.input_sha256 != digests[row.id]:
        raise ValueError(f"{place}: row {row.id!r} has changed in the input since it was audited; {_MEND}")
    return row


def _set_aside(path: Path, lines: Sequence[Line]) -> dict[str, Line]:
    if not lines:
        return {}
    aside: dict[str, Line] = {}
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        for line in lines:
            aside[line.id] = replace(line, path=path, offset=file.tell())
            file.write(line.read())
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return aside
