"""Weights of a registered version: brought to this machine, held against their digest, and served by vLLM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from orchestration.registry.store import ModelVersion
from pipeline.artifacts.address import find_artifact
from pipeline.artifacts.backend import Advance, no_progress
from pipeline.evaluate.track import fetch_model
from pipeline.evaluate.weights import digest_of_files, refuse_pickles, weights_sha256


def local_weights(
    version: ModelVersion, *, pickles_allowed: bool = False, advance: Advance = no_progress
) -> Path:
    """The folder of a version's weights; fetched where they are elsewhere, and verified in any case.

    Weights of the artifact store are kept in the user's cache, and are read once: each file is held against
    its digest there, and the digest of all against the registered one before anything is fetched.

    Args:
        version: As it is registered.
        pickles_allowed: Whether the weights may be pickles, which can run code.
        advance: Called with the number of bytes that come from the store.

    Raises:
        ValueError: they cannot be had, are not what was registered, or are pickles.
    """
    stored, parts = find_artifact(version.uri), urlsplit(version.uri)
    if stored is not None:
        files = stored.manifest().files
        _require(version, digest_of_files({file.path: file.sha256 for file in files}))
        if not pickles_allowed:
            refuse_pickles(version.uri, (file.path for file in files))
        return stored.bring(advance=advance)
    if parts.scheme in ("", "file"):
        folder = Path(unquote(parts.path))
        if not (folder / "config.json").is_file():
            raise ValueError(f"{folder}: holds no Hugging Face model (config.json); restore it")
        if not pickles_allowed:
            refuse_pickles(str(folder), (path.name for path in folder.rglob("*") if path.is_file()))
    else:
        folder = fetch_model(version.uri, pickles_allowed=pickles_allowed)
    _require(version, weights_sha256(folder))
    return folder


def _require(version: ModelVersion, found: str) -> None:
    if found != version.sha256:
        raise ValueError(
            f"{version.uri}: its content is {found[:12]}, registered was {version.sha256[:12]}; "
            "it has changed since, restore it or register it again"
        )


def vllm_command(
    weights: str, *, names: Sequence[str], host: str, port: int, more: Sequence[str]
) -> list[str]:
    """The command of an OpenAI-compatible server of a folder's weights.

    `vllm serve` is not used, since the CPU build's does not start.

    Args:
        weights: A folder, or a model's name.
        names: Under which requests may ask for it; answers name the first.
        host: To listen on.
        port: To listen on.
        more: Further arguments of vLLM's.
    """
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", weights]
    command += ["--served-model-name", *names, "--host", host, "--port", str(port)]
    return [*command, *more]
