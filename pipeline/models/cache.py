"""Where fetched models are, and what each came from.

    CACHE/NAME/              config.json, *.safetensors, tokenizer files
    CACHE/NAME.origin.json   written last: a folder without it is not whole

The record lies beside the folder, so that the folder's digest is the same on every machine.

CACHE is MARCH_MODELS, else $XDG_CACHE_HOME/march/models, else ~/.cache/march/models. Imports nothing heavy:
reading a recipe asks here what a name means.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pipeline.models.known import KNOWN
from reward.offline.files import file_sha256, only_writer, replace_file, user_cache
from reward.types import Record

ENVIRONMENT = "MARCH_MODELS"
_RECORD = ".origin.json"
_STAGED = ".fetching-"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class Origin(Record):
    """What a fetched model was made of; lineage records it."""

    name: str = Field(description="In the cache, and in a recipe's `model`.")
    source: Literal["hub", "wheel", "folder", "gguf", "warmup"]
    location: str = Field(description="Name on the hub, package, folder or file.")
    version: str = Field(default="", description="Commit of the hub, or version of the package.")
    sha256: str = Field(default="", description="Of the wheel or the GGUF file.")
    conversion: str = Field(default="", description="What was done to the files; empty for a plain copy.")
    licence: str = ""
    end_token: str = Field(description="Ends a turn, by the chat template.")
    num_parameters: int
    dtype: str
    fetched: str = Field(description="When, in UTC.")
    versions: dict[str, str] = Field(default={}, description="Of the libraries that converted it.")
    files: dict[str, str] = Field(description="SHA-256 by file name.")

    @property
    def short_source(self) -> str:
        at = f"@{self.version[:12]}" if self.source == "hub" and self.version else ""
        equals = f"=={self.version}" if self.source == "wheel" else ""
        return f"{self.source}: {self.location}{at}{equals}"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def cache_folder() -> Path:
    given = os.environ.get(ENVIRONMENT)
    return Path(given).expanduser() if given else user_cache() / "models"


def check_name(name: str) -> str:
    """The name; ValueError where the cache cannot have a folder of it."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a model; give letters, digits, dots and dashes, and its files by --from"
        )
    return name


def cached(name: str) -> Path | None:
    """The folder of a name: known or fetched; None for what is no name of this cache.

    The folder of a known name need not be there: `require_model` says so before it is used.
    """
    if not _NAME.fullmatch(name):
        return None
    folder = cache_folder() / name
    return folder if name in KNOWN or origin_file(folder).is_file() else None


def require_model(name: str) -> None:
    """FileNotFoundError for a known model that is not fetched, and a folder without one; asks no hub."""
    folder = cached(name)
    if folder is not None and read_origin(folder) is None:
        raise FileNotFoundError(
            f"model: {name!r} is not in {cache_folder()}; fetch it first: `march base-model fetch {name}`"
        )
    is_folder = name.startswith((".", "~", "/")) or name.count("/") > 1  # the hub's names are OWNER/NAME
    if is_folder and not (Path(name) / "config.json").is_file():
        raise FileNotFoundError(
            f"model: {name!r} has no config.json; give the folder of a Hugging Face model, or a name"
        )


def origin_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _RECORD)


def read_origin(folder: Path) -> Origin | None:
    """What a folder's model came from; None where nobody wrote it down. ValueError where it is damaged."""
    path = origin_file(folder)
    if not path.is_file():
        return None
    try:
        return Origin.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError:
        raise ValueError(
            f"{path}: is damaged; remove it and fetch the model again: `march base-model fetch {folder.name}`"
        ) from None


def fetched() -> list[Origin]:
    names = sorted(path.name.removesuffix(_RECORD) for path in cache_folder().glob(f"*{_RECORD}"))
    return [origin for name in names if (origin := read_origin(cache_folder() / name)) is not None]


def damaged_files(folder: Path, origin: Origin) -> list[str]:
    """The files that are missing or differ from when they were fetched; reads all of them."""
    return [
        name
        for name, digest in origin.files.items()
        if not (folder / name).is_file() or file_sha256(folder / name) != digest
    ]


def keep(name: str, fill: Callable[[Path], Origin]) -> Path:
    """Puts a model into the cache, or replaces the one of its name; never half of one.

    `fill` writes the files into the empty folder that it is given and says what they are.
    """
    target = cache_folder() / check_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    with tempfile.TemporaryDirectory(prefix=_STAGED, dir=target.parent) as parent, _in_use(Path(parent)):
        staged = Path(parent, "new")
        staged.mkdir()
        origin = fill(staged)
        for path in staged.iterdir():
            path.chmod(0o644)  # safetensors makes its file private; another user may train
        origin_file(target).unlink(missing_ok=True)
        if target.exists():
            target.rename(Path(parent, "old"))
        staged.rename(target)
        replace_file(origin_file(target), origin.model_dump_json(indent=2) + "\n")
    return target


def _in_use(folder: Path) -> AbstractContextManager[object]:
    """Holds a lock in a folder, by which others know that its process lives; ValueError: another has it."""
    return only_writer(folder / ".lock", what="fetch")


def _sweep(folder: Path) -> None:
    """Removes what fetches left that were killed: gigabytes each."""
    for left in folder.glob(f"{_STAGED}*"):
        with suppress(FileNotFoundError, ValueError), _in_use(left):
            shutil.rmtree(left, ignore_errors=True)


def forget(name: str) -> Path:
    """Removes a model from the cache; FileNotFoundError where it is not there."""
    folder = cache_folder() / check_name(name)
    if not origin_file(folder).is_file():
        raise FileNotFoundError(f"{name!r} is not in {cache_folder()}; `march base-model list` says what is")
    origin_file(folder).unlink()
    shutil.rmtree(folder)
    return folder
