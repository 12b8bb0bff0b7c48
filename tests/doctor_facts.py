"""Shared by the tests of `march doctor`: three installations, and what findings say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, State

CPU = Installation(trains=True, has_gpu_build=False)
GPU = replace(CPU, has_gpu_build=True)
LIGHT = Installation(trains=False, has_gpu_build=False)


def states(findings: Iterable[Finding]) -> list[tuple[str, State]]:
    return [(one.check, one.state) for one in findings]


def only(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found
