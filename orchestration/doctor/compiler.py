"""The C++ compiler, by which DeepSpeed builds its extensions on first use: it compiles a small file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, skipped

_NAME = "C++ compiler"
_SOURCE = "#include <Python.h>\n#include <vector>\nint main() { return std::vector<int>(1)[0]; }\n"
_TIMEOUT_S = 60.0
_FIX = "install it (Debian: apt-get install g++)"


def check_compiler(here: Installation) -> Iterator[Finding]:
    """Tries the compiler that torch's builds take, CXX or else c++; only trainings on GPUs need one."""
    compiler = os.environ.get("CXX") or "c++"
    if not here.has_gpu_build:
        yield skipped(_NAME, "only trainings on GPUs compile, and vLLM's build for them is not here")
        return
    if shutil.which(compiler) is None:
        yield failed(_NAME, f"{compiler} is not there; DeepSpeed compiles on first use", _FIX)
        return
    version = _run(compiler, "--version").stdout.partition("\n")[0]
    headers = f"-I{sysconfig.get_path('include')}"
    done = _run(compiler, "-fsyntax-only", "-std=c++17", headers, "-x", "c++", "-")
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    problem = (errors or [f"ended with code {done.returncode}"])[0] if done.returncode else ""
    if "Python.h" in problem:
        fix = "install them (Debian: apt-get install python3-dev)"
        yield failed(_NAME, f"{version}, without Python's headers", fix)
    elif problem:
        yield failed(_NAME, f"{version}: {problem[:120]}", _FIX)
    # Beside this Python, where a training looks first, or on the path.
    elif not any(shutil.which("ninja", path=place) for place in (sysconfig.get_path("scripts"), None)):
        yield failed(_NAME, f"{version}, without ninja", "pip install ninja")
    else:
        yield ok(_NAME, f"{version}; compiles")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=_SOURCE, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S
    )
