"""What the tiny checkpoint is and came from: its files with their hashes, and its recipe.

Data first, manifest last, both by rename: a folder without a manifest, or with files that are not the
manifest's, is no checkpoint.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from pydantic import Field, JsonValue

from pipeline.atomic import write_atomically
from pipeline.tiny.recipe import Stage
from reward.offline.files import file_sha256
from reward.types import Record

MANIFEST = "manifest.json"
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors")


class Manifest(Record):
    """The record beside the weights."""

    about: str = Field(description="What a reader must know before comparing with it.")
    command: str = Field(
        description="Makes it again; to the bit only on the same kind of machine and versions."
    )
    stages: tuple[Stage, ...] = Field(description="In the order they were run.")
    prompt_digest: str = Field(description="SHA-256 of the prompt set it was trained on.")
    num_parameters: int
    dtype: str
    versions: dict[str, str]
    figures: dict[str, JsonValue] | None = Field(
        default=None,
        description="Of the shipped ones, over 500 held-out worlds: shares, at temperature 1 if not greedy. "
        "`python -m pipeline.demo.evaluate` measures any.",
    )
    files: dict[str, str] = Field(description="SHA-256 (hex) by file name, the manifest's own left out.")


def library_versions() -> dict[str, str]:
    """Versions that can change the bits of a training."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def publish(
    folder: Path, write: Callable[[Path], None], describe: Callable[[dict[str, str]], Manifest]
) -> None:
    """Writes a checkpoint so that a reader never sees a half of it.

    Args:
        folder: Where it goes; what an older checkpoint left there under the same names is replaced.
        write: Puts the files into the empty folder it is given.
        describe: Makes the manifest from the files' hashes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
        write(Path(partial))
        files = {path.name: file_sha256(path) for path in sorted(Path(partial).iterdir())}
        manifest = describe(files)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in files:
            Path(partial, name).chmod(0o644)  # safetensors makes its file private
            os.replace(Path(partial, name), folder / name)
    write_atomically(folder / MANIFEST, manifest.model_dump_json(indent=2, exclude_none=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest and holds every file against it.

    Raises:
        ValueError: a file is missing, or is not the one that the manifest names.
    """
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != digest:
            raise ValueError(f"{path}: missing or changed since its manifest; write the checkpoint again")
    return manifest
