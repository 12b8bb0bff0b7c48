"""Registering weights: their address, their digest, and where they came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from orchestration.registry.store import LINEAGE_TAG, Registry
from pipeline.evaluate.weights import weights_sha256

_SHA256 = re.compile(r"[0-9a-f]{64}")


def register_weights(
    registry: Registry,
    model: str,
    uri: str,
    *,
    sha256: str | None = None,
    lineage: str | None = None,
    assignments: Sequence[str] = (),
) -> tuple[str, bool]:
    """Registers weights as a version of a model, once.

    Args:
        registry: Where.
        model: Its name.
        uri: Folder of the weights, or their address elsewhere.
        sha256: Their digest as `weights_sha256` gives it; worked out where they are a folder here.
        lineage: Digest of their lineage record.
        assignments: KEY=VALUE that are kept as tags.

    Returns:
        The version, and whether it is new.

    Raises:
        ValueError: the digest is missing or not that of the folder, or a tag is no KEY=VALUE.
    """
    tags = {LINEAGE_TAG: lineage} if lineage else {}
    for one in assignments:
        key, mark, value = one.partition("=")
        if not mark or not key or key.startswith("march."):
            raise ValueError(f"--tag {one!r}: write it as KEY=VALUE, with a KEY that is not march.*")
        tags[key] = value
    if urlsplit(uri).scheme in ("", "file"):
        folder = Path(urlsplit(uri).path).resolve()
        if not (folder / "config.json").is_file():
            raise ValueError(f"{folder}: holds no Hugging Face model (config.json); mend the path")
        found, uri = weights_sha256(folder), folder.as_uri()
        if sha256 not in (None, found):
            raise ValueError(f"--sha256: {sha256} is not the folder's, which is {found}; leave it out")
        sha256 = found
    if sha256 is None or not _SHA256.fullmatch(sha256):
        raise ValueError(f"--sha256: {sha256!r} is no SHA-256; give that of the weights at {uri}")
    return registry.register(model, uri=uri, sha256=sha256, tags=tags)
