"""Registering weights: their address, their digest, and where they came from.

Weights in the artifact store are registered by the address of their manifest, from which alone their digest
is known; by the reference of a lineage, the lineage is registered with them. The version's source is a folder
of the store that any MLflow client loads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from orchestration.registry.mlflow_model import write_mlflow_model
from orchestration.registry.store import LINEAGE_TAG, Registry
from orchestration.registry.stored import stored_weights
from pipeline.artifacts.address import OpenStore, environments_store, find_artifact
from pipeline.evaluate.weights import refuse_pickles, weights_sha256

_SHA256 = re.compile(r"[0-9a-f]{64}")


def register_weights(
    registry: Registry,
    model: str,
    uri: str,
    *,
    sha256: str | None = None,
    lineage: str | None = None,
    assignments: Sequence[str] = (),
    store: OpenStore = environments_store,
    pickles_allowed: bool = False,
) -> tuple[str, bool]:
    """Registers weights as a version of a model, once.

    Args:
        registry: Where.
        model: Its name.
        uri: Folder of the weights, their reference in the artifact store, or their address elsewhere.
        sha256: Their digest as `weights_sha256` gives it; worked out where they are a folder here.
        lineage: Digest of their lineage record.
        assignments: KEY=VALUE that are kept as tags.
        store: Opens the store of `artifact:` references.
        pickles_allowed: Whether weights may be pickles, which can run code.

    Returns:
        The version, and whether it is new.

    Raises:
        ValueError: the digest is missing or another's, as is the lineage; a tag is no KEY=VALUE; or a file is
            a pickle.
    """
    tags, run_id, model_there = _tags(assignments), None, None
    found = find_artifact(uri, store)
    if found is not None:
        stored = stored_weights(found)
        if not pickles_allowed:
            refuse_pickles(uri, stored.paths)
        uri, run_id, model_there = stored.artifact.address, stored.run_id, stored.model
        sha256 = _agreed("--sha256", sha256, stored.sha256)
        lineage = _agreed("--lineage", lineage, stored.lineage) if stored.lineage else lineage
        if model_there is not None:
            write_mlflow_model(stored.artifact, weights_sha256=sha256, lineage=stored.lineage)
    elif urlsplit(uri).scheme in ("", "file"):
        folder = Path(urlsplit(uri).path).resolve()
        if not (folder / "config.json").is_file():
            raise ValueError(f"{folder}: holds no Hugging Face model (config.json); fix the path")
        sha256, uri = _agreed("--sha256", sha256, weights_sha256(folder)), folder.as_uri()
    if sha256 is None or not _SHA256.fullmatch(sha256):
        raise ValueError(f"--sha256: {sha256!r} is no SHA-256; give that of the weights at {uri}")
    if lineage is not None:
        if not _SHA256.fullmatch(lineage):
            raise ValueError(
                f"--lineage: {lineage!r} is no SHA-256; `march model lineage --publish` prints one"
            )
        tags[LINEAGE_TAG] = lineage
    return registry.register(model, uri=uri, sha256=sha256, tags=tags, run_id=run_id, stored=model_there)


def _tags(assignments: Sequence[str]) -> dict[str, str]:
    tags = {}
    for one in assignments:
        key, mark, value = one.partition("=")
        if not mark or not key or key.startswith("march."):
            raise ValueError(f"--tag {one!r}: write it as KEY=VALUE, with a KEY that is not march.*")
        tags[key] = value
    return tags


def _agreed(option: str, given: str | None, found: str) -> str:
    """What was found, unless something else was said."""
    if given not in (None, found):
        raise ValueError(f"{option}: {given} is not what is there, which is {found}; leave it out")
    return found
