"""What vLLM needs of the system is asked for before it starts, and its absence is nobody else's fault."""

from __future__ import annotations

import asyncio

import pytest

from orchestration.promotion.policy import GatePolicy
from orchestration.registry.store import ModelVersion
from orchestration.registry.trial import _smoke
from pipeline.settings.recipe import TINY_POLICY
from reward.config import LocalSamplerConfig, SamplingSettings
from reward.samplers import SamplerError, start

FIX = "libnuma1"
MISSING = "libno-such-library.so.1"


@pytest.fixture
def _no_numa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "NUMA", MISSING)
    monkeypatch.setattr(start, "_CPU_BUILD", "pytest")  # a package that is installed


@pytest.mark.usefixtures("_no_numa")
def test_a_missing_library_is_named_with_its_package() -> None:
    with pytest.raises(ValueError, match=f"{MISSING} is missing.*{FIX}"):
        start.demand_libraries()


@pytest.mark.usefixtures("_no_numa")
def test_other_builds_of_vllm_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_CPU_BUILD", "no-such-build-of-vllm")
    start.demand_libraries()


@pytest.mark.usefixtures("_no_numa")
def test_an_engine_in_process_says_so() -> None:
    from reward.samplers.local import LocalEngineSampler

    sampler = LocalEngineSampler(LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=512))
    messages = [{"role": "user", "content": "How many?"}]
    with pytest.raises(SamplerError, match=FIX):
        asyncio.run(sampler.sample(messages, n=1, settings=SamplingSettings(max_tokens=4)))


@pytest.mark.usefixtures("_no_numa")
def test_no_candidate_is_refused_for_it() -> None:
    with pytest.raises(ValueError, match=FIX):
        _smoke(ModelVersion("1", "uri", "sha256", (), {}, 0), GatePolicy())
