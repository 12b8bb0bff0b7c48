"""The C++ compiler, by which DeepSpeed builds its extensions on first use: it compiles a small file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass

from orchestration.doctor.packages import Kit
from orchestration.doctor.records import Finding, failed, ok, skipped

_SOURCE = "#include <Python.h>\n#include <vector>\nint main() { return std::vector<int>(1)[0]; }\n"
_TIMEOUT_S = 60.0
_FIX = "install it (Debian: apt-get install g++)"


@dataclass(frozen=True)
class CompilerFacts:
    """None for what is not there."""

    name: str | None = None
    version: str = ""
    problem: str = ""  # of compiling
    ninja: bool = True


def gather_compiler() -> CompilerFacts:
    """Compiles with the compiler that torch's builds take: CXX, else c++."""
    name = os.environ.get("CXX") or "c++"
    if shutil.which(name) is None:
        return CompilerFacts()
    version = _run([name, "--version"], "").stdout.partition("\n")[0]
    include = sysconfig.get_path("include")
    done = _run([name, "-fsyntax-only", "-std=c++17", f"-I{include}", "-x", "c++", "-"], _SOURCE)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    problem = (errors or [f"ended with code {done.returncode}"])[0] if done.returncode else ""
    return CompilerFacts(name, version=version, problem=problem, ninja=_has_ninja())


def check_compiler(facts: CompilerFacts, kit: Kit) -> Iterator[Finding]:
    """Judges it; only trainings on GPUs need one."""
    if not kit.has_gpu_build:
        yield skipped("C++ compiler", "only trainings on GPUs compile, and vLLM's build for them is not here")
    elif facts.name is None:
        found = f"{os.environ.get('CXX') or 'c++'} is not there; DeepSpeed compiles on first use"
        yield failed("C++ compiler", found, _FIX)
    elif "Python.h" in facts.problem:
        found = f"{facts.version}, without Python's headers"
        yield failed("C++ compiler", found, "install them (Debian: apt-get install python3-dev)")
    elif facts.problem:
        yield failed("C++ compiler", f"{facts.version}: {facts.problem[:120]}", _FIX)
    elif not facts.ninja:
        yield failed("C++ compiler", f"{facts.version}, without ninja", "pip install ninja")
    else:
        yield ok("C++ compiler", f"{facts.version}; compiles")


def _has_ninja() -> bool:
    """Beside this Python, where a training looks first, or on the path."""
    return any(shutil.which("ninja", path=place) for place in (sysconfig.get_path("scripts"), None))


def _run(command: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S
    )
