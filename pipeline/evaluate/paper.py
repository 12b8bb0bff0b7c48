"""The paper's tables beside an evaluation: the same lines, and our figures in a column of their own.

Its figures come from other judges, prompts and selections of items, so they are shown as data with their
source (`paper.yaml`), are not subtracted from ours, and have no common column with them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pipeline.evaluate.manifest import Manifest
from pipeline.evaluate.statistics import OVERALL, Estimate
from reward.types import Record

_FILE = Path(__file__).with_name("paper.yaml")


class PaperLine(Record):
    """One line of a table: a benchmark, and a part of it."""

    label: str
    benchmark: str | None = Field(default=None, description="None: the mean of the lines above.")
    slice: str = OVERALL


class PaperColumn(Record):
    """What the paper prints of one model, in percent."""

    model: str
    group: str
    values: tuple[float, ...] = Field(description="One a line.")


class PaperTable(Record):
    """One of the paper's tables."""

    title: str
    source: str
    lines: tuple[PaperLine, ...]
    columns: tuple[PaperColumn, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings over the columns, and how many columns each has."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.group:
                found[-1] = (column.group, found[-1][1] + 1)
            else:
                found.append((column.group, 1))
        return found


class Beside(Record):
    """A table of the paper and what this evaluation has on its lines."""

    table: PaperTable
    ours: tuple[Estimate | float | None, ...] = Field(description="One a line; a mean has no interval here.")


def load_paper() -> tuple[PaperTable, ...]:
    """The paper's tables."""
    import yaml

    tree = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return tuple(PaperTable.model_validate(table) for table in tree["tables"])


def beside_paper(manifest: Manifest) -> list[Beside]:
    """The tables of which this evaluation has a line at least."""
    found = [Beside(table=table, ours=_ours(manifest, table.lines)) for table in load_paper()]
    return [one for one in found if any(value is not None for value in one.ours)]


def _ours(manifest: Manifest, lines: Sequence[PaperLine]) -> tuple[Estimate | float | None, ...]:
    values: list[Estimate | float | None] = []
    for line in lines:
        if line.benchmark is not None:
            values.append(_estimate(manifest, line.benchmark, line.slice))
            continue
        above = [value.value if isinstance(value, Estimate) else None for value in values]
        known = [value for value in above if value is not None]
        values.append(statistics.fmean(known) if len(known) == len(above) else None)
    return tuple(values)


def _estimate(manifest: Manifest, benchmark: str, slice_name: str) -> Estimate | None:
    one = manifest.measured.get(benchmark)
    return one.estimates.get(slice_name, {}).get(one.card.primary) if one else None
