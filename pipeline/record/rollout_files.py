"""Rollouts on disk: one Parquet file a step under `RUN/rollouts`, whole or not there.

A file is written under a temporary name and renamed, so a step that is trained again after a kill replaces
its file. `steps.jsonl` says which steps are finished and how many answers each has
(`rollouts/kept`); a file that it does not name is of a step that did not end. The columns are described in
`pipeline/record/rollout_rows.py` and made from `RolloutRow`, so that schema and records cannot part.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pipeline.record.rollout_rows import SCHEMA_VERSION, RolloutRow

if TYPE_CHECKING:
    import pyarrow

ROLLOUTS_FOLDER = "rollouts"
_METADATA = b"march"


def rollouts_file(run_dir: Path, step: int) -> Path:
    return run_dir / ROLLOUTS_FOLDER / f"step-{step:06d}.parquet"


def drop_rollouts_after(run_dir: Path, step: int) -> None:
    """Removes the files of later steps, and what a kill left half written."""
    for path in (run_dir / ROLLOUTS_FOLDER).glob("step-*"):
        number = path.name.removeprefix("step-").partition(".")[0]
        if path.suffix != ".parquet" or int(number) > step:
            path.unlink()


def write_rollouts(path: Path, rows: Sequence[RolloutRow], *, step: int) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    about = {"schema_version": SCHEMA_VERSION, "step": step, "num_answers": len(rows)}
    schema = rollout_schema().with_metadata({_METADATA: json.dumps(about)})
    table = pyarrow.Table.from_pylist([row.model_dump(mode="json") for row in rows], schema=schema)
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)


def read_rollouts(path: Path, *, places: Collection[int] | None = None) -> list[RolloutRow]:
    """Returns the rows of a file, or those of some places, each with its documents if the file has them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no whole Parquet file, of a newer schema, or a row is not what it must be.
    """
    documents: dict[Any, Any] = {}  # by their digest
    rows = []
    for number, cells in enumerate(read_columns(path, places=places), start=1):
        digest = cells.get("documents_sha256")
        if cells.get("documents") is not None:
            documents[digest] = cells["documents"]
        if places is not None and cells.get("place") not in places:
            continue
        try:
            rows.append(RolloutRow.model_validate(cells | {"documents": documents.get(digest)}))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in problem["loc"])
            raise ValueError(f"{path}: row {number}: {field}: {problem['msg']}; {_FIX}") from error
    return rows


def rollout_schema() -> pyarrow.Schema:
    import pyarrow

    fields = [(name, _arrow_type(field.annotation)) for name, field in RolloutRow.model_fields.items()]
    return pyarrow.schema(fields)


_FIX = "copy the file again, or train the step again"


def read_columns(
    path: Path, columns: Sequence[str] | None = None, *, places: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Returns some columns or places of a file, as nested dicts; "verdict.outcome" is one field of a struct.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no whole Parquet file, of a newer schema, or lacks a column.
    """
    with _parquet(path) as file:
        about = json.loads((file.schema_arrow.metadata or {}).get(_METADATA, b"{}"))
        version = about.get("schema_version")
        if not isinstance(version, int):
            raise ValueError(f"{path}: holds no rollouts of a march training; give the folder of a run")
        if version > SCHEMA_VERSION:
            raise ValueError(
                f"{path}: schema_version: {version}, but this version reads {SCHEMA_VERSION}; update march"
            )
        table = file.read(columns=columns)
        table = table if places is None else _rows_at(table, places)
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def _rows_at(table: Any, places: Collection[int]) -> Any:
    """The rows of some places, and those that hold their documents."""
    import pyarrow
    import pyarrow.compute as pc

    is_wanted = pc.is_in(table["place"], value_set=pyarrow.array(sorted(places), pyarrow.int64()))
    digests = table.filter(is_wanted)["documents_sha256"].combine_chunks()
    holds = pc.is_in(table["documents_sha256"], value_set=digests)
    return table.filter(pc.or_(is_wanted, pc.and_(holds, pc.is_valid(table["documents"]))))


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """An open file, whose failures name it."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        raise ValueError(
            f"{path}: pyarrow is not installed; pip install '.[parquet]' to read rollouts"
        ) from None
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; {_FIX}")
    try:
        with ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{path}: not a whole Parquet file ({problem:.120}); {_FIX}") from error


def _arrow_type(annotation: Any) -> pyarrow.DataType:
    """The column type of a field of a record; an optional field is one whose cells may be null."""
    import pyarrow

    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    if annotation in kinds:
        return kinds[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _arrow_type(next(part for part in arguments if part is not type(None)))
    if origin is tuple:
        return pyarrow.list_(_arrow_type(arguments[0]))
    if origin is dict:
        return pyarrow.map_(_arrow_type(arguments[0]), _arrow_type(arguments[1]))
    if origin is Literal or issubclass(annotation, Enum):
        return pyarrow.string()
    assert issubclass(annotation, BaseModel), f"no column for {annotation}"
    fields = annotation.model_fields.items()
    return pyarrow.struct([(name, _arrow_type(field.annotation)) for name, field in fields])
