"""Locks of C++ extensions that a killed run left behind.

DeepSpeed compiles its extensions on first use. Torch guards that with a file, `lock`, which whoever builds or
loads an extension creates, holds open and removes (`torch.utils.file_baton`). Who is killed in between leaves
it, and every later training waits for it for ever. So a run begins by removing those that no process of this
machine holds open.
"""

import contextlib
import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

_PROCESSES = Path("/proc")


def extensions_folder() -> Path:
    """Where torch builds extensions, as it finds it itself."""
    return Path(os.environ.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions")


def drop_stale_locks(folder: Path) -> list[Path]:
    """Removes the locks under a folder that nobody holds open, and returns them."""
    locks = list(folder.rglob("lock"))
    held = _open_files() if locks else set()  # after the list: who came since is not in it
    stale = [lock for lock in locks if str(lock.resolve()) not in held]
    for lock in stale:
        logger.warning("%s: left by a process that was killed, and removed", lock)
        lock.unlink(missing_ok=True)
    return stale


def _open_files() -> set[str]:
    paths = set()
    for descriptor in _PROCESSES.glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            paths.add(os.readlink(descriptor))
    return paths
