"""What a model's weights are, by content: a folder that was written again is another model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from pipeline.evaluate.plan import digest
from reward.offline.files import file_sha256

_PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")


def weights_sha256(folder: Path) -> str:
    """Digest over the names and contents of the files of a model's folder; seconds for gigabytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return digest_of_files({path.relative_to(folder).as_posix(): file_sha256(path) for path in files})


def digest_of_files(sha256s: Mapping[str, str]) -> str:
    """The same digest from that of each file by its path, as a manifest has them."""
    ordered = sorted(sha256s, key=PurePosixPath)
    return digest([[path, sha256s[path]] for path in ordered])


def refuse_pickles(where: str, paths: Iterable[str]) -> None:
    """Refuses weights that can run code when they are loaded.

    Args:
        where: Of the weights, for the error.
        paths: Of their files.

    Raises:
        ValueError: one is a pickle by its name.
    """
    found = sorted(path for path in paths if PurePosixPath(path).suffix.lower() in _PICKLES)
    if found:
        raise ValueError(
            f"{where}: {found[0]} is a pickle, which can run code when it is loaded; save the weights as "
            "safetensors"
        )
