"""The canary: some answers of each step are checked a second time by a Checker that is not trained.

Solver and Checker are one policy, so they can come to invent the same facts: the voters agree with the
answer and the reward rises while answers grow worse. A frozen Checker does not learn along. It gets the same
questions and documents and votes by the same rules (`reward.auditor.recheck`); where the live Checker
supports what the frozen one refutes, a gap opens. A frozen Checker is also the weaker one once training
helps, so a small gap proves nothing; one that grows while the reward rises is what to look at.

It touches no reward, and none of its failures stops a step: they are `canary/failed_rate`, and no gap. Its
Ray actor works beside the update. The frozen Checker is the run's initial policy in an engine of its own, or
an OpenAI-compatible server. Both verdicts on each answer are kept in `canary/step-NNNNNN.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.settings.recipe import Recipe
from reward.config import AuditConfig, SamplerConfig
from reward.judging.vote import WITHOUT_VOTERS
from reward.offline.files import replace_file
from reward.types import ClaimState, ClaimVerdict, Outcome, RagQuery, Verdict

if TYPE_CHECKING:
    from openrlhf.trainer.ppo_utils.experience import Experience

logger = logging.getLogger(__name__)


class Asked(NamedTuple):
    query: RagQuery
    response: str
    live: Verdict


class FrozenChecker:
    def __init__(self, sampler: SamplerConfig, audit: AuditConfig) -> None:
        from reward.samplers.make import make_sampler

        self.sampler = make_sampler(sampler)
        self.audit = audit

    async def start(self) -> None:
        """Starts the engine, which takes a minute; the first request would, too."""
        await self.sampler.ready()

    async def verdicts(self, asked: Sequence[Asked]) -> list[Verdict]:
        """What it says of each answer; UNSCORED where it failed."""
        from reward.auditor import recheck

        return await asyncio.gather(
            *(recheck(*answer, sampler=self.sampler, config=self.audit) for answer in asked)
        )


class Canary:
    """The trainer's side: asks before the update, and hears what was found after it."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        import ray

        assert recipe.canary is not None and recipe.canary_sampler is not None
        self.settings, self.seed, self.folder, self.step = recipe.canary, recipe.seed, folder, 0
        options = {"num_cpus": 0, "num_gpus": recipe.canary_gpus, "max_restarts": -1}
        checker = ray.remote(FrozenChecker).options(**options)
        # With the run's own voters, prompts and rules.
        self.checker: Any = checker.remote(recipe.canary_sampler, recipe.audit)
        self.checker.start.remote()  # while the rest of the run starts
        self.asked: list[Asked] = []
        self.answer: Any = None

    def ask(self, samples: Sequence[Experience], step: int) -> None:
        """Sends some answers of a step to the frozen Checker and does not wait."""
        answers = [
            Asked(
                RagQuery.model_validate_json(sample.labels[0]),
                sample.rollout.response,
                sample.rollout.verdict,
            )
            for sample in samples
            if sample.rollout.verdict.outcome in (Outcome.SUPPORTED, Outcome.REFUTED)
            and sample.rollout.verdict.reason not in WITHOUT_VOTERS
        ]
        self.step = step
        choice = random.Random(f"{self.seed}/{step}")
        self.asked = choice.sample(answers, min(self.settings.answers, len(answers)))
        self.answer = self.checker.verdicts.remote(self.asked) if self.asked else None

    def metrics(self) -> dict[str, float]:
        import ray
        from ray.exceptions import RayError

        if self.answer is None:
            return {}
        try:
            frozen = ray.get(self.answer, timeout=self.settings.timeout_s)
        except RayError as error:  # a GetTimeoutError is one, too
            logger.warning("the canary failed: %s: %s", type(error).__name__, str(error)[-500:])
            ray.cancel(self.answer)
            return {"canary/num_answers": 0.0, "canary/failed_rate": 1.0}
        self._write(frozen)
        return canary_metrics([answer.live for answer in self.asked], frozen)

    def _write(self, frozen: Sequence[Verdict]) -> None:
        """Leaves both verdicts on each answer for a person to read, one line an answer."""
        rows = [
            {
                "response": answer.response,
                "live": answer.live.model_dump(mode="json"),
                "frozen": verdict.model_dump(mode="json"),
            }
            for answer, verdict in zip(self.asked, frozen, strict=True)
        ]
        self.folder.mkdir(exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        replace_file(self.folder / f"step-{self.step:06d}.jsonl", text)


def canary_metrics(live: Sequence[Verdict], frozen: Sequence[Verdict]) -> dict[str, float]:
    """How far two Checkers are apart on the same claims of the same answers.

    `support_gap` is the live support rate less the frozen one, `only_live_rate` the share of answers that the
    live Checker supports and the frozen one refutes, `consensus_gap` the share of claims on which their
    consensus differs. Answers and claims that either of them could not decide are left out. Equal weights
    differ, too, since votes are sampled. Those of the live Checker are SUPPORTED or REFUTED.
    """
    pairs = [(a, b) for a, b in zip(live, frozen, strict=True) if b.outcome is not Outcome.UNSCORED]
    metrics = {"canary/num_answers": float(len(pairs)), "canary/failed_rate": 1 - len(pairs) / len(live)}
    if not pairs:
        return metrics
    supported = [(a.outcome is Outcome.SUPPORTED, b.outcome is Outcome.SUPPORTED) for a, b in pairs]
    metrics["canary/support_gap"] = sum(a - b for a, b in supported) / len(pairs)
    metrics["canary/only_live_rate"] = sum(a and not b for a, b in supported) / len(pairs)
    claims = [both for a, b in pairs for both in zip(a.claims, b.claims, strict=True)]
    decided = [both for both in claims if ClaimState.FAILED not in (both[0].state, both[1].state)]
    if decided:
        metrics["canary/consensus_gap"] = sum(not _agree(*both) for both in decided) / len(decided)
    return metrics


def _agree(live: ClaimVerdict, frozen: ClaimVerdict) -> bool:
    if live.state is not frozen.state:
        return False
    return live.state is not ClaimState.CONTRADICTED or live.consensus == frozen.consensus
