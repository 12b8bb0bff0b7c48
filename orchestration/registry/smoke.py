"""The smoke test before a promotion: do the weights load into vLLM, and do they answer?

It runs in a process of its own, `python -m orchestration.registry.smoke FOLDER OUT SETTINGS`, so that an
engine that crashes, hangs or takes all memory fails the test and not the promotion's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.promotion.policy import SmokePolicy
from orchestration.promotion.records import GateResult, GateState

if TYPE_CHECKING:
    from reward.samplers import Sampler

_GATE = "smoke"
_NO_MEMORY = re.compile(r"out of memory|OutOfMemory|Cannot allocate memory", re.IGNORECASE)
_MOST_CHARS = 200  # of what is shown of an error


def smoke_gate(folder: Path, policy: SmokePolicy, *, program: str = __name__) -> GateResult:
    """Loads the weights and asks some prompts, in a process of its own; each must have a non-empty answer.

    A process that is killed, lacks memory or takes too long says nothing of the weights: that is an error,
    after which nobody is promoted, and which a retraining tries again.
    """
    if not policy.required:
        return _said(GateState.PASSED, "not asked for (smoke.required: false)")
    with tempfile.TemporaryDirectory() as scratch:
        out, log = Path(scratch) / "answers.json", Path(scratch) / "log.txt"
        command = [sys.executable, "-m", program, str(folder), str(out), policy.model_dump_json()]
        try:
            code = _run(command, log, timeout_s=policy.timeout_s)
        except subprocess.TimeoutExpired:
            return _said(GateState.ERROR, f"no answers within {policy.timeout_s:.0f} s")
        if code != 0 or not out.exists():
            text = log.read_text(errors="replace")
            lines = text.strip().splitlines() or ["it says nothing"]
            is_of_machine = code < 0 or _NO_MEMORY.search(text) is not None
            state = GateState.ERROR if is_of_machine else GateState.FAILED
            return _said(state, f"exit code {code}: {lines[-1]:.{_MOST_CHARS}}")
        answers = json.loads(out.read_text())
    num_empty = sum(not answer.strip() for answer in answers)
    figures: dict[str, float | None] = {"answers": float(len(answers)), "empty": float(num_empty)}
    state, reason = GateState.PASSED, "it loads and answers"
    if num_empty or len(answers) != len(policy.prompts):
        state, reason = GateState.FAILED, f"{num_empty} of {len(policy.prompts)} prompts have an empty answer"
    return GateResult(gate=_GATE, state=state, figures=figures, reason=reason)


def _run(command: list[str], log: Path, *, timeout_s: float) -> int:
    """Runs a command with all its children in a group, which ends with it."""
    environment = {"VLLM_LOGGING_LEVEL": "ERROR"} | os.environ
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            return process.wait(timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _said(state: GateState, reason: str) -> GateResult:
    return GateResult(gate=_GATE, state=state, reason=reason)


async def ask(sampler: Sampler, policy: SmokePolicy) -> list[str]:
    """The answers to the policy's prompts."""
    from reward.config import SamplingSettings
    from reward.samplers import Message

    settings = SamplingSettings(temperature=0, max_tokens=policy.max_tokens, seed=0)
    try:
        groups = [
            await sampler.sample([Message(role="user", content=prompt)], n=1, settings=settings)
            for prompt in policy.prompts
        ]
    finally:
        await sampler.close()
    return [group.samples[0].text for group in groups]


async def _load_and_ask(folder: str, policy: SmokePolicy) -> list[str]:
    from reward.config import LocalSamplerConfig
    from reward.samplers.make import make_sampler

    return await ask(make_sampler(LocalSamplerConfig(model=folder, timeout_s=policy.timeout_s)), policy)


if __name__ == "__main__":
    _folder, _out, _settings = sys.argv[1:]
    _found = asyncio.run(_load_and_ask(_folder, SmokePolicy.model_validate_json(_settings)))
    Path(_out).write_text(json.dumps(_found))
