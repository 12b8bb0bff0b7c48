"""What a model's weights are, by content: a folder that was written again is another model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from reward.offline.files import file_sha256
from reward.provenance import json_sha256

_PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")


def weights_sha256(folder: Path) -> str:
    """Digest over the names and contents of the files of a model's folder; seconds for gigabytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return digest_of_files({path.relative_to(folder).as_posix(): file_sha256(path) for path in files})


def digest_of_files(sha256s: Mapping[str, str]) -> str:
    """The same digest from that of each file by its path, as a manifest has them."""
    ordered = sorted(sha256s, key=PurePosixPath)
    return json_sha256([[[path, sha256s[path]] for path in ordered]])


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


def fetch_model(uri: str) -> Path:
    """Downloads a model of MLflow's registry or of a run; returns its folder.

    Args:
        uri: As MLflow's download knows it.

    Raises:
        ValueError: it cannot be had, holds no Hugging Face model, or one in pickles.
    """
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        folder = Path(download_artifacts(artifact_uri=uri))
    except (MlflowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{uri}: {problem:.200}; fix the URI, or set MLFLOW_TRACKING_URI") from error
    configs = sorted(folder.rglob("config.json"), key=lambda path: len(path.parts))
    if not configs:
        raise ValueError(f"{uri}: holds no Hugging Face model (config.json); give the path of one within it")
    folder = configs[0].parent
    refuse_pickles(uri, (path.name for path in folder.rglob("*") if path.is_file()))
    return folder
