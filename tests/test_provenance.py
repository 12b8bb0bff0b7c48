"""What a verdict was made with, and that it can be made again."""

import asyncio
import random

from reward.auditor import audit
from reward.config import AuditConfig, SamplingSettings
from reward.provenance import config_digest, package_version, provenance_of, seeded
from reward.roles.prompts import load_prompts
from reward.samplers import SamplerError
from reward.types import Outcome, Role, Verdict

PROMPTS = load_prompts("compact")
RESPONSE = "The July picnic in Kabul raised 466 euros."
CLAIM = "- Question: The July picnic in Kabul raised how many euros? [Answer: 466]"
MESSAGES = [{"role": "user", "content": "x"}]


class SeededSampler:
    """Answers at random, as its seed says; counts its requests' seeds."""

    model = "policy-7"

    def __init__(self, scripted) -> None:
        self._scripted = scripted
        self.seeds = []

    async def sample(self, messages, *, n, settings, pattern=None):
        self.seeds.append(settings.seed)
        rng = random.Random(settings.seed)
        texts = [CLAIM if n == 1 else f"1. Evidence: x [Answer: {rng.choice([466, 120])}]" for _ in range(n)]
        return await self._scripted(texts).sample(messages, n=n, settings=settings)


def run(picnic, sampler, **settings) -> Verdict:
    config = AuditConfig(**{"kinds": ("number",), **settings})
    return asyncio.run(audit(picnic, RESPONSE, sampler=sampler, prompts=PROMPTS, config=config)).verdict


def test_the_same_input_model_and_seed_give_the_same_verdict(scripted, picnic) -> None:
    first, second = SeededSampler(scripted), SeededSampler(scripted)
    assert run(picnic, first, seed=5, voters=9) == run(picnic, second, seed=5, voters=9)
    assert first.seeds == second.seeds and len(set(first.seeds)) == 2
    other = SeededSampler(scripted)
    run(picnic, other, seed=6, voters=9)
    assert set(other.seeds).isdisjoint(first.seeds)


def test_the_verdict_tells_what_it_was_made_with(scripted, picnic) -> None:
    provenance = run(picnic, SeededSampler(scripted), seed=5).provenance
    assert (provenance.auditor, provenance.model, provenance.seed) == ("model", "policy-7", 5)
    assert (provenance.prompt_digest, provenance.version) == (PROMPTS.digest, package_version())
    assert provenance.config_digest == config_digest(AuditConfig(kinds=("number",), seed=5))


def test_a_failure_and_an_answer_without_numbers_tell_it_too(scripted, picnic) -> None:
    failed = run(picnic, scripted([SamplerError("engine", "x")]))
    assert failed.outcome is Outcome.UNSCORED and failed.provenance.model == "scripted"
    config, sampler = AuditConfig(kinds=("number",)), scripted([])
    nothing = asyncio.run(audit(picnic, "None.", sampler=sampler, prompts=PROMPTS, config=config)).verdict
    assert nothing.provenance.prompt_digest == PROMPTS.digest


def test_the_digest_names_every_setting() -> None:
    digests = {
        config_digest(AuditConfig(**changes))
        for changes in (
            {},
            {"voters": 5},
            {"early_stop": True},
            {"checker": {"temperature": 0.1}},
            {"seed": 1},
        )
    }
    assert len(digests) == 5
    assert config_digest(AuditConfig(kinds=("number",))) == config_digest(
        AuditConfig(kinds=("number",), voters=3)
    )
    assert provenance_of(AuditConfig(kinds=("number",)), auditor="lexical").prompt_digest == ""


def test_seeds_differ_by_content_role_and_attempt_and_come_only_from_a_seed() -> None:
    settings = SamplingSettings(seed=3)
    assert seeded(settings, MESSAGES, seed=None, role=Role.CHECKER, attempt=0) is settings
    assert seeded(settings, MESSAGES, seed=None, role=Role.CHECKER, attempt=1).seed != 3
    assert seeded(SamplingSettings(), MESSAGES, seed=None, role=Role.CHECKER, attempt=1).seed is None
    others = [{"role": "user", "content": "y"}]
    seeds = [
        seeded(settings, messages, seed=1, role=role, attempt=attempt).seed
        for messages in (MESSAGES, others)
        for role in (Role.PROPOSER, Role.CHECKER)
        for attempt in (0, 1)
    ]
    assert len(set(seeds)) == 8 and all(0 <= seed < 2**31 for seed in seeds if seed is not None)
