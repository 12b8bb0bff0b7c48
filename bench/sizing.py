"""How much engine work an audit adds to a rollout: tokens and time, the tiny policy's own answers, real vLLM.

    python -m bench sizing

A round samples the Solver on new worlds and then audits its answers, 64 at a time, as a training step of the
tiny recipe does, each half with an empty prefix cache. `audit_over_rollout_s` is the median ratio of the two
times; the tokens are means over all answers, a prompt counted once a request. docs/scaling.md uses both.
"""

import asyncio
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from bench.measure import median_ratio, write_result
from bench.reward_server.work import RecordingSampler, Work, at_once, num_tokens
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from pipeline.tiny.world import worlds
from reward.auditor import audit
from reward.config import LocalSamplerConfig, SamplingSettings
from reward.roles.prompts import load_prompts
from reward.types import RagQuery

_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
_NUM_ANSWERS, _IN_FLIGHT = 256, 64
_RECIPE = load_recipe("tiny")
_PROMPTS = load_prompts(_RECIPE.audit.prompts)
_SOLVER = SamplingSettings(temperature=1.0, max_tokens=_RECIPE.rollout.max_response_tokens)
_T = TypeVar("_T")
_R = TypeVar("_R")


def run() -> None:
    asyncio.run(_measure())


async def _measure() -> None:
    sampler = RecordingSampler(LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=512))
    await sampler.ready()
    engine = await sampler._started()
    samples_s: dict[str, list[float]] = {"rollout": [], "audit": []}
    rollouts: list[Work] = []
    audits: list[Work] = []
    for counted in [False] + [True] * _ROUNDS:
        seconds = await _round(sampler, engine, rollouts if counted else [], audits if counted else [])
        for name, value in seconds.items() if counted else ():
            samples_s[name].append(value)
    await sampler.close()
    path = write_result("sizing", samples_s=samples_s, figures=_figures(samples_s, rollouts, audits))
    print(path.read_text())


async def _round(
    sampler: RecordingSampler, engine: Any, rollouts: list[Work], audits: list[Work]
) -> dict[str, float]:
    queries = list(worlds(_NUM_ANSWERS, random.getrandbits(31), "train"))

    async def solve(query: RagQuery) -> tuple[RagQuery, str]:
        group = await sampler.sample(_PROMPTS.solver(query), n=1, settings=_SOLVER)
        return query, group.samples[0].text

    async def check(case: tuple[RagQuery, str]) -> None:
        await audit(*case, sampler=sampler, prompts=_PROMPTS, config=_RECIPE.audit)

    answers, rollout_s = await _timed(engine, solve, queries)
    rollouts += sampler.work
    sampler.work.clear()
    _, audit_s = await _timed(engine, check, answers)
    audits += sampler.work
    sampler.work.clear()
    return {"rollout": rollout_s, "audit": audit_s}


async def _timed(
    engine: Any, work: Callable[[_T], Awaitable[_R]], items: Sequence[_T]
) -> tuple[list[_R], float]:
    """What the work made of each item, `_IN_FLIGHT` of them at once, and its seconds."""
    await engine.reset_prefix_cache()
    start = time.perf_counter()
    done = await at_once(_IN_FLIGHT, work, items)
    return done, time.perf_counter() - start


def _figures(
    samples_s: dict[str, list[float]], rollouts: Sequence[Work], audits: Sequence[Work]
) -> dict[str, Any]:
    num_answers = len(rollouts)
    tokens = {
        "solver_prompt_tokens": sum(len(work.prompt) for work in rollouts),
        "solver_completion_tokens": sum(sum(work.lengths) for work in rollouts),
    } | num_tokens(audits)
    each = {name: count / num_answers for name, count in tokens.items()}
    audit_in = each["proposer_prompt_tokens"] + each["checker_prompt_tokens"]
    audit_out = each["proposer_completion_tokens"] + each["checker_completion_tokens"]
    return {
        "answers": num_answers,
        "in_flight": _IN_FLIGHT,
        "an_answer": each,
        "audit_over_rollout_prompt_tokens": audit_in / each["solver_prompt_tokens"],
        "audit_over_rollout_completion_tokens": audit_out / each["solver_completion_tokens"],
        "audit_over_rollout_s": median_ratio(samples_s, "audit", "rollout"),
        "audits_per_s": _NUM_ANSWERS / statistics.median(samples_s["audit"]),
        "rollouts_per_s": _NUM_ANSWERS / statistics.median(samples_s["rollout"]),
    }
