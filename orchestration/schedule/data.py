"""What a data trigger watches: digests of files, folders of rows, and pointers of the artifact store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestration.retrain.job import Job
from orchestration.retrain.triggers import DataSettings
from pipeline.artifacts.store import files_of
from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest
from pipeline.evaluate.plan import digest
from reward.offline.files import file_sha256


def data_digests(
    job: Job, settings: DataSettings, folder: Path, pointed: Callable[[str], str | None]
) -> dict[str, str]:
    """Digests of what is there, by name.

    Args:
        job: The job.
        settings: Of its data trigger.
        folder: Of the job's file, from which the trigger's paths are seen.
        pointed: What a pointer of the job's store points to.

    Raises:
        ValueError: nothing is there, or a store cannot be read.
        OSError: something cannot be read.
    """
    watched = _watched(job, settings, folder)
    found = {name: _path_digest(path) for name, path in watched.items()}
    found |= {f"pointer {name}": pointed(name) for name in settings.pointers}
    there = {name: one for name, one in found.items() if one is not None}
    if not there:
        raise ValueError(f"nothing is there yet of {', '.join(found)}")
    return there


def _watched(job: Job, settings: DataSettings, folder: Path) -> dict[str, Path]:
    """Paths by their names in the job's file."""
    if settings.paths or settings.pointers:
        return {str(path): folder / path.expanduser() for path in settings.paths}
    if job.data.rows is not None:
        return {"data.rows": job.data.rows}
    assert job.data.prepare is not None, "the job was checked"
    inputs = enumerate(job.data.prepare.inputs)
    return {f"data.prepare.inputs.{place}": one.path for place, one in inputs}


def _path_digest(path: Path) -> str | None:
    """None: it is not there, or not whole."""
    if path.is_file():
        return file_sha256(path)
    if (path / MANIFEST_FILE).is_file():
        return Manifest.model_validate_json((path / MANIFEST_FILE).read_bytes()).rows_sha256
    if not path.is_dir() or (path / ROWS_FILE).exists():
        return None  # rows without a manifest are being written
    return digest({name: file_sha256(file) for name, file in files_of(path).items()})
