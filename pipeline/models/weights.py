"""Models that come from elsewhere: no pickles, and those of MLflow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")


def refuse_pickles(where: str, paths: Iterable[str]) -> None:
    """Raises ValueError for pickles, by their names: weights that can run code when they are loaded."""
    found = sorted(path for path in paths if PurePosixPath(path).suffix.lower() in _PICKLES)
    if found:
        raise ValueError(
            f"{where}: {found[0]} is a pickle, which can run code when it is loaded; save the weights as "
            "safetensors"
        )


def fetch_model(uri: str) -> Path:
    """Downloads a model of MLflow's; returns its folder. ValueError for none, or for pickles."""
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
