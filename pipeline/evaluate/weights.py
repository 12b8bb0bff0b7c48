"""What a model's weights are, by content: a folder that was written anew is another model."""

from __future__ import annotations

from pathlib import Path

from pipeline.evaluate.plan import digest
from reward.offline.files import file_sha256


def weights_sha256(folder: Path) -> str:
    """Digest over the names and contents of the files of a model's folder; seconds for gigabytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest([[str(path.relative_to(folder)), file_sha256(path)] for path in files])
