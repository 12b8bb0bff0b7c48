"""What belongs together: files by content, other manifests, a record. Its name is its text's digest."""

import hashlib
import json
from pathlib import PurePosixPath

from pydantic import Field, JsonValue, ValidationError, field_validator

from pipeline.artifacts.backend import CorruptError
from pipeline.artifacts.layout import WEIGHTS, is_digest, model_key, object_key
from reward.types import Record

MODEL = "model"  # the kind whose files lie together, where MLflow's clients look for them


class File(Record):
    path: str = Field(description="Relative, with slashes.")
    sha256: str
    size: int = Field(ge=0, description="Bytes.")

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        """A manifest may come from anywhere; what it names is written under the folder that was asked for."""
        parts = PurePosixPath(path).parts
        if (
            not parts
            or path.startswith("/")
            or "\\" in path
            or ".." in parts
            or str(PurePosixPath(path)) != path
        ):
            raise ValueError(f"{path!r} is no relative path with slashes")
        return path

    @field_validator("sha256")
    @classmethod
    def _is_a_digest(cls, sha256: str) -> str:
        if not is_digest(sha256):
            raise ValueError(f"{sha256!r} is no SHA-256 in hexadecimal")
        return sha256


class Manifest(Record):
    """What was published. The same content has the same digest in every store, whenever it is written."""

    kind: str = Field(description="model, data, evaluation, lineage, ...")
    files: tuple[File, ...] = Field(default=(), description="In the order of their paths.")
    refers: tuple[str, ...] = Field(default=(), description="Digests of other manifests, which gc keeps too.")
    record: dict[str, JsonValue] = Field(default={}, description="What the kind says more.")

    @field_validator("files")
    @classmethod
    def _have_places_of_their_own(cls, files: tuple[File, ...]) -> tuple[File, ...]:
        """Of two files in one place the later would lie there, and the digest would be of both."""
        taken = {file.path for file in files}
        parents = {str(parent) for path in taken for parent in PurePosixPath(path).parents}
        if len(taken) < len(files) or taken & parents:
            raise ValueError("two of its files have the same place")
        return files

    @property
    def text(self) -> bytes:
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False).encode() + b"\n"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    def keys(self) -> dict[str, str]:
        if self.kind != MODEL:
            return {file.path: object_key(file.sha256) for file in self.files}
        digest = self.digest
        return {file.path: model_key(digest, f"{WEIGHTS}/{file.path}") for file in self.files}

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def read_manifest(text: bytes, digest: str) -> Manifest:
    """A manifest from its text; `CorruptError` where that is not what its name says."""
    if hashlib.sha256(text).hexdigest() != digest:
        raise CorruptError(f"manifest {digest[:12]}: its content is another; restore it or publish it again")
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise CorruptError(f"manifest {digest[:12]}: is none of this version: {problem}") from error
