"""Weights of a registered version: brought to this machine, held against their digest, and served by vLLM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from orchestration.registry.store import ModelVersion
from pipeline.artifacts.address import located, named_artifact
from pipeline.artifacts.backend import Advance, no_progress
from pipeline.evaluate.weights import digest_of_files, refuse_pickles


def local_weights(version: ModelVersion, *, advance: Advance = no_progress) -> Path:
    """The folder of a version's weights, in the user's cache.

    They are read once: each file is held against its digest there, and the digest of all against the
    registered one before anything is fetched.

    Args:
        version: As it is registered.
        advance: Called with the number of bytes that come from the store.

    Raises:
        ValueError: they cannot be had, are not what was registered, or are pickles.
    """
    if located(version.uri) is None:
        raise ValueError(f"{version.uri}: is no address of an artifact store; register the weights again")
    stored = named_artifact(version.uri)
    sha256s = {file.path: file.sha256 for file in stored.manifest().files}
    found = digest_of_files(sha256s)
    if found != version.sha256:
        raise ValueError(
            f"{version.uri}: its content is {found[:12]}, registered was {version.sha256[:12]}; "
            "register it again"
        )
    refuse_pickles(version.uri, sha256s)
    return stored.bring(advance=advance)


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
