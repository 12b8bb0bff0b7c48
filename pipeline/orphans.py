"""Engine processes that outlive who started them.

vLLM runs its engine in a process of its own. When the process that started it is killed, by the kernel for
memory say, the engine waits for requests that never come and keeps its gigabytes, which the next training
then lacks.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

_LOOKS_EVERY_S = 1.0


def end_with_parent() -> None:
    """Has this process end soon after its parent is gone; does nothing in one that no other started.

    The kernel's own signal for it (PR_SET_PDEATHSIG) would come when the parent's thread ends.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.pid,), name="ends with its parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS_EVERY_S)
    os.kill(os.getpid(), signal.SIGKILL)  # nobody is left to whom an orderly end would matter
