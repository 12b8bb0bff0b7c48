"""What the tiny checkpoint is and came from: its files with their hashes, and its recipe.

The manifest comes last: a folder without one, or with files that are not the manifest's, is no checkpoint.
"""

from pathlib import Path

from pydantic import Field, JsonValue

from pipeline.tiny.recipe import Stage
from reward.offline.files import file_sha256, replace_file
from reward.types import Record

MANIFEST = "manifest.json"


class Manifest(Record):
    """The record beside the weights."""

    about: str = Field(description="What a reader must know before comparing with it.")
    command: str = Field(description="Makes it again; to the bit only on equal machines and versions.")
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
    files: dict[str, str] = Field(default={}, description="SHA-256 (hex) by name, without the manifest's.")


def publish(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest of the files that lie in a folder, which is a checkpoint from now on."""
    files = {path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    described = manifest.model_copy(update={"files": files})
    replace_file(folder / MANIFEST, described.model_dump_json(indent=2, exclude_none=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest; raises `ValueError` when a file is missing, or is not the one that it names."""
    manifest = Manifest.model_validate_json((folder / MANIFEST).read_text(encoding="utf-8"))
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != digest:
            raise ValueError(f"{path}: missing or changed since its manifest; write the checkpoint again")
    return manifest
