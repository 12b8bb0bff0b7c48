"""Files that are written by rename: a reader sees the old file or the new one, never a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name to write to, and renames it."""
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    yield temporary
    os.replace(temporary, path)


def write_atomically(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)
