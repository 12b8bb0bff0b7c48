"""The platform layer that lets unmodified OpenRLHF, DeepSpeed and vLLM train without a GPU.

`install()` changes nothing where CUDA and flash_attn are there, but for the garbage collector, which pauses
while the large packages load (two to four seconds of a core in each process). Without CUDA it applies
`patches` to the modules that need them, when and only when these are imported. Trained weights are of 32 bits
throughout: OpenRLHF asks for bfloat16, which many CPUs only emulate. Where the CPU multiplies it, the engines
hold it and the trained models multiply in it (`speed`, docs/decisions.md). The layer must run in three
places: the driver (`pipeline.train` calls it), every Ray worker (`worker_process_setup_hook`), and vLLM's
engine process, which is no Ray worker and finds it as a `vllm.general_plugins` entry point. `ENVIRONMENT`
holds the variables that go with it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from typing import Any

from pipeline.cpu.patches import DTYPE_VARIABLE, PATCHES_AFTER, PATCHES_BEFORE, has_cuda

__all__ = ["DTYPE_VARIABLE", "ENVIRONMENT", "PATCHES_AFTER", "PATCHES_BEFORE", "install", "install_in_engine"]

_SWITCH = "MARCH_CPU_LAYER"
_LOOKS_EVERY_S = 1.0  # for an engine's parent
ENVIRONMENT = {
    _SWITCH: "1",
    "DS_ACCELERATOR": "cpu",
    "OMP_NUM_THREADS": "1",  # where nobody says otherwise; `speed` shares the cores out by phase
    "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS": "0",  # OpenRLHF asks for it; read-only tensors break CPU kernels
    "TOKENIZERS_PARALLELISM": "false",
    "TORCHDYNAMO_DISABLE": "1",  # a cold compile costs ten times what it saves on a tiny model
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else vLLM takes every core, whatever OMP_NUM_THREADS says
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine lives in its Ray actor
    "VLLM_LOGGING_LEVEL": "WARNING",
}


class _PatchingLoader(importlib.abc.Loader):
    def __init__(self, name: str, inner: importlib.abc.Loader) -> None:
        self._name, self._inner = name, inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        before = PATCHES_BEFORE.get(self._name)
        undo = before() if before else None
        try:
            self._inner.exec_module(module)
        finally:
            if undo:
                undo()
        if (after := PATCHES_AFTER.get(self._name)) and not has_cuda():
            after(module)


class _PatchingFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in PATCHES_BEFORE and name not in PATCHES_AFTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(name, spec.loader)
        return spec


def install_in_engine() -> None:
    """The vLLM plugin, in each of its processes: installs the layer in a training's engines, and in no other.

    An engine of any vLLM ends soon after the process that started it, which the kernel may have killed: it
    would wait for requests that never come, and keep its gigabytes. The kernel's own signal for it
    (PR_SET_PDEATHSIG) would come when the parent's thread ends.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.pid,), name="ends with its parent", daemon=True).start()
    if os.environ.get(_SWITCH) == "1":
        install()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS_EVERY_S)
    os.kill(os.getpid(), signal.SIGKILL)  # nobody is left to whom an orderly end would matter


def install() -> None:
    """Installs the layer once a process; light enough for every Ray worker, also those that stay idle."""
    if any(isinstance(finder, _PatchingFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _PatchingFinder())
    for name, after in PATCHES_AFTER.items():
        if name in sys.modules and not has_cuda():
            after(sys.modules[name])
