"""Which checkpoint a run resumes from: the newest one that is whole.

OpenRLHF saves the actor and the critic one after the other, and DeepSpeed points to the newest folder of each
by itself. A kill between the two would resume an actor with an older critic, or read half a folder. So the
trainer writes a manifest after both, by rename, and a resume trusts only manifests: it points both models to
the newest step that has one and removes what came after it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL_FOLDERS = ("_actor", "_critic")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name to write to, and renames it: a reader sees the old file or the new one."""
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    yield temporary
    os.replace(temporary, path)


def write_atomically(path: Path, text: str) -> None:
    """Writes a small file by rename: a reader sees the old text or the new one, never a part."""
    with replacing(path) as temporary:
        temporary.write_text(text)


def mark_complete(folder: Path, step: int) -> None:
    """Records that every model's checkpoint of `step` is on disk."""
    write_atomically(folder / f"global_step{step}.json", json.dumps({"global_step": step}) + "\n")


def completed_steps(folder: Path) -> list[int]:
    """Returns the steps whose manifest and folders are all there, oldest first."""
    models = [folder / name for name in MODEL_FOLDERS if (folder / name).is_dir()]
    steps = (json.loads(path.read_text())["global_step"] for path in folder.glob("global_step*.json"))
    return sorted(
        step for step in steps if models and all((m / f"global_step{step}").is_dir() for m in models)
    )


def prepare_resume(folder: Path) -> int:
    """Points all models to the newest whole checkpoint, removes later parts, returns its step or 0."""
    steps = completed_steps(folder)
    newest = steps[-1] if steps else 0
    for model in (folder / name for name in MODEL_FOLDERS if (folder / name).is_dir()):
        for part in model.glob("global_step*"):
            if int(part.name.removeprefix("global_step")) > newest:
                shutil.rmtree(part)
        if newest:
            write_atomically(model / "latest", f"global_step{newest}")
        else:
            shutil.rmtree(model)
    return newest
