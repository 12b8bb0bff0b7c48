"""What the tiny checkpoint is and came from: its files with their hashes, its recipe, its figures.

Data first, manifest last, both by rename: a folder without a manifest, or with files that are not the
manifest's, is no checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from pydantic import Field

from pipeline.tiny.recipe import Stage
from reward.types import Record

MANIFEST = "manifest.json"
_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors")


class Figures(Record):
    """Shares in [0, 1] over fresh samples of the held-out split."""

    num_worlds: int
    seed: int
    solver_faithful: float = Field(description="At temperature 1: every number of the answer is true.")
    solver_faithful_greedy: float = Field(description="The same, with the likeliest token each time.")
    solver_coverage: float = Field(description="At temperature 1: asked items that the answer states.")
    proposer_exact: float = Field(
        description="At temperature 1: claims equal the answer's statements, in order."
    )
    checker_accuracy: float = Field(description="At temperature 1: questions answered with the true number.")
    checker_accuracy_greedy: float = Field(description="The same, with the likeliest token each time.")
    solver_form: float | None = Field(
        default=None, description="At temperature 1: an abstention, or one well-formed statement an item."
    )
    checker_form: float | None = Field(default=None, description="At temperature 1: well-formed lines.")
    abstained_right: float | None = Field(
        default=None, description="Of the queries that no document answers; None without such queries."
    )
    abstained_wrong: float | None = Field(
        default=None, description="Of the queries that the documents answer; None as above."
    )
    solver_by_kind: dict[str, float] | None = Field(
        default=None, description="Items that the documents answer and the answer states rightly, by kind."
    )
    checker_by_kind: dict[str, float] | None = Field(
        default=None, description="`checker_accuracy` by kind; `unanswerable`: rightly without an answer."
    )


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
    figures: Figures
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
        names = sorted(path.name for path in Path(partial).iterdir())
        manifest = describe({name: _sha256(Path(partial, name)) for name in names})
        Path(partial, MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in (*names, MANIFEST):
            Path(partial, name).chmod(
                0o644
            )  # safetensors makes its file private; an image's user must read it
            os.replace(Path(partial, name), folder / name)


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest and holds every file against it.

    Raises:
        ValueError: a file is missing, or is not the one that the manifest names.
    """
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or _sha256(path) != digest:
            raise ValueError(f"{path}: missing or changed since its manifest; write the checkpoint again")
    return manifest


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
