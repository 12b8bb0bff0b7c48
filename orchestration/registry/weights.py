"""Weights of a registered version: brought to this machine, held against their digest, and served by vLLM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from orchestration.registry.store import ModelVersion
from pipeline.evaluate.track import fetch_model
from pipeline.evaluate.weights import weights_sha256


def local_weights(version: ModelVersion) -> Path:
    """The folder of a version's weights; fetched where they are elsewhere, and verified in any case.

    Raises:
        ValueError: they cannot be had, or are not what was registered.
    """
    parts = urlsplit(version.uri)
    if parts.scheme in ("", "file"):
        folder = Path(unquote(parts.path))
        if not (folder / "config.json").is_file():
            raise ValueError(f"{folder}: holds no Hugging Face model (config.json); restore it")
    else:
        folder = fetch_model(version.uri)
    found = weights_sha256(folder)
    if found != version.sha256:
        raise ValueError(
            f"{version.uri}: its content is {found[:12]}, registered was {version.sha256[:12]}; "
            "it has changed since, restore it or register it anew"
        )
    return folder


def vllm_command(folder: Path, *, name: str, host: str, port: int, more: Sequence[str]) -> list[str]:
    """The command of an OpenAI-compatible server of a folder's weights.

    `vllm serve` is not used, since the CPU build's does not start.
    """
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--served-model-name", name, "--host", host, "--port", str(port)]
    return [*command, *more]
